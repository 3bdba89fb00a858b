"""Stores of the first elements of vectors (`gptrs.kernels.compiler.partial_store`)."""

# llvmlite has no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import ir

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.ir_builder import F32, F64, I32, Function, i64

KINDS = {"f32": (F32, np.float32), "f64": (F64, np.float64), "si32": (I32, np.int32)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", isa.host_levels(), ids=lambda level: level.name)
def test_no_other_element_is_written(level: isa.Isa, kind: str) -> None:
    """Two vectors, of any count of elements."""
    element, dtype = KINDS[kind]
    lanes = level.vector_bits // (8 * np.dtype(dtype).itemsize)
    module: Any = ir.Module("partial")
    f = Function.kernel(module, level, "partial")
    block = f.argument_block(f.arguments[0], ("x", "out"), ("count",))
    vector: Any = ir.VectorType(element, lanes)
    places = [f.at(block["x"], i64(n * lanes), element) for n in (0, 1)]
    targets = [f.at(block["out"], i64(n * 2 * lanes), element) for n in (0, 1)]
    values = [f.read(place, vector) for place in places]
    f.write_all(values, targets, f.mask(block["count"], lanes))
    f.ret_void()
    kernel = compile_ir(str(module), "partial")
    x = np.arange(1, 2 * lanes + 1, dtype=dtype)
    for count in (-lanes - 3, -1, *range(lanes + 3), 1 << 40):
        out = np.zeros((2, 2 * lanes), dtype)
        words = np.array([x.ctypes.data, out.ctypes.data, count], np.int64)
        kernel(words.ctypes.data, 0, 1)
        kept = min(max(count, 0), lanes)
        expected = np.zeros_like(out)
        expected[:, :kept] = x.reshape(2, lanes)[:, :kept]
        np.testing.assert_array_equal(out, expected)
