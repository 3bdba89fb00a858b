"""What all iterations of a loop share is computed before it."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.reference import ReferenceBackend
from gptrs.errors import ElementError
from gptrs.ir.program import Instruction, Program
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower

RNG = np.random.default_rng(3)
X, W = (RNG.standard_normal((12, 12)).astype(np.float32) for _ in range(2))


def loop_of(function: Callable[..., Any], *arguments: Any) -> tuple[list[str], Instruction]:
    """The ops before the loop of an optimised program, and the loop."""
    program: Program = lower(ptir.jit(function).program(*arguments), Context(ReferenceBackend()))
    names = [i.op.name for i in program.body]
    at = next(n for n, i in enumerate(program.body) if i.op.control)
    return names[:at], program.body[at]


def inside(loop: Instruction, name: str = "body") -> list[str]:
    return [i.op.name for i in loop.attrs[name].body]


def check(function: Callable[..., Any], *arguments: Any) -> None:
    """All ways give the values of eager mode."""
    with ptir.eager():
        expected = function(*map(ptir.tensor, arguments)).numpy()
    for backend in ("faer", "reference"):
        found = ptir.jit(backend=backend)(function)(*arguments).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def scanned(body: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    return lambda x, w: ptir.scan(lambda h, y: (body(h, y, w), None), x, x[:3])[0]


def test_arithmetic_moves() -> None:
    function = scanned(lambda h, y, w: ptir.tanh(h * 0.1 + y + ptir.exp(w * 0.5) * 0.01))
    before, loop = loop_of(function, X, W)
    assert before[-3:] == ["mul", "exp", "mul"]
    assert "exp" not in inside(loop)
    check(function, X, W)


def test_products_and_sums_move_with_the_views_that_they_read() -> None:
    function = scanned(lambda h, y, w: h * 0.5 + y + (w.T @ w).sum(0) * 1e-3)
    before, loop = loop_of(function, X, W)
    assert "dot_general" in before
    assert "dot_general" not in inside(loop)
    check(function, X, W)


def test_out_of_nested_loops() -> None:
    def function(x: Any, w: Any) -> Any:
        def outer(h: Any, y: Any) -> Any:
            inner = ptir.scan(lambda a, _: (a * 0.5 + ptir.exp(w), None), h, length=2)[0]
            return inner + y, None

        return ptir.scan(outer, x, x[:3])[0]

    before, loop = loop_of(function, X, W)
    assert "exp" in before
    assert "exp" not in str(loop.attrs["body"])
    check(function, X, W)


def test_out_of_conditions() -> None:
    def function(x: Any, w: Any) -> Any:
        def goes_on(a: Any) -> Any:
            return (a.sum() < 40) & (ptir.exp(w).sum() > 0)

        return ptir.while_loop(goes_on, lambda a: a + ptir.exp(w), x)

    before, loop = loop_of(function, X, W)
    assert "exp" in before
    assert "exp" not in inside(loop, "condition") + inside(loop)
    check(function, X, W)


@pytest.mark.parametrize(
    "body",
    [
        lambda h, y, w: h + y + w[0],  # a view
        lambda h, y, w: h + y + w[0, 0] * 2,  # few elements
        lambda h, y, w: ptir.tanh(h * w + y),  # nothing is shared
    ],
)
def test_what_stays(body: Callable[..., Any]) -> None:
    before, loop = loop_of(scanned(body), X, W)
    assert len(loop.operands[-1]) == 1  # pyright: ignore[reportArgumentType]
    assert set(before) <= {"slice"}
    check(scanned(body), X, W)


def test_what_may_fail_stays() -> None:
    """A loop without an iteration raises nothing."""

    def function(x: Any, rows: Any, n: Any) -> Any:
        def body(state: Any) -> Any:
            k, h = state
            return k + 1, h + ptir.take(x, rows, axis=0)

        return ptir.while_loop(lambda s: s[0] < n, body, (ptir.tensor(0), x))[1]

    rows = np.full(12, 99, np.int32)
    made = ptir.jit(function)
    assert made(X, rows, np.int64(0)).numpy().tobytes() == X.tobytes()
    with pytest.raises(ElementError, match="99"):
        made(X, rows, np.int64(1))
