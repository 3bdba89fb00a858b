"""Memory of large results: at a cache line, and reused from freed ones.

NumPy's arrays begin at any multiple of 16 bytes. A kernel that writes a tile, as a product does,
then crosses into the cache line of the next tile in each row, and each line is written twice: from
`ALIGNED` bytes on results begin at a line.

The system clears a page at the first write, which takes longer than a kernel needs to fill it, and
glibc's ``malloc`` returns arrays of 32 MB and more to the system as soon as they are freed. Here
the memory of a freed result stays with the process for the next one, in huge pages: at most
``GPTRS_RESULT_CACHE_BYTES``, of which the least recently freed goes first. The system may take the
pages of what is kept under memory pressure (`gptrs.large_pages`).

Arrays may be freed at any time in any thread, also while this module runs. So the list of kept
memory changes by single operations of a list, without a lock.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gptrs import settings
from gptrs.ir.types import Array
from gptrs.large_pages import LARGE, LargePages, Piece

LINE = 64
"""Bytes of a cache line."""
ALIGNED = 4 * 2**20
"""Bytes from which on a result begins at a line. Below, it is in a cache before it is whole."""
LEAST = 24 * 2**20
"""Bytes from which on memory is reused here. Below, the C library reuses it, in less time."""


class _Memory:
    """Large pages lent as one piece, to one result after the other."""

    def __init__(self, size: int, kept: list[_Memory]) -> None:
        self._pages, self._kept = LargePages(size, "a result"), kept
        self.address = self._pages.address
        self.size = size
        self.limit = 0
        """Bytes that may be kept when the piece comes back. It is read when the piece is lent: at
        interpreter exit, arrays are freed after the names of modules."""

    def give(self, offset: int, size: int) -> None:
        """Take the piece back, and return to the system what is beyond the limit."""
        kept = self._kept
        self._pages.spare(offset, size)
        kept.append(self)
        while sum([memory.size for memory in [*kept]]) > self.limit:
            try:
                kept.pop(0)
            except IndexError:  # another thread took it
                return


_kept: list[_Memory] = []  # the least recently freed first


def empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array in C order with any contents that shares memory with no other. Raises
    `MemoryError`."""
    size = dtype.itemsize * math.prod(shape)
    if size < ALIGNED:
        return np.empty(shape, dtype)
    if size < LEAST:
        around = np.empty(size + LINE, np.uint8)
        start = -around.ctypes.data % LINE
        return around[start : start + size].view(dtype).reshape(shape)
    memory = _taken(size) or _Memory(-(-size // LARGE) * LARGE, _kept)
    memory.limit = settings.result_cache_bytes()
    return np.asarray(Piece(memory, 0, size)).view(dtype).reshape(shape)


def _taken(size: int) -> _Memory | None:
    """The smallest kept memory of at least ``size`` bytes, unless most of it would be left over."""
    while fitting := [memory for memory in [*_kept] if size <= memory.size <= 2 * size]:
        memory = min(fitting, key=lambda memory: memory.size)
        try:
            _kept.remove(memory)
        except ValueError:  # another thread took it
            continue
        return memory
    return None
