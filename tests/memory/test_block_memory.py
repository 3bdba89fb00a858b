"""Memory of blocks: reused when it is free, and never while an array over it lives."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import block_memory
from gptrs.block_memory import LEAST, MOST, empty

FLOATS = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def _none_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_memory, "KEPT", deque[Any](maxlen=4))


def address(array: NDArray[Any]) -> int:
    return array.ctypes.data


def test_a_freed_block_is_used_again() -> None:
    first = empty((3, LEAST), FLOATS)
    assert (first.shape, first.dtype, first.flags.c_contiguous) == ((3, LEAST), FLOATS, True)
    place = address(first)
    del first
    assert address(empty((LEAST // 2,), FLOATS)) == place


def test_a_block_that_is_read_is_not_used_again() -> None:
    first = empty((LEAST,), FLOATS)
    first[:] = 1
    part = first[5:9]
    del first
    other = empty((LEAST,), FLOATS)
    other[:] = 2
    assert part.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("size", [0, 1, LEAST - 1, MOST + 1])
def test_other_sizes_are_plain_arrays(size: int) -> None:
    made = empty((size,), np.dtype(np.uint8))
    assert made.shape == (size,)
    assert made.base is None


def test_few_blocks_are_kept() -> None:
    blocks = [empty((LEAST,), FLOATS) for _ in range(9)]
    del blocks
    assert len(block_memory.KEPT) == 4
