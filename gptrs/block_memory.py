"""Memory of blocks of about a megabyte that are filled, read once and freed, one after the other.

Weights are read from a file and packed in such blocks. glibc's ``malloc`` returns memory at the end
of its heap to the system as soon as there are two megabytes of it, and the system clears a page
when it is written again, which takes longer than to fill it: packing a model of half a gigabyte
cleared most of that once more. Blocks that were freed are kept here for the next ones, a few of
them.

Arrays may be freed at any time in any thread, so the kept blocks change by single operations of a
deque, without a lock.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from gptrs.large_pages import Piece

LEAST, MOST = 2**17, 2**21
"""Sizes in bytes of blocks that are kept. Smaller ones do not go back to the system; what is larger
is no block of something that is read piece by piece."""
_LINE = 64  # bytes of a cache line


class _Block:
    """Memory of `MOST` bytes, lent as one piece. What is never written takes no memory."""

    def __init__(self, kept: deque[_Block]) -> None:
        self._memory, self._kept = np.empty(MOST + _LINE, np.uint8), kept
        self.address = -(-self._memory.ctypes.data // _LINE) * _LINE

    def give(self, offset: int, size: int) -> None:
        """Take the piece back, at any time in any thread."""
        self._kept.append(self)


KEPT: deque[_Block] = deque(maxlen=4)
"""The blocks that are kept, the last freed one last."""


def empty(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """An array in C order with any contents that shares memory with no other."""
    size = dtype.itemsize * math.prod(shape)
    if not LEAST <= size <= MOST:
        return np.empty(shape, dtype)
    try:
        block = KEPT.pop()
    except IndexError:
        block = _Block(KEPT)
    return np.asarray(Piece(block, 0, size)).view(dtype).reshape(shape)
