"""cond, while_loop and scan: Python numbers among operands and in the state, and eager mode."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir

X = np.array([1, 2, 3], np.float32)


NUMBERS: list[tuple[Callable[[Any], Any], tuple[str, ...]]] = [
    (lambda x: ptir.cond(x.sum() > 0, lambda: 1, lambda: 2), ("si64[]",)),
    (lambda x: ptir.cond(x.sum() > 0, lambda: 1, lambda: 2.5), ("f64[]",)),
    (lambda x: ptir.cond(x.sum() < 0, lambda: x[0], lambda: 2), ("f32[]",)),
    (lambda x: ptir.cond(x.sum() > 0, lambda n: n + 1, lambda n: n, 3), ("si64[]",)),
    (lambda x: ptir.while_loop(lambda s: s < 4, lambda s: s + 1, 0), ("si64[]",)),
    (lambda x: ptir.while_loop(lambda s: s < 4, lambda s: s + x[0], 0), ("f32[]",)),
    (lambda x: ptir.while_loop(lambda s: s < 0, lambda s: s + x[0], 0), ("f32[]",)),
    (lambda x: ptir.while_loop(lambda s: s < 4, lambda s: s * 0.5 + 9, 1.0), ("f64[]",)),
    (lambda x: ptir.while_loop(lambda s: s < x[1], lambda s: s + 1, x[0]), ("f32[]",)),
    (lambda x: ptir.while_loop(lambda s: s[0] < 3, lambda s: (s[1], s[0] + 1), (0, 0.0)),
     ("f64[]", "f64[]")),
    (lambda x: ptir.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[2], s[1] + x[0]),
                               (0, 1, 2)), ("si64[]", "f32[]", "f32[]")),
    (lambda x: ptir.while_loop(lambda s: s, lambda s: ~s, True), ("i1[]",)),
    (lambda x: ptir.scan(lambda s, r: (s + r, 1), 0, x), ("f32[]", "si64[3]")),
    (lambda x: ptir.scan(lambda s, r: (s + r, s), 0, x[:0]), ("f32[]", "f32[0]")),
    (lambda x: ptir.scan(lambda s, r: (0, s), x[0], x), ("f32[]", "f32[3]")),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(NUMBERS)))
def test_numbers_take_the_dtype_that_they_meet(number: int) -> None:
    function, expected = NUMBERS[number]
    plain = function(ptir.tensor(X))
    with ptir.eager():
        eager = ptir.jit(function)(X)
    traced = ptir.jit(function)(X)
    for found in (plain, eager, traced):
        several: tuple[Any, ...] = found if isinstance(found, tuple) else (found,)
        ours: tuple[Any, ...] = plain if isinstance(plain, tuple) else (plain,)
        assert tuple(str(t.type) for t in several) == expected
        assert [t.weak for t in several] == [t.weak for t in ours]
        assert [t.tolist() for t in several] == [t.tolist() for t in ours]


def test_eager_mode_runs_step_by_step() -> None:
    seen: list[float] = []

    def body(state: Any) -> Any:
        seen.append(state.item())
        return state * 2

    def loop(x: Any) -> Any:
        return ptir.while_loop(lambda s: s < 9, body, x)

    with ptir.eager():
        assert ptir.jit(loop)(np.array(1, np.float32)).item() == 16
        total, _ = ptir.jit(
            lambda x: ptir.scan(lambda s, r: (s + r.item(), seen.append(r.item())), 0.0, x)
        )(X)
    assert total.item() == 6
    assert seen == [1, 2, 4, 8, 1, 2, 3]


def test_eager_mode_runs_one_branch() -> None:
    ran: list[str] = []

    def branch(name: str, x: Any) -> Any:
        if not x.is_traced:
            ran.append(name)
        return x.item() if name == "looks" else x

    def choose(flag: Any, x: Any) -> Any:
        return ptir.cond(flag, lambda x: branch("a", x), lambda x: branch("b", x), x)

    with ptir.eager():
        for flag in (True, False):
            ptir.jit(choose)(np.bool_(flag), X)
        ptir.jit(lambda x: ptir.cond(x > 9, lambda x: x, lambda x: branch("looks", x), x))(X[0])
        ptir.jit(lambda x: ptir.cond(x < 9, lambda x: x, lambda x: branch("looks", x), x))(X[0])
    assert ran == ["a", "b", "looks"]


def test_eager_mode_passes_over_a_branch_that_fails_when_it_is_not_taken() -> None:
    def function(x: Any) -> Any:
        return ptir.cond(x > 0, lambda: x * 2, lambda: x + 1 // int(x.item() - 1))

    with ptir.eager():
        assert ptir.jit(function)(X[0]).item() == 2
