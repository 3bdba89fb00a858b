"""Cumulative sums, products, maxima and minima: the bits of the reference, for every dtype, layout
and number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType
from tests.cases import CASES

CUMULATIVE = ("cumsum", "cumprod", "cummax", "cummin")
ROWS = [(case.op, dtype) for case in CASES if case.op in CUMULATIVE for dtype in case.dtypes]
SHAPES = [
    ((7,), 0),
    ((1, 43), 1),
    ((3, 5), 1),
    ((3, 5), 0),
    ((4, 1, 600), 1),
    ((2, 9, 3), 0),
    ((19, 37), 1),
    ((5, 0), 0),
]


def drawn(shape: tuple[int, ...], dtype: DType) -> Array:
    """Small numbers, and with floats what has no order or no end."""
    rng = np.random.default_rng(len(shape))
    x = rng.integers(0 if dtype.name.startswith("ui") else -3, 4, shape).astype(np.float64)
    if dtype.is_float and x.size > 10:
        x.flat[4], x.flat[8], x.flat[10] = np.nan, np.inf, -0.0
        x = x / 3
    return ptir.tensor(x).astype(dtype).numpy()


def both(op: str, rank: int, axis: int) -> Callable[[Tensor], Any]:
    """Along an axis of an array, and along the same one of its transpose."""

    def found(x: Tensor) -> Any:
        turned = ptir.transpose(x, perm=tuple(range(rank))[::-1])
        along: Callable[..., Tensor] = getattr(ptir, op)
        return along(x, axis=axis), along(turned, axis=rank - 1 - axis)

    return found


@pytest.mark.parametrize(("op", "name"), dict.fromkeys(ROWS))
def test_bits(op: str, name: str) -> None:
    dtype: DType = getattr(ptir, name)
    for shape, axis in SHAPES:
        x = drawn(shape, dtype)
        forms = both(op, x.ndim, axis)
        function = ptir.jit(forms)
        found, expected = function(x), ptir.jit(backend="reference")(forms)(x)
        kinds = {step.kind for step in function.explain(x).report.steps}
        assert "reference" not in kinds
        for a, b in zip(found, expected, strict=True):
            a, b = a.numpy(), b.numpy()
            nan = np.isnan(b.astype(complex)) if dtype.is_float or dtype.is_complex else b != b
            assert a.shape == b.shape
            assert a[~nan].tobytes() == b[~nan].tobytes()
            assert (a[nan] != a[nan]).all()


@pytest.mark.parametrize(("shape", "axis"), [((300, 2000), 0), ((300, 2000), 1), ((9, 11, 500), 1)])
def test_threads(shape: tuple[int, ...], axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    expected = np.cumsum(x, axis, dtype=np.float32).tobytes()

    def sums(x: Tensor) -> Tensor:
        return ptir.cumsum(x, axis=axis)

    for threads in ("1", "2", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        assert ptir.jit(sums)(x).numpy().tobytes() == expected


@pytest.mark.parametrize("op", CUMULATIVE)
@pytest.mark.parametrize("name", ["f32", "f64", "si8", "ui8", "si16", "si32", "ui32", "si64"])
def test_contiguous_lines_of_any_length(op: str, name: str) -> None:
    """Lines of fewer elements than a vector, or than two, and as many lines or fewer."""
    rng = np.random.default_rng(0)
    along: Callable[..., Tensor] = getattr(ptir, op)

    def found(x: Tensor) -> Tensor:
        return along(x, axis=1)

    for shape in [(1, 200), (3, 33), (8, 5), (8, 8), (17, 16), (9, 70), (20, 31)]:
        x = ptir.tensor(rng.integers(-(2**40), 2**40, shape)).astype(getattr(ptir, name)).numpy()
        expected = ptir.jit(backend="reference")(found)(x).numpy()
        assert ptir.jit(found)(x).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["i1", "ui8", "si8", "si16", "ui32", "si32"])
@pytest.mark.parametrize("axis", [0, 1])
def test_narrow_integers_are_read_where_they_lie(name: str, axis: int) -> None:
    @ptir.jit
    def sums(x: Tensor) -> Tensor:
        return ptir.cumsum(x.T, axis=axis)

    x = drawn((5, 43), getattr(ptir, name))
    assert [step.kind for step in sums.explain(x).report.steps] == ["call"]
    np.testing.assert_array_equal(sums(x).numpy(), np.cumsum(x.T, axis=axis), strict=True)
