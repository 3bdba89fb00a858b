"""Partition of a long axis into blocks, for the blocked implementations of composites."""

from __future__ import annotations

from collections.abc import Iterator

from gptrs.ir.dims import DimLike

_LEAST = 128  # the elements of a block
_MOST = 16  # most blocks: each adds instructions


def is_long(extent: DimLike) -> bool:
    """Whether an axis of this extent has several blocks; a symbolic axis is not partitioned."""
    return isinstance(extent, int) and extent > _LEAST


def blocks(extent: DimLike) -> Iterator[tuple[int, int]]:
    """The start and the size of each block."""
    assert isinstance(extent, int)
    size = max(_LEAST, -(-extent // _MOST))
    for start in range(0, extent, size):
        yield start, min(size, extent - start)
