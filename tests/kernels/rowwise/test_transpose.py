"""The transposing block copy, against NumPy, for every element size and vector level."""

from __future__ import annotations

import numpy as np
import pytest

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.rowwise.block_copy import ELEMENT_BYTES, ElementBytes
from gptrs.kernels.rowwise.transpose import PANEL, tile_side, transpose_kernel

DTYPES = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


@pytest.mark.parametrize("size", ELEMENT_BYTES)
def test_matrices_in_a_block(level: isa.Isa, size: ElementBytes) -> None:
    """Extents of one tile, of whole tiles, and with a rest; panels shared by two calls."""
    side, rng = tile_side(level, size), np.random.default_rng(size)
    code = compile_ir(*transpose_kernel(level, size))
    for rows, columns in [(side, side), (2 * side, 3 * side), (PANEL + side + 1, side + 3)]:
        drawn = rng.integers(0, 256, (3, 2, columns + 1, rows + 2, size), np.uint8)
        source = drawn.view(DTYPES[size])[..., 0]
        taken = source[:, :, :columns, :rows]
        found = np.zeros((2, 3, rows, columns + 4), source.dtype)
        words = [
            *(source.ctypes.data, found.ctypes.data, rows, columns, rows + 2, columns + 4, 2),
            *(3, source.strides[0] // size, found.strides[1] // size),
            *(2, source.strides[1] // size, found.strides[0] // size),
        ]
        block = np.array(words, np.int64)
        extent = 6 * -(-rows // PANEL)
        for first, last in [(0, 2), (2, extent)]:
            code(block.ctypes.data, first, last)
        expected = taken.transpose(1, 0, 3, 2)
        assert found[..., :columns].tobytes() == expected.tobytes()
        assert not found[..., columns:].any()
