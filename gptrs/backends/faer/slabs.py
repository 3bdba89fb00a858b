"""Memory for packed weights: slabs, for which systems have large pages, and places in them.

A kernel that reads all weights once crosses a page every 4 KB. Systems give pages of 2 MB to what
covers them whole, so to little of a weight of a few megabytes that has memory of its own.
"""

from __future__ import annotations

import mmap
import weakref
from collections import deque
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np

from gptrs.backends.faer.arena import Places
from gptrs.ir.types import Array

SLAB_BYTES = 64 * 2**20
_LARGE = 2 * 2**20  # bytes of a large page, which begins at a multiple of that
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class _Slab:
    """Memory of the system's. It goes back when nobody has a piece of it any more."""

    def __init__(self, size: int) -> None:
        try:
            self._map = mmap.mmap(-1, size + _LARGE, **_PRIVATE)
        except OSError as error:
            raise MemoryError(f"the system has no {size} bytes for packed weights") from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a system without large pages
                self._map.madvise(mmap.MADV_HUGEPAGE)
        self._page = mmap.PAGESIZE
        self._unneeded: int | None = getattr(mmap, "MADV_DONTNEED", None)
        whole = np.frombuffer(self._map, np.uint8)
        self._begin: int = -whole.ctypes.data % _LARGE
        self._bytes = whole[self._begin :][:size]
        self.address: int = self._bytes.ctypes.data
        self._places = Places()
        self._returned: deque[tuple[int, int]] = deque()

    def take(self, size: int) -> _Piece | None:
        """A piece of ``size`` bytes; None where there is no room. One thread may ask at a time."""
        while self._returned:
            self._places.give(*self._returned.popleft())
        offset = self._places.take(size)
        if offset + size > len(self._bytes):
            self._places.give(offset, size)
            return None
        return _Piece(self, offset, size)

    def give(self, offset: int, size: int) -> None:
        """Take a piece back, at any time in any thread; the system gets the pages it covers.

        Names of modules may be gone: interpreters that end drop arrays late.
        """
        page = self._page
        first = -(-(self._begin + offset) // page) * page
        last = (self._begin + offset + size) // page * page
        if self._unneeded is not None and last > first:
            try:  # noqa: SIM105 - names may be gone
                self._map.madvise(self._unneeded, first, last - first)
            except OSError:  # memory that is locked
                pass
        self._returned.append((offset, size))


class _Piece:
    """Bytes of a slab: what the arrays over them keep alive."""

    def __init__(self, slab: _Slab, offset: int, size: int) -> None:
        self._slab, self._offset, self._size = slab, offset, size

    @property
    def __array_interface__(self) -> dict[str, Any]:
        data = self._slab.address + self._offset, False
        return {"shape": (self._size,), "typestr": "|u1", "data": data, "version": 3}

    def __del__(self) -> None:
        self._slab.give(self._offset, self._size)


class Slabs:
    """The slabs of a process, as long as somebody has a piece of them."""

    def __init__(self) -> None:
        self._lock = Lock()
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
