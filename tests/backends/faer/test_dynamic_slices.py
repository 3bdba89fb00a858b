"""Slices and updates at places known at run time: every dtype, rank and layout, as the
reference."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ElementError
from gptrs.ir.types import Array

DTYPES = (
    "i1",
    "si4",
    "ui4",
    "si8",
    "ui16",
    "fp8_e4m3",
    "bf16",
    "f16",
    "f32",
    "f64",
    "cf32",
    "cf64",
)
STARTS = ("si4", "si8", "si16", "si32", "si64", "ui4", "ui8", "ui16", "ui32", "ui64")


def box(*shape: int, dtype: str = "f32") -> Array:
    x = np.random.default_rng(0).integers(0, 7, shape)
    return ptir.tensor(x).astype(getattr(ptir, dtype)).numpy()


def start(place: int, dtype: str) -> Array:
    return ptir.tensor(np.array(place)).astype(getattr(ptir, dtype)).numpy()


def moved(x: Any, k: Any) -> Any:
    """Slices of an array and of its transpose, and an update of one by the other."""
    rank = x.ndim
    turned = ptir.transpose(x, perm=tuple(range(rank))[::-1])
    at = tuple(k if axis % 2 == 0 else 1 for axis in range(rank))
    sizes = (2,) * rank
    part = ptir.dynamic_slice(turned, at[::-1], sizes=sizes)
    return ptir.dynamic_slice(x, at, sizes=sizes), ptir.dynamic_update_slice(x, part, at)


def check(x: Array, k: Array) -> None:
    function = ptir.jit(moved)
    found, expected = function(x, k), ptir.jit(backend="reference")(moved)(x, k)
    assert {s.kind for s in function.explain(x, k).report.steps} == {"call"}
    for a, b in zip(found, expected, strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str) -> None:
    for place in (-3, 2, 9):
        check(box(5, 4, 6, dtype=dtype), start(place, "si32"))


@pytest.mark.parametrize("dtype", STARTS)
def test_starts_of_every_dtype(dtype: str) -> None:
    for place in (-8, 2, 7):
        if place >= 0 or dtype.startswith("s"):
            check(box(5, 4, 6), start(place, dtype))


@pytest.mark.parametrize("rank", range(1, 9))
def test_every_rank(rank: int) -> None:
    check(box(*(3 + axis % 2 for axis in range(rank))), start(1, "si64"))


def test_symbolic_sizes() -> None:
    @ptir.jit(dynamic={"x": {0: "N"}, "part": {0: "M"}})
    def f(x: Any, part: Any, k: Any) -> Any:
        updated = ptir.dynamic_update_slice(x, part, (k, 0))
        return updated, ptir.dynamic_slice(updated, (k, 1), sizes=(part.shape[0], 2))

    x, k = box(9, 3), np.array(4)
    for n, m in [(9, 2), (5, 5), (7, 1)]:
        at = min(4, n - m)
        expected = x[:n].copy()
        expected[at : at + m] = x[:m] + 10
        updated, part = f(x[:n], x[:m] + 10, k)
        np.testing.assert_array_equal(updated.numpy(), expected)
        np.testing.assert_array_equal(part.numpy(), expected[at : at + m, 1:])
    with pytest.raises(ElementError, match="axis 0: 4 elements do not fit extent 3"):
        f(x[:3], x[:4], k)
    assert len(f.retraces()) == 1


def test_long_rows_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x, part = box(3, 100_000), box(2, 70_001)
    expected = x.copy()
    expected[1:, 77:70_078] = part
    for threads in ("1", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)

        def f(x: Any, part: Any, k: Any) -> Any:
            return ptir.dynamic_update_slice(x, part, (1, k))

        np.testing.assert_array_equal(ptir.jit(f)(x, part, np.array(77)).numpy(), expected)
