"""Zeros for a cache of keys and values, in memory of caches that nobody has any more.

The system clears a page when it is first written, 1 to 5 % of the time that a GPT-2 of 124 million
weights takes for a text of 128 to 1000 tokens. What a cache leaves behind stays with the process
for the next one, at most two pieces of it, and the system may take their pages when it runs out of
memory.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from gptrs.large_pages import LargePages, Piece

LEAST, MOST = 4 * 2**20, 128 * 2**20
"""Sizes in bytes of what is kept. Less has no large pages to gain; of more, texts may leave much
unwritten, which would have to be cleared all the same."""


class _Memory:
    """Large pages that are lent as one piece, to one cache after the other."""

    def __init__(self, size: int, kept: deque[_Memory]) -> None:
        self._pages, self._kept = LargePages(size, "a cache of keys and values"), kept
        self.address = self._pages.address
        self.size = size

    def give(self, offset: int, size: int) -> None:
        """Take the piece back, at any time in any thread."""
        self._pages.spare(offset, size)
        self._kept.append(self)


_kept: deque[_Memory] = deque(maxlen=2)  # keys and values of the last cache


def zeros(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """An array of f32 that nobody else has. Raises `MemoryError`."""
    size = 4 * math.prod(shape)
    if not LEAST <= size <= MOST:
        return np.zeros(shape, np.float32)
    memory = _large_enough(size)
    cleared = memory is None
    memory = memory or _Memory(size, _kept)
    piece = np.asarray(Piece(memory, 0, size)).view(np.float32)
    if not cleared:
        piece[:] = 0
    return piece.reshape(shape)


def _large_enough(size: int) -> _Memory | None:
    """Memory that was kept; what is too small goes back to the system."""
    while True:
        try:
            memory = _kept.popleft()
        except IndexError:
            return None
        if memory.size >= size:
            return memory
