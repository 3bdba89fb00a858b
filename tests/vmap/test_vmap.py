"""``ptir.vmap``: axes, trees, nesting, jit, models, errors."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, PtirError, ShapeError, TraceError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.nn.layers import Linear

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((5, 3, 4)).astype(np.float32)
W = RANDOM.standard_normal((4, 2)).astype(np.float32)


def scores(x: Any, w: Any) -> Any:
    return ptir.softmax(x @ w, axis=0)


def looped(function: Callable[..., Any], *columns: Any) -> Any:
    return np.stack([function(*map(Tensor, each)).numpy() for each in zip(*columns, strict=True)])


SCORES = looped(lambda x: scores(x, Tensor(W)), X)
WAYS: dict[str, Callable[..., Any]] = {
    "alone": lambda f, *axes: ptir.vmap(f, *axes),
    "in jit": lambda f, *axes: ptir.jit(ptir.vmap(f, *axes)),
    "around jit": lambda f, *axes: ptir.vmap(ptir.jit(f), *axes),
    "eager": lambda f, *axes: _eagerly(ptir.jit(ptir.vmap(f, *axes))),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))


def _eagerly(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        with ptir.eager():
            return function(*args)

    return run


@each_way
def test_one_argument_is_mapped_and_one_shared(way: Any) -> None:
    found = way(scores, (0, None))(X, W)
    np.testing.assert_allclose(found.numpy(), SCORES, rtol=1e-5)


@pytest.mark.parametrize(("axis", "out"), [(0, 0), (1, 2), (2, -1), (-1, 1), (-3, -3)])
def test_axes_may_lie_anywhere(axis: int, out: int) -> None:
    given = np.moveaxis(X, 0, axis)
    found = ptir.vmap(scores, in_axes=(axis, None), out_axes=out)(given, W)
    np.testing.assert_allclose(np.moveaxis(found.numpy(), out, 0), SCORES, rtol=1e-5)


@each_way
def test_trees_go_in_and_out(way: Any) -> None:
    def step(state: dict[str, Any], shift: Any) -> dict[str, Any]:
        return {"sum": (state["a"] + state["b"] * shift, state["b"]), "one": 1.0, "none": None}

    a, b, shift = X[:, 0], X[0, 1], X[:, 1].T
    axes = ({"a": 0, "b": None}, 1)
    found = way(step, axes, {"sum": (1, 0), "one": 0, "none": None})({"a": a, "b": b}, shift)
    np.testing.assert_allclose(found["sum"][0].numpy().T, a + b * shift.T, rtol=1e-6)
    np.testing.assert_array_equal(found["sum"][1].numpy(), np.stack([b] * 5))
    assert found["none"] is None
    np.testing.assert_array_equal(found["one"].numpy(), np.ones(5, np.float32))


def test_keywords_lie_along_their_first_axis() -> None:
    found = ptir.vmap(lambda x, *, scale: x * scale)(X, scale=X[:, 0, 0])
    np.testing.assert_array_equal(found.numpy(), X * X[:, :1, :1])


@each_way
def test_defaults_are_shared(way: Any) -> None:
    def scaled(x: Any, factor: float = 3.0) -> Any:
        return x * factor

    assert way(scaled)(X).tolist() == (X * 3).tolist()
    assert way(scaled, (1,), 1)(X).tolist() == (X * 3).tolist()


@each_way
def test_maps_nest(way: Any) -> None:
    def pairwise(x: Any, y: Any) -> Any:
        rows = ptir.vmap(lambda a, b: ((a - b) ** 2).sum(), in_axes=(None, 0))
        return ptir.vmap(rows, in_axes=(0, None))(x, y)

    found = way(pairwise, (0, 0), 1)(X, X[::-1])
    difference = X[:, :, None] - X[::-1][:, None]
    expected = np.moveaxis((difference**2).sum(-1), 0, 1)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


def test_what_is_the_same_for_all_stays_one() -> None:
    found = ptir.vmap(lambda x, w: (x, w * 2), in_axes=(0, None), out_axes=(0, None))(X, W)
    np.testing.assert_array_equal(found[1].numpy(), W * 2)


def test_values_from_around_are_shared() -> None:
    weight = Tensor(W)

    @ptir.jit
    def run(x: Any, shift: Any) -> Any:
        doubled = shift * 2
        return ptir.vmap(lambda row: ptir.vmap(lambda e: e @ weight + doubled)(row))(x)

    found = run(X, W[0])
    np.testing.assert_allclose(found.numpy(), X @ W + W[0] * 2, rtol=1e-5, atol=1e-6)


def test_the_batch_may_be_symbolic() -> None:
    run = ptir.jit(dynamic={"x": {0: "B"}})(lambda x: ptir.vmap(lambda e: scores(e, W)[0])(x))
    for count in (5, 2, 1):
        np.testing.assert_allclose(run(X[:count]).numpy(), SCORES[:count, 0], rtol=1e-5)
    assert len(run.retraces()) == 1


def test_a_stack_of_models_is_an_ensemble() -> None:
    weights = RANDOM.standard_normal((5, 2, 4)).astype(np.float32)
    models = [Linear(Parameter(w)) for w in weights]
    stacked = Linear(Parameter(weights))
    found = ptir.vmap(lambda model, x: model(x), in_axes=(0, None))(stacked, X[0])
    expected = np.stack([m(Tensor(X[0])).numpy() for m in models])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_numbers_and_text_that_all_share_stay_what_they_are() -> None:
    def step(x: Any, count: int, mode: str) -> Any:
        for _ in range(count):
            x = x * 2 if mode == "double" else x
        return x

    found = ptir.vmap(step, in_axes=(0, None, None))(X, 3, "double")
    np.testing.assert_array_equal(found.numpy(), X * 8)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: ptir.vmap(scores)(X, W), ShapeError, "x has 5 along axis 0, w has 4 along axis 0"),
        (lambda: ptir.vmap(scores, in_axes=None)(X, W), ArgumentError, "nothing is mapped"),
        (lambda: ptir.vmap(scores, (3, None))(X, W), ShapeError, "maps axis 3 of x, which is f32"),
        (lambda: ptir.vmap(scores, (0,))(X, W), ArgumentError, "1 entries, the call 2"),
        (lambda: ptir.vmap(scores)(X, 2.0), ArgumentError, "w is 2.0, which has no axis to map"),
        (lambda: ptir.vmap(scores, (0, "w"))(X, W), ArgumentError, "'w' for w, expected an axis"),
        (lambda: ptir.vmap(scores, (0, (0, 1)))(X, W), ArgumentError, "keys [0, 1] for w, which"),
        (lambda: ptir.vmap(scores, (0, None), None)(X, W), ArgumentError, "differs by example"),
        (lambda: ptir.vmap(scores, (0, None), 3)(X, W), ShapeError, "out_axes has 3"),
        (lambda: ptir.vmap(3), ArgumentError, "takes a function, found 3"),  # pyright: ignore[reportArgumentType]
        (lambda: ptir.vmap(lambda x: x @ W.T)(X), ShapeError, "contracted axes differ"),
        (lambda: ptir.vmap(lambda x: float(x[0, 0]))(X), TraceError, "x"),
    ],
)
def test_errors_say_what_was_found_and_expected(
    make: Callable[[], Any], error: type[PtirError], text: str
) -> None:
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)
    assert "test_vmap.py" in str(caught.value)


def test_an_op_without_a_rule_says_how_to_give_it_one() -> None:
    @ptir.primitive
    def reversed_rows(x: Tensor) -> ptir.Type:
        """The first axis backwards."""
        return x.type

    reversed_rows.numpy(lambda x: x[::-1])
    try:
        with pytest.raises(ArgumentError, match="reversed_rows has no batching rule"):
            ptir.vmap(reversed_rows)(X)
        reversed_rows.batching(lambda size, mapped, x: ptir.flip(x, axis=1))
        np.testing.assert_array_equal(ptir.vmap(reversed_rows)(X).numpy(), X[:, ::-1])
    finally:
        ptir.unregister(reversed_rows)
