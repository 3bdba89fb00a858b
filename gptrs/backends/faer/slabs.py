"""Memory for packed weights: slabs of large pages, and places in them.

A weight of a few megabytes that has memory of its own covers few large pages whole.
"""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np

from gptrs.backends.faer.arena import Places
from gptrs.ir.types import Array
from gptrs.large_pages import LargePages, Piece
from gptrs.locks import new_lock

SLAB_BYTES = 64 * 2**20


class _Slab:
    """Memory of the system's. It goes back when nobody has a piece of it any more."""

    def __init__(self, size: int) -> None:
        self._pages = LargePages(size, "packed weights")
        self.address = self._pages.address
        self._size = size
        self._places = Places()
        self._returned: deque[tuple[int, int]] = deque()

    def take(self, size: int) -> Piece | None:
        """A piece of ``size`` bytes; None where there is no room. One thread may ask at a time."""
        while self._returned:
            self._places.give(*self._returned.popleft())
        offset = self._places.take(size)
        if offset + size > self._size:
            self._places.give(offset, size)
            return None
        return Piece(self, offset, size)

    def give(self, offset: int, size: int) -> None:
        """Take a piece back, at any time in any thread; the system gets the pages it covers."""
        self._pages.drop(offset, size)
        self._returned.append((offset, size))


class Slabs:
    """The slabs of a process, as long as somebody has a piece of them."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._slabs: list[weakref.ref[_Slab]] = []

    def take(self, size: int) -> Array:
        """``size`` bytes that nobody else has, at the beginning of a cache line, not cleared.

        Raises `MemoryError`.
        """
        with self._lock:
            slabs = [slab for reference in self._slabs if (slab := reference()) is not None]
            for slab in slabs:
                if (piece := slab.take(size)) is not None:
                    return np.asarray(piece)
            slab = _Slab(max(size, SLAB_BYTES))
            self._slabs = [weakref.ref(each) for each in (*slabs, slab)]
            piece = slab.take(size)
            assert piece is not None
            return np.asarray(piece)
