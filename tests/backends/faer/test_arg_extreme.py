"""argmax and argmin as kernels: the positions of the reference, for every dtype, layout and number
of threads."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ElementError
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType
from tests.cases import CASES

REAL = [dtype for case in CASES if case.op == "argmax" for dtype in case.dtypes]
SHAPES = [
    ((7,), 0),
    ((3, 1), 1),
    ((5, 600), 1),
    ((4, 17), 1),
    ((2, 77), 1),
    ((300, 19), 0),
    ((4, 70, 3), 1),
    ((0, 3), 1),
]


def drawn(shape: tuple[int, ...], dtype: DType, *, nan: bool) -> Array:
    """Elements with several greatest and least ones; of floats zeros of both signs, NaNs in some
    lines."""
    rng = np.random.default_rng(len(shape))
    if not dtype.is_float:
        x = rng.integers(-(2**60), 2**60, shape)
        return ptir.tensor(x).astype(dtype).numpy()
    x = rng.choice([0.0, -0.0, -0.5, -1.0], shape)
    if nan:
        x[rng.random(shape) < 2 / max(shape)] = np.nan
    return ptir.tensor(x).astype(dtype).numpy()


def positions(axis: int) -> Any:
    def found(x: Tensor) -> Any:
        turned = ptir.transpose(x, perm=tuple(range(x.ndim))[::-1])
        return [
            op(y, axis=along, keepdims=keepdims)
            for op in (ptir.argmax, ptir.argmin)
            for y, along in ((x, axis), (turned, x.ndim - 1 - axis))
            for keepdims in (False, True)
        ]

    return found


@pytest.mark.parametrize("name", dict.fromkeys(REAL))
def test_positions(name: str) -> None:
    dtype: DType = getattr(ptir, name)
    for shape, axis in SHAPES:
        for nan in (False, True):
            x = drawn(shape, dtype, nan=nan)
            function = ptir.jit(positions(axis))
            expected = ptir.jit(backend="reference")(positions(axis))(x)
            for a, b in zip(function(x), expected, strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
            kinds = {step.kind for step in function.explain(x).report.steps}
            assert "reference" not in kinds


def test_ends_of_integers() -> None:
    """The least integer has the greatest complement; there is no NaN above it."""
    for dtype in (np.int32, np.uint32, np.int64, np.uint64, np.int8):
        limits = np.iinfo(dtype)
        x = np.array([limits.max, limits.min, limits.max, limits.min] * 100, dtype)
        assert ptir.jit(lambda x: ptir.argmax(x, axis=0))(x).item() == 0
        assert ptir.jit(lambda x: ptir.argmin(x, axis=0))(x).item() == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ends_of_floats(dtype: Any) -> None:
    """Infinities, and NaNs of both signs, alone in a block and beside them."""
    for ends in ([-np.inf], [np.inf], [np.inf, -np.inf], [np.nan], [-np.nan, np.inf], [-np.nan]):
        for count in (9, 256, 700, 9000):
            x = np.full(count, -1.0, dtype)
            for place, end in enumerate(ends):
                x[count - 3 + place] = end
            found = ptir.jit(lambda x: (ptir.argmax(x, axis=0), ptir.argmin(x, axis=0)))(x)
            assert [r.item() for r in found] == [np.argmax(x), np.argmin(x)]


@pytest.mark.parametrize("name", ["f32", "f64", "si8", "ui8", "si16", "ui16", "si32", "si64"])
def test_each_place_of_a_line(name: str) -> None:
    """The first of two equals, wherever it is: in a vector, at its ends, in a part that is beyond
    those before."""
    dtype: DType = getattr(ptir, name)
    function = ptir.jit(lambda x: (ptir.argmax(x, axis=1), ptir.argmin(x, axis=1)))
    for count in (17, 40, 97, 20000):
        places = range(count) if count < 100 else (0, 4095, 4096, 8191, 8192, 16384, 16400, 19999)
        x = np.full((2 * len(places), count), 2, dtype.numpy)
        for row, place in enumerate(places):
            x[row, [place, -1]] = 3
            x[len(places) + row, [place, -1]] = 1
        found = function(x)
        for a, b in zip(found, (np.argmax(x, 1), np.argmin(x, 1)), strict=True):
            np.testing.assert_array_equal(a.numpy(), b)


def test_no_elements_at_a_symbolic_extent() -> None:
    function: Any = ptir.jit(dynamic={"x": {0: "S"}})(lambda x: ptir.argmax(x[1:], axis=0))
    assert function(np.array([1, 3, 3])).item() == 0
    with pytest.raises(ElementError, match="axis 0 has extent 0"):
        function(np.array([1]))


@pytest.mark.parametrize(("shape", "axis"), [((300, 2000), 0), ((300, 2000), 1), ((9, 11, 500), 1)])
def test_threads(shape: tuple[int, ...], axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        found = ptir.jit(lambda x: ptir.argmax(x, axis=axis))(x).numpy()
        np.testing.assert_array_equal(found, np.argmax(x, axis))
