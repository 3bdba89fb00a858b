"""Products of the xs of a scan with captured weights are one product before the loop."""

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
from gptrs.ir.program import Instruction, Program
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower

RNG = np.random.default_rng(4)
XS = RNG.standard_normal((7, 2, 12)).astype(np.float32)
W, U = (RNG.standard_normal((12, 12)).astype(np.float32) * 0.2 for _ in range(2))
Body = Callable[[Any, Any, Any, Any], Any]


def scanned(body: Body, *, reverse: bool = False) -> Callable[..., Any]:
    return lambda xs, w, u: ptir.scan(
        lambda h, x: (body(h, x, w, u), h), xs[0], xs, reverse=reverse
    )


def products(function: Callable[..., Any], *arguments: Any, **context: Any) -> tuple[int, int]:
    """How many products are before the loop, and in it."""
    program: Program = lower(
        ptir.jit(function).program(*arguments), Context(ReferenceBackend(), **context)
    )
    (loop,) = (i for i in program.body if i.op.control)

    def count(body: tuple[Instruction, ...]) -> int:
        return sum(i.op.name == "dot_general" for i in body)

    return count(program.body), count(loop.attrs["body"].body)


def rnn(h: Any, x: Any, w: Any, u: Any) -> Any:
    return ptir.tanh(x @ w + h @ u)


def check(function: Callable[..., Any], *arguments: Any) -> None:
    with ptir.eager():
        expected = function(*map(ptir.tensor, arguments))
    for backend in ("faer", "reference"):
        found = ptir.jit(backend=backend)(function)(*arguments)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_projection_of_all_steps_comes_first(reverse: bool) -> None:
    function = scanned(rnn, reverse=reverse)
    assert products(function, XS, W, U) == (1, 1)
    check(function, XS, W, U)


def test_views_of_the_weight_move_along() -> None:
    function = scanned(lambda h, x, w, u: ptir.tanh(x @ w.T[:, ::1] + h @ u))
    assert products(function, XS, W, U) == (1, 1)
    check(function, XS, W, U)


def test_several_projections_and_one_that_is_a_result() -> None:
    def loop(xs: Any, w: Any, u: Any) -> Any:
        return ptir.scan(lambda h, x: (h + x @ w * (x @ u), x @ u), xs[0], xs)

    assert products(loop, XS, W, U) == (2, 0)
    check(loop, XS, W, U)


def test_a_vector_of_each_step() -> None:
    function = scanned(rnn)
    assert products(function, XS[:, 0], W, U) == (1, 1)
    check(function, XS[:, 0], W, U)


@pytest.mark.parametrize(
    "body",
    [
        lambda h, x, w, u: h @ w,  # of the state
        lambda h, x, w, u: w @ x.T @ h,  # from the left
        lambda h, x, w, u: (x * h) @ w,  # of what a step computes
        lambda h, x, w, u: x @ h.T @ x,  # with the state
    ],
)
def test_other_products_stay(body: Body) -> None:
    x = RNG.standard_normal((7, 12, 12)).astype(np.float32) * 0.1
    before, _ = products(scanned(body), x, W, U)
    assert before == 0
    check(scanned(body), x, W, U)


def test_many_rows_and_wide_results_stay() -> None:
    rows = np.ones((3, 128, 12), np.float32)
    assert products(scanned(rnn), rows, W, U) == (0, 2)
    wide = np.ones((12, 49), np.float32)
    loop = lambda xs, w: ptir.scan(lambda h, x: (h + (x @ w).sum(), None), xs[0], xs)[0]
    assert products(loop, XS, wide) == (0, 1)
    assert products(loop, XS, wide[:, :48]) == (1, 0)


def test_precise_programs_keep_their_products() -> None:
    assert products(scanned(rnn), XS, W, U, precise=True) == (0, 2)


def test_rows_have_the_bits_of_a_step() -> None:
    """However many steps there are."""
    function: Any = ptir.jit(scanned(rnn))
    _, whole = function(XS, W, U)
    for steps in (1, 2, 5):
        _, some = function(XS[:steps], W, U)
        np.testing.assert_array_equal(some.numpy(), whole.numpy()[:steps])


def test_any_length_is_one_program() -> None:
    function: Any = ptir.jit(dynamic={"xs": {0: "T"}})(scanned(rnn))
    reference: Any = ptir.jit(backend="reference")(scanned(rnn))
    for steps in (1, 3, 7):
        found, expected = function(XS[:steps], W, U), reference(XS[:steps], W, U)
        np.testing.assert_allclose(found[1].numpy(), expected[1].numpy(), rtol=1e-5, atol=1e-5)
    assert function.cache_info().misses == 1


def test_a_projection_of_symbolic_width_stays() -> None:
    function: Any = ptir.jit(dynamic={"w": {0: "S"}})(
        lambda xs, w: ptir.scan(lambda h, x: (h, ptir.einsum("k,sko->so", x, w)), 0.0, xs)[1]
    )
    w = np.random.default_rng(3).standard_normal((5, 12, 2)).astype(np.float32)
    for width in (1, 2, 5):
        found, expected = (
            function(XS[:, 0], w[:width]),
            np.einsum("tk,sko->tso", XS[:, 0], w[:width]),
        )
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
