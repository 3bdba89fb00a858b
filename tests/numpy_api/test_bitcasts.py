"""Bits as elements of another dtype: bitcast and x.view(dtype), against NumPy's views."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import DTypeError, ShapeError
from gptrs.ir.types import DTYPES, DType, as_dtype

BYTES = np.random.default_rng(0).integers(0, 256, (3, 64), dtype=np.uint8)
COMPILED = [
    *(("f32", "ui8"), ("ui8", "f64"), ("si16", "cf32"), ("cf64", "cf32"), ("cf32", "cf64")),
    *(("cf64", "bf16"), ("i1", "si32"), ("f16", "fp8_e5m2")),
]


def patterns(dtype: DType) -> Any:
    return BYTES > 99 if dtype.is_bool else BYTES.view(dtype.numpy)


def same(found: ptir.Tensor, expected: Any) -> None:
    assert found.shape == expected.shape
    assert as_dtype(expected.dtype) is found.dtype
    assert found.numpy().tobytes() == expected.tobytes()


def test_views_of_all_dtypes_are_those_of_numpy() -> None:
    whole = [dtype for dtype in DTYPES.values() if dtype.bits != 4]
    with ptir.eager():
        for source, target in itertools.product(whole, whole):
            if source.is_bool or not target.is_bool:
                x = patterns(source)
                same(ptir.tensor(x).view(target), x.view(target.numpy))


@pytest.mark.parametrize(("source", "target"), COMPILED)
def test_compiled_views(source: str, target: str) -> None:
    x = patterns(DTYPES[source])
    viewed = ptir.jit(lambda x: x.view(dtype=target))
    same(viewed(x), x.view(DTYPES[target].numpy))
    assert "reference" not in {step.kind for step in viewed.explain(x).report.steps}


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_no_bit_pattern_is_lost(dtype: str) -> None:
    """Signalling NaN too, which arithmetic would make quiet."""
    x = np.arange(65536, dtype=np.uint16)
    there = ptir.jit(lambda x: ptir.bitcast(x, dtype))
    back = ptir.jit(lambda x: ptir.bitcast(x, "ui16") + 1)
    floats = there(x)
    same(floats, x.view(DTYPES[dtype].numpy))
    same(back(floats), x + np.uint16(1))


def test_bitcast_has_the_shapes_of_jax() -> None:
    x = ptir.tensor(np.ones((2, 3), np.float32))
    parts = ptir.bitcast_convert_type(x, "ui8")
    assert parts.shape == (2, 3, 4)
    same(ptir.bitcast(parts, np.float32), np.ones((2, 3), np.float32))
    pairs = ptir.vmap(lambda row: ptir.bitcast(row, "ui16"))(x)
    assert pairs.shape == (2, 3, 2)
    assert x.view(6).shape == x.view(-1).shape == x.view((6,)).shape == (6,)
    nibbles = ptir.bitcast(np.array([0xA3], np.uint8), "ui4")
    assert nibbles.numpy().tolist() == [[3, 10]]
    same(ptir.bitcast(nibbles, "ui8"), np.array([0xA3], np.uint8))


def test_bits_that_do_not_fit_are_errors() -> None:
    x = ptir.tensor(np.ones((2, 3), np.float32))
    with pytest.raises(ShapeError, match="no multiple of 2: as many f32 make one f64"):
        x.view("f64")
    with pytest.raises(ShapeError, match="2 elements of f32 make one of f64"):
        ptir.bitcast(x, "f64")
    with pytest.raises(ShapeError, match="a number of f32 is no view of ui8"):
        x[0, 0].view("ui8")
    with pytest.raises(DTypeError, match="not all bits of ui8 are truth values"):
        ptir.bitcast(np.ones(3, np.uint8), bool)
    with pytest.raises(DTypeError, match="f32 has 32 bits, ui8 has 8"):
        ptir.ops.bitcast(x, dtype="ui8")
