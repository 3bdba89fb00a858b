"""Joint steps: which products become one native step, and that they keep their bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor


def weight(columns: int, dtype: Any = np.float32) -> Parameter:
    numbers = np.random.default_rng(columns).standard_normal((64, columns))
    return Parameter(numbers.astype(dtype), f"w{columns}")


X = np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)
W, U, NARROW = weight(200), weight(40), weight(72, ml_dtypes.bfloat16)
V = Parameter(np.cos(np.arange(64 * 200, dtype=np.float32)).reshape(64, 200), "v")


def gated(x: Tensor) -> Any:
    return ptir.silu(x @ W) * (x @ V)


def heads(x: Tensor) -> Any:
    return x @ W, x @ ptir.cast(NARROW, dtype=ptir.f32), x @ V + 1.0


def residual(x: Tensor) -> Any:
    y = x @ W
    return y, x @ V + y


def other_columns(x: Tensor) -> Any:
    y = x @ W
    return y, (x @ U) * y[:, 40:80]


# What the name says, and how many native steps few rows have.
PROGRAMS: dict[str, tuple[Callable[[Tensor], Any], int]] = {
    "a gated product": (gated, 1),
    "products of several dtypes and widths": (heads, 2),
    "a residual of the same step": (residual, 1),
    "a factor of other columns": (other_columns, 2),
    "products of different arrays": (lambda x: (x @ W, (x * 2.0) @ V), 3),
    "a product of a product": (lambda x: (x @ W)[:, :64] @ V, 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_and_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, steps = PROGRAMS[name]
    jitted = ptir.jit(backend="faer")(function)
    assert jitted.explain(X).report.native_steps == steps
    many = _results(jitted(np.concatenate([X] * 20)))  # none is joined: these are tiled products
    for threads in ("1", "2"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        for mine, theirs in zip(_results(jitted(X)), many, strict=True):
            np.testing.assert_array_equal(mine.view(np.int32), theirs[:2].view(np.int32))


def _results(found: Any) -> list[Any]:
    if isinstance(found, tuple):
        return [np.asarray(result) for result in cast("tuple[Any, ...]", found)]
    return [np.asarray(found)]


def test_a_report_names_each_product() -> None:
    found = ptir.jit(backend="faer")(gated).explain(X).report
    first, second = (step for step in found.steps if step.kind == "call")
    assert first.kernels == ("packed_gemv_f32",)
    assert second.kernels == ("packed_gemv_f32_silu",)
    assert second.note == "with the one before"


def test_a_profile_has_them_as_one_step() -> None:
    jitted = ptir.jit(backend="faer")(gated)
    jitted(X)
    with gptrs.profile() as profile:
        jitted(X)
    (step,) = profile.steps
    assert step.calls == 1
    assert step.result == "f32[2,200], f32[2,200]"
    assert step.flops >= 2 * 2 * 2 * 64 * 200
