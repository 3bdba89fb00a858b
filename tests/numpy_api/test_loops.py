"""fori_loop, map, switch, associative_scan: against Python, traced, eager and mapped."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, PtirError, ShapeError
from gptrs.ir.tensor import Tensor

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((7, 3)).astype(np.float32)


def either(function: Callable[..., Any], *args: Any) -> Any:
    """The result, which is the same traced as it is eager."""
    alone = function(*map(Tensor, args))
    traced = ptir.jit(backend="reference")(function)(*args)
    for a, b in zip(_leaves(alone), _leaves(traced), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return alone


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value.numpy()]


@pytest.mark.parametrize(("lower", "upper"), [(0, 5), (2, 6), (-2, 2), (3, 3), (4, 1)])
def test_fori_loop_counts(lower: int, upper: int) -> None:
    def body(i: Any, state: Any) -> Any:
        return state[0] + i, state[1] * 2 + i

    expected: Any = (0, 1.0)
    for i in range(lower, upper):
        expected = body(i, expected)
    for found in (
        either(lambda x: ptir.fori_loop(lower, upper, body, (0 * x, x)), np.array(1.0)),
        either(lambda n: ptir.fori_loop(lower, n, body, (0, np.array(1.0))), np.array(upper)),
        either(lambda n: ptir.fori_loop(n, upper, body, (0, np.array(1.0))), np.array(lower)),
    ):
        assert [t.item() for t in found] == list(expected)


def test_a_loop_with_bounds_that_differ_by_example() -> None:
    bounds = np.array([3, 0, 5])
    found = ptir.vmap(lambda n: ptir.fori_loop(0, n, lambda i, s: s + i, 0))(bounds)
    assert found.numpy().tolist() == [sum(range(n)) for n in bounds]


@pytest.mark.parametrize("batch_size", [None, 1, 3, 7, 10])
def test_map_stacks_results(batch_size: int | None) -> None:
    def f(x: Any) -> Any:
        return {"sum": x["rows"].sum(), "row": x["rows"] * x["scale"]}

    xs = {"rows": Tensor(X), "scale": Tensor(X[:, 0])}
    for run in (lambda t: ptir.map(f, t, batch_size=batch_size),):
        for found in (run(xs), ptir.jit(backend="reference")(run)(xs)):
            np.testing.assert_allclose(found["sum"].numpy(), X.sum(1), rtol=1e-5)
            np.testing.assert_array_equal(found["row"].numpy(), X * X[:, :1])


BRANCHES = [lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y, lambda x, _: x, max]


@pytest.mark.parametrize("index", range(-1, 6))
@pytest.mark.parametrize("count", [1, 3, 4])
def test_switch_takes_one_branch(index: int, count: int) -> None:
    branches = BRANCHES[:count]
    taken = branches[min(max(index, 0), count - 1)]
    x, y = X[0], X[1]
    found = either(lambda i, x, y: ptir.switch(i, branches, x, y), np.array(index), x, y)
    np.testing.assert_array_equal(found.numpy(), taken(x, y))
    fixed = either(lambda x, y: ptir.switch(index, branches, x, y), x, y)
    np.testing.assert_array_equal(fixed.numpy(), taken(x, y))


def test_a_switch_that_differs_by_example() -> None:
    index = np.array([2, 0, 1, 9])
    found = ptir.vmap(lambda i, x: ptir.switch(i, BRANCHES[:3], x, x))(index, X[:4])
    expected = [BRANCHES[min(i, 2)](x, x) for i, x in zip(index, X, strict=False)]
    np.testing.assert_array_equal(found.numpy(), np.stack(expected))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_of_one_array(n: int, reverse: bool) -> None:
    x = RANDOM.integers(-9, 9, (n, 2))
    step = -1 if reverse else 1
    expected = np.cumsum(x[::step], axis=0)[::step]
    found = either(lambda x: ptir.associative_scan(lambda a, b: a + b, x, reverse=reverse), x)
    np.testing.assert_array_equal(found.numpy(), expected)
    along = either(lambda x: ptir.associative_scan(ptir.add, x, reverse, -1), x.T)
    np.testing.assert_array_equal(along.numpy(), expected.T)


def test_associative_scan_keeps_the_order_of_what_does_not_commute() -> None:
    def compose(f: Any, g: Any) -> Any:
        """x → b·(a·x + c) + d, of f = (a, c) and then g = (b, d)."""
        return g[0] * f[0], g[0] * f[1] + g[1]

    a, c = RANDOM.integers(-3, 4, (2, 9))
    found = either(lambda *maps: ptir.associative_scan(compose, maps), a, c)
    expected = list(accumulate(zip(a, c, strict=True), compose))
    np.testing.assert_array_equal([t.numpy() for t in found], np.transpose(expected))


def test_of_nothing_there_is_nothing() -> None:
    assert ptir.associative_scan(ptir.add, X[:0]).shape == (0, 3)
    assert ptir.map(lambda x: x * 2, X[:0]).shape == (0, 3)
    assert ptir.map(lambda x: x * 2, X[:0], batch_size=4).shape == (0, 3)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: ptir.fori_loop(0.5, 2, max, 0), ShapeError, "lower is f32[], expected an integer"),
        (lambda: ptir.map(abs, X, batch_size=0), ArgumentError, "batch_size is 0"),
        (lambda: ptir.switch(0, []), ArgumentError, "no branches"),
        (lambda: ptir.switch(X[0], [max]), ShapeError, "index is f32[3], expected an integer"),
        (lambda: ptir.associative_scan(max, X, axis=2), ShapeError, "has no axis 2"),
        (lambda: ptir.associative_scan(max, (X, X[:2])), ShapeError, "expected 7 along axis 0"),
        (lambda: ptir.associative_scan(lambda a, b: a[:1], X), ShapeError, "fn returns what it"),
    ],
)
def test_errors(make: Callable[[], Any], error: type[PtirError], text: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)
