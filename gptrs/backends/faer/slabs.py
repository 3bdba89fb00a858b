"""Slabs: large-page memory for packed weights, with an offset allocator in each.

A weight of a few megabytes in memory of its own would cover few large pages completely.
"""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np

from gptrs.backends.faer.arena import OffsetAllocator
from gptrs.ir.types import Array
from gptrs.large_pages import LargePages, Piece
from gptrs.locks import new_lock

SLAB_BYTES = 64 * 2**20


class _Slab:
    """A mapping of large pages. It is unmapped when no piece of it is referenced any more."""

    def __init__(self, size: int) -> None:
        self._pages = LargePages(size, "packed weights")
        self.address = self._pages.address
        self._size = size
        self._offsets = OffsetAllocator()
        self._returned: deque[tuple[int, int]] = deque()

    def allocate(self, size: int) -> Piece | None:
        """A piece of ``size`` bytes; None if there is no room. Not thread-safe."""
        while self._returned:
            self._offsets.free(*self._returned.popleft())
        offset = self._offsets.allocate(size)
        if offset + size > self._size:
            self._offsets.free(offset, size)
            return None
        return Piece(self, offset, size)

    def give(self, offset: int, size: int) -> None:
        """Free a piece, at any time in any thread; the pages it covers are returned to the
        system."""
        self._pages.drop(offset, size)
        self._returned.append((offset, size))


class Slabs:
    """The slabs of a process; each lives as long as one of its pieces."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._slabs: list[weakref.ref[_Slab]] = []

    def allocate(self, size: int) -> Array:
        """An uninitialised array of ``size`` bytes, aligned to a cache line.

        Raises `MemoryError`.
        """
        with self._lock:
            slabs = [slab for reference in self._slabs if (slab := reference()) is not None]
            for slab in slabs:
                if (piece := slab.allocate(size)) is not None:
                    return np.asarray(piece)
            slab = _Slab(max(size, SLAB_BYTES))
            self._slabs = [weakref.ref(each) for each in (*slabs, slab)]
            piece = slab.allocate(size)
            assert piece is not None
            return np.asarray(piece)
