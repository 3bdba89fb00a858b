"""Prepared memory: which products share packed rows, and that they keep their bits."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import binding
from gptrs.backends.faer.calls import base, product
from gptrs.ir.parameter import Parameter
from gptrs.kernels.compiler import isa
from gptrs.kernels.gemm.bf16_pairs import multiplies_bf16
from gptrs.kernels.gemm.packed_gemv import packed_gemv_kernel
from gptrs.kernels.gemm.packing import pack_rows_kernel

RNG = np.random.default_rng(5)
X = RNG.standard_normal((80, 64)).astype(np.float32)


def weight(columns: int, dtype: Any = np.float32) -> Parameter:
    return Parameter(RNG.standard_normal((64, columns)).astype(dtype), f"w{columns}")


W, V, U, T = weight(200), weight(72), weight(64), weight(200)
NARROW, THIN = weight(96, ml_dtypes.bfloat16), weight(160, ml_dtypes.bfloat16)


def with_a_step(x: Any) -> Any:
    """Products of one array, with a step between them."""
    y = x @ W
    return y, ptir.cumsum(y, axis=0), x @ V


# What the name says: the function, how many native steps it takes, and how many without sharing.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], int, int]] = {
    "three products of an array": (lambda x: (x @ W, x @ V, x @ U), 4, 6),
    "a gated product": (lambda x: ptir.silu(x @ W) * (x @ T), 3, 4),
    "products in turn": (lambda x: (x @ W, (x * 2) @ V, x @ U), 7, 7),
    "a step between": (with_a_step, 5, 5),
    "a product of a product": (lambda x: (x @ U) @ W, 4, 4),
    "other rows of an array": (lambda x: (x[:40] @ W, x[40:] @ V), 4, 4),
    "weights of other dtypes": (lambda x: (x @ W, x @ ptir.cast(NARROW, dtype=ptir.f32)), 3, 4),
}


def no_contents(*_: Any) -> dict[int, Any]:
    return {}


@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_and_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, steps, apart = PROGRAMS[name]
    jitted = ptir.jit(backend="faer")(function)
    assert jitted.explain(X).report.native_steps == steps
    with monkeypatch.context() as patch:
        patch.setattr(binding, "prepared_contents", no_contents)
        other = ptir.jit(backend="faer")(lambda x: function(x))
        assert other.explain(X).report.native_steps == apart
        alone = results(other(X))
    for threads in ("1", "2"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        for mine, theirs in zip(results(jitted(X)), alone, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def results(found: Any) -> list[Any]:
    return [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]


def test_rows_are_rounded_and_paired_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_BF16_PRODUCTS", "1")

    def both(x: Any) -> Any:
        return x @ ptir.cast(NARROW, dtype=ptir.f32), x @ ptir.cast(THIN, dtype=ptir.f32)

    jitted = ptir.jit(backend="faer")(both)
    # They are rounded, widened where there are no pairs, and packed, for two products.
    expected = 4 if multiplies_bf16(isa.current()) else 5
    assert jitted.explain(X).report.native_steps == expected
    for mine, w in zip(jitted(X), (NARROW, THIN), strict=True):
        alone = ptir.jit(backend="faer")(lambda x, w=w: x @ ptir.cast(w, dtype=ptir.f32))
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(alone(X)))


def test_few_rows_make_no_kernel_that_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def kernel(builder: Any, *given: Any) -> Any:
        made.append(builder)
        return base.kernel(builder, *given)

    monkeypatch.setattr(product, "kernel", kernel)
    np.asarray(ptir.jit(backend="faer")(lambda x: x @ W)(X[:1]))
    assert packed_gemv_kernel in made
    assert pack_rows_kernel not in made
