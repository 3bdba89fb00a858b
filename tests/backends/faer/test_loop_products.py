"""Small products are parts of a loop's kernel, with the bits of products of their own."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import loop_products
from gptrs.ir.parameter import Parameter

RNG = np.random.default_rng(3)


def drawn(*shape: int, dtype: str = "float32") -> Any:
    return (0.3 * RNG.standard_normal(shape)).astype(dtype)


def kinds(function: Any, *given: Any) -> list[str]:
    return [step.kind for step in function.explain(*given).report.steps]


def cell(h: Any, xs: Any, w: Any) -> Any:
    def body(h: Any, x: Any) -> Any:
        h = ptir.tanh(h @ w + x)
        return h, h

    return ptir.scan(body, h, xs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (1, 130), (3, 33), (9, 16), (9, 130)])
def test_products_of_rows(
    rows: int, width: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [
        drawn(*shape, dtype=dtype) for shape in ((rows, width), (4, rows, width), (width, width))
    ]
    given[2] /= width**0.5
    found: Any = ptir.jit(cell)
    last, ys = found(*given)
    assert kinds(found, *given).count("loop") == (rows * width * width <= 1 << 17)
    monkeypatch.setattr(loop_products, "MOST_OPERATIONS", 0)
    alone: Any = ptir.jit(cell)
    if rows * width > 1:
        assert "loop" not in kinds(alone, *given)
    if width > 1:  # a product with one column has an order of its own
        np.testing.assert_array_equal(last.numpy(), alone(*given)[0].numpy())
        np.testing.assert_array_equal(ys.numpy(), alone(*given)[1].numpy())
    expected: Any = ptir.jit(backend="reference")(cell)
    np.testing.assert_allclose(last.numpy(), expected(*given)[0].numpy(), rtol=1e-5, atol=1e-6)


def matrix_by_vector(w: Any, h: Any) -> Any:
    return ptir.scan(lambda h, _: (ptir.tanh(w @ h), h), h, length=5)[0]


def rows_of_a_linear_layer(w: Any, h: Any) -> Any:
    return ptir.scan(lambda h, _: (ptir.tanh(h[None] @ w.T)[0], h), h, length=5)[0]


def dot_products(w: Any, h: Any) -> Any:
    return ptir.scan(lambda h, _: (h * (h @ h) + w[0], h), h, length=3)[0]


def product_of_states(w: Any, h: Any) -> Any:
    def body(p: Any, _: Any) -> Any:
        return ptir.tanh(w @ p @ w.T + p), None

    return ptir.scan(body, w, length=4)[0] @ h


def both_layouts(w: Any, h: Any) -> Any:
    def body(p: Any, _: Any) -> Any:
        return ptir.tanh(p.T @ w - w @ p), None

    return ptir.scan(body, w, length=4)[0] @ h


def steps_by_while(w: Any, h: Any) -> Any:
    def body(state: Any) -> Any:
        n, h = state
        return n + 1, w @ h / ptir.reduce_max(ptir.abs(w @ h))

    return ptir.while_loop(lambda s: s[0] < 7, body, (ptir.tensor(0), h))[1]


def nested(w: Any, h: Any) -> Any:
    def outer(h: Any, _: Any) -> Any:
        inner = ptir.scan(lambda a, _: (ptir.tanh(w @ a), None), h, length=2)[0]
        return ptir.cond(inner.sum() > 0, lambda: inner @ w, lambda: w @ inner), None

    return ptir.scan(outer, h, length=3)[0]


def least_squares(w: Any, h: Any) -> Any:
    """Gradient descent, with the gradient spelled out."""
    b = h * 0 + 1
    return ptir.scan(lambda x, _: (x - 0.1 * (w.T @ (w @ x - b)), None), h, length=6)[0]


FUNCTIONS = [
    *(matrix_by_vector, rows_of_a_linear_layer, dot_products, product_of_states),
    *(both_layouts, steps_by_while, nested, least_squares),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [3, 40])
def test_layouts(function: Any, dtype: str, width: int) -> None:
    given = drawn(width, width, dtype=dtype) / width**0.5, drawn(width, dtype=dtype)
    found: Any = ptir.jit(function)
    expected: Any = ptir.jit(backend="reference")(function)
    exact = {"float32": 2e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(
        found(*given).numpy(), expected(*given).numpy(), rtol=exact, atol=exact
    )
    steps = kinds(found, *given)
    assert "loop" in steps
    assert "control" not in steps


def test_weights_of_a_model_and_zero_iterations() -> None:
    w = Parameter(drawn(24, 24))
    function: Any = ptir.jit(lambda h, xs: cell(h, xs, w))
    h = drawn(1, 24)
    last, ys = function(h, np.zeros((0, 1, 24), np.float32))
    np.testing.assert_array_equal(last.numpy(), h)
    assert ys.shape == (0, 1, 24)


def test_large_products_are_steps() -> None:
    given = drawn(64, 64), drawn(2, 64, 64), drawn(64, 64)
    function: Any = ptir.jit(cell)
    function(*given)
    assert "control" in kinds(function, *given)
