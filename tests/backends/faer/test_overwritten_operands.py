"""Regions whose result takes the memory of an operand that no later step reads."""

# Traced functions take any array.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir

N = 48
DRAWN: Any = np.random.default_rng(0).standard_normal((2, N, N)).astype(np.float32)
X, Y = DRAWN[0], DRAWN[1]


def ordered(x: Any) -> Any:
    return ptir.sort(x, axis=1)


def distances(x: Any, y: Any) -> Any:
    return (x * x).sum(1)[:, None] - (x @ y.T) * 2 + (y * y).sum(1)[None]


def with_rows_sorted(x: Any) -> Any:
    return ptir.exp(ordered(x)) * x


def returned_too(x: Any, y: Any) -> Any:
    product = x @ y
    return ptir.exp(product) - x, product


def read_elsewhere(x: Any, y: Any) -> Any:
    product = x @ y
    return ptir.exp(product) - x, (product @ y) * 2 + x


def transposed(x: Any, y: Any) -> Any:
    return ptir.exp((x @ y).T) - x


def reversed_rows(x: Any, y: Any) -> Any:
    return ptir.exp((x @ y)[::-1]) - x


def of_sums(x: Any, y: Any) -> Any:
    product = x @ y
    return ptir.exp(product) - product.sum(1, keepdims=True)


def of_a_part(x: Any, y: Any) -> Any:
    """Of columns in order, of which all rows are computed."""
    return ptir.exp(ptir.take_along_axis(x, ptir.argsort(x, axis=0), 0)[:5]) - y[:5]


def of_softmax(x: Any, y: Any) -> Any:
    """The exponentials are in the memory of the result while the row is read."""
    return ptir.softmax(ptir.sin(x @ y) * x)


def of_a_narrower_result(x: Any, y: Any) -> Any:
    return (ptir.exp(x @ y) - x).astype(ptir.f16)


CASES: dict[Any, tuple[tuple[Any, ...], bool]] = {
    distances: ((X, Y), True),
    with_rows_sorted: ((X,), True),
    returned_too: ((X, Y), True),  # both are in memory of their own
    read_elsewhere: ((X, Y), False),
    transposed: ((X, Y), False),
    reversed_rows: ((X, Y), False),
    of_sums: ((X, Y), False),
    of_a_part: ((X, Y), False),
    of_softmax: ((X, Y), False),
    of_a_narrower_result: ((X, Y), False),
}


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_memory(function: Any) -> None:
    arguments, saved = CASES[function]
    jitted: Any = ptir.jit(backend="faer")(function)
    report = jitted.explain(*arguments).report
    assert all(each.bytes < N * N * 4 for each in report.arena) is saved
    found = jitted(*arguments)
    expected = ptir.jit(backend="reference")(function)(*arguments)
    for ours, theirs in zip(results(found), results(expected), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-3, atol=2e-4)


def results(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_arguments_stay() -> None:
    """Of an argument nothing is overwritten, nor of its reshaped array."""
    x = X.copy()
    function: Any = ptir.jit(lambda x: ptir.exp(x.reshape(-1)) * 2)
    function(x)
    np.testing.assert_array_equal(x, X)


def test_chains() -> None:
    """A region in place overwrites the result of one in place; calls have results of their own."""
    function: Any = ptir.jit(lambda x, y: ptir.exp(ordered(ptir.exp(x @ y) - x)) * y)
    first = function(X, Y).numpy().copy()
    second = function(Y, X).numpy()
    again = function(X, Y)
    np.testing.assert_array_equal(again.numpy(), first)
    assert not np.shares_memory(again.numpy(), second)
