"""Zeroed memory for KV caches, reused from freed caches.

The system clears a page at the first write, which takes 1 to 5 % of the time that a GPT-2 of 124
million weights takes for a text of 128 to 1000 tokens. The memory of a freed cache stays with the
process for the next one, at most two pieces of it (keys and values); the system may take its pages
under memory pressure (`gptrs.large_pages`).
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from gptrs.ir.types import Array, DType, f32
from gptrs.large_pages import LargePages, Piece

LEAST, MOST = 4 * 2**20, 128 * 2**20
"""Sizes in bytes of memory that is reused. Below, large pages bring nothing; above, a text may
leave much unwritten, and reuse would have to clear all of it."""


class _Memory:
    """Large pages lent as one piece, to one cache after the other."""

    def __init__(self, size: int, kept: deque[_Memory]) -> None:
        self._pages, self._kept = LargePages(size, "a cache of keys and values"), kept
        self.address = self._pages.address
        self.size = size

    def give(self, offset: int, size: int) -> None:
        """Take the piece back, at any time in any thread."""
        self._pages.spare(offset, size)
        self._kept.append(self)


_kept: deque[_Memory] = deque(maxlen=2)  # keys and values of the last cache


def zeros(shape: tuple[int, ...], dtype: DType = f32) -> Array:
    """A zeroed array that shares memory with no other. Raises `MemoryError`."""
    size = dtype.numpy.itemsize * math.prod(shape)
    if not LEAST <= size <= MOST:
        return np.zeros(shape, dtype.numpy)
    memory = _large_enough(size)
    cleared = memory is None
    memory = memory or _Memory(size, _kept)
    piece = np.asarray(Piece(memory, 0, size)).view(dtype.numpy)
    if not cleared:
        piece[:] = 0
    return piece.reshape(shape)


def _large_enough(size: int) -> _Memory | None:
    """Kept memory of at least ``size`` bytes; smaller pieces are returned to the system."""
    while True:
        try:
            memory = _kept.popleft()
        except IndexError:
            return None
        if memory.size >= size:
            return memory
