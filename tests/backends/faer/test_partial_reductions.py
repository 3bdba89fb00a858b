"""Reductions of few rows in two stages: which regions are cut, and what they give."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.fusion import fuse
from gptrs.backends.partial_reductions import CHUNK, stages
from gptrs.ir.dims import dim
from gptrs.ir.program import Program
from gptrs.ir.types import Type, as_dtype
from gptrs.kernels.driver.threads import limit_threads
from tests.backends.faer.test_render import record
from tests.backends.faer.test_tiles import assert_same, elements
from tests.backends.test_regions import grouped

B, S = dim("B"), dim("S")
F32 = ptir.f32

CUT: dict[str, tuple[tuple[Any, ...], tuple[int, ...], int]] = {
    "everything": ((1000, 1000), (0, 1), 2),
    "a vector": ((100_000,), (0,), 2),
    "few rows": ((10, 100_000), (1,), 2),
    "few columns": ((100_000, 10), (0,), 2),
    "a tile of columns": ((100_000, 100), (0,), 2),
    "both sides of a middle axis": ((300, 8, 500), (0, 2), 2),
    "many rows": ((1000, 1000), (1,), 1),
    "many columns": ((1000, 4000), (0,), 1),
    "short": ((3, 1000), (1,), 1),
    "of little work": ((2 * CHUNK,), (0,), 1),
    "unknown, but long": ((S, 4000), (0, 1), 2),
    "unknown": ((S,), (0,), 1),
    "nothing": ((3, 0, S), (0, 1, 2), 1),
}


def regions_of(program: Program) -> int:
    return sum(len(stages(region)) for region in fuse(program).regions)


@pytest.mark.parametrize("name", CUT)
def test_which_reductions_are_cut(name: str) -> None:
    shape, axes, count = CUT[name]
    assert regions_of(record(ptir.reduce_sum, Type(shape, F32), axes=axes)) == count


def test_a_reduction_of_another_one_is_not_cut() -> None:
    def spread(x: Any) -> Any:
        mean = ptir.reduce_sum(x, axes=(1,), keepdims=True) / 1e5
        return ptir.reduce_sum((x - mean) * (x - mean), axes=(1,))

    assert regions_of(record(spread, Type((4, 100_000), F32))) == 1


def test_a_reduction_of_one_element_is_not_cut() -> None:
    """One that no pass has simplified."""
    body = "e = ptir.exp(x)\ns = ptir.reduce_sum(e, axes=(0,))"
    (region,) = grouped('x: "f32[1]"', body, "s").regions
    assert stages(region) == (region,)


OPS = [
    *((ptir.reduce_sum, dtype) for dtype in ("f32", "f64", "f16", "bf16", "si32", "ui8", "cf32")),
    *((ptir.reduce_prod, dtype) for dtype in ("f32", "si32")),
    *((ptir.reduce_max, dtype) for dtype in ("f32", "f64", "si8")),
    *((ptir.reduce_min, dtype) for dtype in ("f32", "bf16")),
    *((ptir.reduce_any, "i1"), (ptir.reduce_all, "i1")),
]
SHAPES = [((3 * CHUNK * 8 + 5,), (0,)), ((3, 40_001), (1,)), ((20_003, 9), (0,))]


@pytest.mark.parametrize(("op", "dtype"), OPS, ids=lambda given: str(given))
def test_results_are_those_of_numpy(op: Any, dtype: str) -> None:
    for shape, axes in SHAPES:
        kind = as_dtype(dtype)
        x = elements(dtype, shape) if not kind.is_complex else _complex(shape)
        if op is ptir.reduce_prod and kind.is_float:
            x = np.random.default_rng(0).uniform(0.999, 1.001, shape).astype(x.dtype)

        function = partial(_reduced, op, axes)

        assert regions_of(record(function, Type(shape, kind))) == 2
        with np.errstate(all="ignore"):
            wide = x.astype(np.complex128 if kind.is_complex else np.float64)
            wide = wide if kind.is_float or kind.is_complex else x
            expected = ptir.jit(backend="reference")(function)(wide).numpy()
        one, two = (_on(threads, function, x) for threads in (1, 3))
        assert_same(one, two)
        if kind.is_float or kind.is_complex:
            tolerance = 1e-5 if kind.bits >= 32 else 2e-2
            if op is ptir.reduce_prod:  # each of 100,000 factors rounds
                tolerance = 1e-3
            a, b = (v if kind.is_complex else v.astype(np.float64) for v in (one, expected))
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(one, expected)


def _reduced(op: Any, axes: tuple[int, ...], x: Any) -> Any:
    return op(x, axes=axes)


def _on(threads: int, function: Any, x: Any) -> Any:
    with limit_threads(threads):
        return np.atleast_1d(ptir.jit(backend="faer")(function)(x).numpy())


def _complex(shape: tuple[int, ...]) -> Any:
    rng = np.random.default_rng(0)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def test_a_sum_of_many_numbers_is_exact_to_rounding() -> None:
    x = np.random.default_rng(0).random(1_000_003, np.float32)

    def total(x: Any) -> Any:
        return ptir.reduce_sum(x, axes=(0,))

    found = _on(2, total, x)
    assert abs(float(found[0]) - float(x.astype(np.float64).sum())) <= np.spacing(found[0])
