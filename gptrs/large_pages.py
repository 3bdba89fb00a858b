"""Anonymous memory in huge pages (2 MB), lent in pieces and returned to the system by page.

A kernel that reads or writes much memory crosses a 4 KB page every 4 KB, and the system clears each
page at the first write. With ``madvise(MADV_HUGEPAGE)`` the system backs ranges that cover 2 MB
with one page. Packed weights (`gptrs.backends.faer.slabs`) and KV caches
(`gptrs.nn.cache_memory`) are allocated here.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

LARGE = 2 * 2**20  # bytes of a large page, which begins at a multiple of that
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class LargePages:
    """``size`` zero bytes that begin at a large page; unmapped when the object is freed.

    Raises `MemoryError`, which names their ``use``.
    """

    def __init__(self, size: int, use: str) -> None:
        try:
            self._map = mmap.mmap(-1, size + LARGE, **_PRIVATE)
        except OSError as error:
            raise MemoryError(f"the system has no {size} bytes for {use}") from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a system without large pages
                self._map.madvise(mmap.MADV_HUGEPAGE)
        # Kept here: at interpreter exit arrays are freed after the names of modules.
        self._page = mmap.PAGESIZE
        self._unneeded: int | None = getattr(mmap, "MADV_DONTNEED", None)
        self._spare: int | None = getattr(mmap, "MADV_FREE", None)
        start = np.frombuffer(self._map, np.uint8).ctypes.data
        self._begin = -start % LARGE
        self.address = start + self._begin

    def drop(self, offset: int, size: int) -> None:
        """Return the pages inside these bytes to the system at once; their contents are lost."""
        self._advise(self._unneeded, offset, size)

    def spare(self, offset: int, size: int) -> None:
        """Let the system take these pages under memory pressure (MADV_FREE, where it has that)."""
        self._advise(self._spare, offset, size)

    def _advise(self, advice: int | None, offset: int, size: int) -> None:
        page = self._page
        first = -(-(self._begin + offset) // page) * page
        last = (self._begin + offset + size) // page * page
        if advice is not None and last > first:
            try:  # noqa: SIM105 - at exit its name may be gone
                self._map.madvise(advice, first, last - first)
            except OSError:  # locked memory, or a system without this advice
                pass


class Lender(Protocol):
    """The owner of large pages that lends pieces of them."""

    address: int

    def give(self, offset: int, size: int) -> None:
        """Take a piece back, at any time in any thread."""
        ...


class Piece:
    """Lent bytes, kept alive by the arrays over them and returned to the lender with the last."""

    def __init__(self, lender: Lender, offset: int, size: int) -> None:
        self._lender, self._offset, self._size = lender, offset, size

    @property
    def __array_interface__(self) -> dict[str, Any]:
        data = self._lender.address + self._offset, False
        return {"shape": (self._size,), "typestr": "|u1", "data": data, "version": 3}

    def __del__(self) -> None:
        self._lender.give(self._offset, self._size)
