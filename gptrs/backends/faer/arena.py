"""Memory of intermediate values: a best-fit offset allocator, and the arenas of a backend instance.

Offsets are assigned while a plan is bound, from the lifetimes of values. A call takes an `Arena` of
at least the plan's size from the pool and returns it at the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LINE = 64  # bytes; every place begins a cache line
Block = NDArray[np.uint8]


class OffsetAllocator:
    """Best-fit allocation of offsets in one block, for arrays with overlapping lifetimes."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # (offset, size), ascending

    def allocate(self, size: int) -> int:
        """The offset of ``size`` bytes: the smallest gap that fits, or the end."""
        size = -(-size // LINE) * LINE
        fitting = [gap for gap in self._free if gap[1] >= size]
        if not fitting:
            offset = self._open_end()
            self.size = max(self.size, offset + size)
            return offset
        offset, room = best = min(fitting, key=lambda gap: gap[1])
        at = self._free.index(best)
        self._free[at : at + 1] = [(offset + size, room - size)] if room > size else []
        return offset

    def _open_end(self) -> int:
        """The offset of the end; a gap there is part of it."""
        if self._free and sum(self._free[-1]) == self.size:
            return self._free.pop()[0]
        return self.size

    def free(self, offset: int, size: int) -> None:
        """Free an allocation, merging adjacent gaps."""
        size = -(-size // LINE) * LINE
        if not size:
            return
        merged: list[tuple[int, int]] = []
        for gap in sorted([*self._free, (offset, size)]):
            if merged and sum(merged[-1]) == gap[0]:
                merged[-1] = (merged[-1][0], merged[-1][1] + gap[1])
            else:
                merged.append(gap)
        self._free = merged


class Arena:
    """A growing block of memory, aligned to a cache line. It serves one call at a time."""

    __slots__ = ("_held", "address", "block", "words")

    def __init__(self) -> None:
        self.words: NDArray[np.int64] = np.zeros(2, np.int64)
        """Address and size, for native calls."""
        self._held: Block = np.empty(0, np.uint8)
        self.block: Block = self._held
        self.address = 0

    def reserve(self, size: int) -> None:
        """Have at least ``size`` bytes; growing loses the contents."""
        if size > len(self.block) or not self.address:
            self.words[:] = 0
            self._held = self.block = np.empty(0, np.uint8)  # frees before it allocates
            self._held = np.empty(size + LINE, np.uint8)
            start = -self._held.ctypes.data % LINE
            self.block = self._held[start : start + size]
            self.address = self._held.ctypes.data + start
            self.words[:] = self.address, size


class ArenaPool:
    """A pool of arenas: as many as there ever were concurrent calls."""

    def __init__(self) -> None:
        self.free: list[Arena] = []

    def acquire(self) -> Arena:
        """A free arena, the most recently used first; a new one if there is none."""
        try:
            return self.free.pop()
        except IndexError:
            return Arena()

    def release(self, arena: Arena) -> None:
        """Return an arena to the pool."""
        self.free.append(arena)
