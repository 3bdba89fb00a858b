"""Memory that comes from the system in large pages, where it has them, and goes back by the page.

A kernel that reads or writes much crosses a page every 4 KB, and the system clears each one when it
is first written. Systems give pages of 2 MB to what covers them whole.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

LARGE = 2 * 2**20  # bytes of a large page, which begins at a multiple of that
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class LargePages:
    """``size`` bytes from the beginning of a large page on, zeros; the system's again with it.

    Raises `MemoryError`, which says what they were for (``use``).
    """

    def __init__(self, size: int, use: str) -> None:
        try:
            self._map = mmap.mmap(-1, size + LARGE, **_PRIVATE)
        except OSError as error:
            raise MemoryError(f"the system has no {size} bytes for {use}") from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a system without large pages
                self._map.madvise(mmap.MADV_HUGEPAGE)
        # Names of modules may be gone when they are needed: interpreters that end drop arrays late.
        self._page = mmap.PAGESIZE
        self._unneeded: int | None = getattr(mmap, "MADV_DONTNEED", None)
        self._spare: int | None = getattr(mmap, "MADV_FREE", None)
        start = np.frombuffer(self._map, np.uint8).ctypes.data
        self._begin = -start % LARGE
        self.address = start + self._begin

    def drop(self, offset: int, size: int) -> None:
        """Give the system the pages that these bytes cover, which nobody needs, at once."""
        self._advise(self._unneeded, offset, size)

    def spare(self, offset: int, size: int) -> None:
        """Let the system take them when it needs memory, where it knows such advice."""
        self._advise(self._spare, offset, size)

    def _advise(self, advice: int | None, offset: int, size: int) -> None:
        page = self._page
        first = -(-(self._begin + offset) // page) * page
        last = (self._begin + offset + size) // page * page
        if advice is not None and last > first:
            try:  # noqa: SIM105 - names may be gone
                self._map.madvise(advice, first, last - first)
            except OSError:  # memory that is locked, or a system that does not know it
                pass


class Lender(Protocol):
    """Who lends pieces of large pages."""

    address: int

    def give(self, offset: int, size: int) -> None:
        """Take a piece back, at any time in any thread."""
        ...


class Piece:
    """Bytes on loan: what the arrays over them keep alive. Goes back with the last one."""

    def __init__(self, lender: Lender, offset: int, size: int) -> None:
        self._lender, self._offset, self._size = lender, offset, size

    @property
    def __array_interface__(self) -> dict[str, Any]:
        data = self._lender.address + self._offset, False
        return {"shape": (self._size,), "typestr": "|u1", "data": data, "version": 3}

    def __del__(self) -> None:
        self._lender.give(self._offset, self._size)
