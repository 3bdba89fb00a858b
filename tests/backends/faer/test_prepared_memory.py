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
from gptrs.ir.parameter import Parameter

RNG = np.random.default_rng(5)
X = RNG.standard_normal((80, 64)).astype(np.float32)


def weight(columns: int, dtype: Any = np.float32) -> Parameter:
    return Parameter(RNG.standard_normal((64, columns)).astype(dtype), f"w{columns}")


W, V, U, T = weight(200), weight(72), weight(64), weight(200)
NARROW, THIN = weight(96, ml_dtypes.bfloat16), weight(160, ml_dtypes.bfloat16)


def apart(x: Any) -> Any:
    """Products of one array, with a step between them."""
    y = x @ W
    return y, ptir.cumsum(y, axis=0), x @ V


# What the name says, the function, and how many native steps it takes.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "three products of an array": (lambda x: (x @ W, x @ V, x @ U), 4),
    "a gated product": (lambda x: ptir.silu(x @ W) * (x @ T), 3),
    "products in turn": (lambda x: (x @ W, (x * 2) @ V, x @ U), 7),
    "a step between": (apart, 5),
    "a product of a product": (lambda x: (x @ U) @ W, 4),
    "other rows of an array": (lambda x: (x[:40] @ W, x[40:] @ V), 4),
    "weights of other dtypes": (lambda x: (x @ W, x @ ptir.cast(NARROW, dtype=ptir.f32)), 3),
}


def no_contents(*_: Any) -> dict[int, Any]:
    return {}


SHARES = {"three products of an array", "a gated product", "weights of other dtypes"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_and_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, steps = PROGRAMS[name]
    jitted = ptir.jit(backend="faer")(function)
    assert jitted.explain(X).report.native_steps == steps
    with monkeypatch.context() as patch:
        patch.setattr(binding, "prepared_contents", no_contents)
        other = ptir.jit(backend="faer")(lambda x: function(x))
        assert (other.explain(X).report.native_steps > steps) == (name in SHARES)
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
    assert jitted.explain(X).report.native_steps <= 5  # round, (widen,) pack and two products
    for mine, w in zip(jitted(X), (NARROW, THIN), strict=True):
        product = ptir.jit(backend="faer")(lambda x, w=w: x @ ptir.cast(w, dtype=ptir.f32))
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(product(X)))
