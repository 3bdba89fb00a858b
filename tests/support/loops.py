"""Loops over arrays [9, 12], with a product in each iteration, and their results step by step."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import native_loops
from gptrs.backends.faer.plan import FaerPlan
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array

RNG = np.random.default_rng(7)
W = (0.1 * RNG.standard_normal((12, 12))).astype(np.float32)
H, G = (RNG.standard_normal((9, 12)).astype(np.float32) for _ in range(2))
XS = RNG.standard_normal((5, 9, 12)).astype(np.float32)


def recurrence(h: Tensor, xs: Tensor, w: Tensor) -> Any:
    def body(h: Tensor, x: Tensor) -> Any:
        h = ptir.tanh(h @ w + x)
        return h, h

    return ptir.scan(body, h, xs)


def backwards(h: Tensor, xs: Tensor, w: Tensor) -> Any:
    def body(h: Tensor, x: Tensor) -> Any:
        return ptir.tanh(h @ w + x), h - x

    return ptir.scan(body, h, xs, reverse=True)


def swapped(h: Tensor, xs: Tensor, w: Tensor) -> Any:
    def body(state: Any, x: Tensor) -> Any:
        a, b = state
        return (b, a @ w + x), None

    return ptir.scan(body, (h, h * 2), xs)


def unchanged_and_passed_on(h: Tensor, xs: Tensor, w: Tensor) -> Any:
    def body(state: Any, x: Tensor) -> Any:
        kept, _, total = state
        return (kept, x, total + kept @ w), (x, kept, total)

    return ptir.scan(body, (h, h, h * 0), xs)


def constants(h: Tensor, xs: Tensor, w: Tensor) -> Any:
    table = np.arange(9 * 12, dtype=np.float32).reshape(9, 12)

    def body(state: Any, x: Tensor) -> Any:
        a, _ = state
        return (a @ w + x, ptir.tensor(table)), ptir.tensor(table)

    return ptir.scan(body, (h, h), xs)


def cache(h: Tensor, xs: Tensor, w: Tensor) -> Any:
    def body(state: Any, x: Tensor) -> Any:
        n, kept = state
        kept = ptir.dynamic_update_slice(kept, (x @ w)[None], (n, 0, 0))
        return (n + 1, kept), ptir.reduce_sum(kept, axes=0)

    return ptir.scan(body, (ptir.tensor(0), xs * 0), xs)


def counted(h: Tensor, xs: Tensor, w: Tensor) -> Any:
    def goes_on(state: Any) -> Tensor:
        return state[0] < 7

    def body(state: Any) -> Any:
        n, a = state
        return n + 1, ptir.tanh(a @ w) + 1

    return ptir.while_loop(goes_on, body, (ptir.tensor(0), h))


def until_small(h: Tensor, xs: Tensor, w: Tensor) -> Any:
    def goes_on(a: Tensor) -> Tensor:
        return ptir.reduce_max(ptir.abs(a)) > 1e-3

    return ptir.while_loop(goes_on, lambda a: a @ w, h)


def while_flag(h: Tensor, xs: Tensor, w: Tensor) -> Any:
    def body(state: Any) -> Any:
        _, a = state
        a = a @ w
        return ptir.reduce_max(ptir.abs(a)) > 0.01, a

    return ptir.while_loop(lambda state: state[0], body, (ptir.tensor(True), h))


def nested(h: Tensor, xs: Tensor, w: Tensor) -> Any:
    def body(h: Tensor, x: Tensor) -> Any:
        inner, _ = ptir.scan(lambda a, y: (ptir.tanh(a @ w + y), None), h, xs)
        return inner + x, None

    return ptir.scan(body, h, xs)


FUNCTIONS = [
    *(recurrence, backwards, swapped, unchanged_and_passed_on, constants, cache, counted),
    *(until_small, while_flag, nested),
]


def leaves(tree: Any) -> list[Array]:
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [] if tree is None else [tree.numpy()]


def step_by_step(function: Callable[..., Any], *arguments: Any) -> list[Array]:
    """The results where Python runs each iteration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FaerPlan, "repeat", lambda *_: None)
        patch.setattr(native_loops, "bind_loop", lambda *_: None)
        return leaves(ptir.jit(function)(*arguments))


def same_bits(found: list[Array], expected: list[Array]) -> None:
    assert [(a.shape, a.tobytes()) for a in found] == [(a.shape, a.tobytes()) for a in expected]
