"""Jitted functions: kinds of callables, options, modules, and results."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.ir.parameter import Parameter
from gptrs.nn.module import Module
from tests.support.jitted import F32, X, array, equal, plus


class Affine(Module):
    weight: Parameter
    bias: Parameter
    factor: float = 1.0

    @ptir.jit
    def __call__(self, x: Any) -> Any:
        return (x * self.weight + self.bias) * self.factor

    @ptir.jit(name="reversed")
    def backwards(self, x: Any) -> Any:
        return (x - self.bias) / self.weight


class Plain:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @ptir.jit
    def scale(self, x: Any) -> Any:
        return x * self.factor

    @staticmethod
    @ptir.jit
    def double(x: Any) -> Any:
        return x * 2.0

    @classmethod
    @ptir.jit
    def triple(cls, x: Any) -> Any:
        return x * cls.three()

    @classmethod
    def three(cls) -> float:
        return 3.0

    def __call__(self, x: Any) -> Any:
        return x + self.factor


def affine(weight: float, bias: float, factor: float = 1.0) -> Affine:
    def parameter(value: float) -> Parameter:
        return Parameter(np.full(3, value, np.float32), "w")

    return Affine(parameter(weight), parameter(bias), factor)


JITTED = ptir.jit(plus)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: JITTED(X, X), X + X),
        (lambda: JITTED(y=X, x=X, times=3), (X + X) * 3),
        (lambda: ptir.jit(functools.partial(plus, times=2.0))(X, X), (X + X) * 2),
        (lambda: ptir.jit(functools.partial(plus, X))(X), X + X),
        (lambda: ptir.jit(Plain(4.0))(X), X + 4),
        (lambda: ptir.jit(Plain(4.0).__call__)(X), X + 4),
        (lambda: ptir.jit(lambda x: x - 1.0)(X), X - 1),
        (lambda: ptir.jit(JITTED)(X, X), X + X),
        (lambda: ptir.jit()(plus)(X, X), X + X),
        (lambda: Plain(3.0).scale(X), X * 3),
        (lambda: Plain.double(X), X * 2),
        (lambda: Plain(1.0).double(X), X * 2),
        (lambda: Plain.triple(X), X * 3),
        (lambda: affine(2.0, 1.0)(X), X * 2 + 1),
        (lambda: affine(2.0, 1.0).backwards(X), (X - 1) / 2),
        (lambda: map(Plain(3.0).scale, [X]).__next__(), X * 3),
    ],
)
def test_everything_that_can_be_called(function: Callable[[], Any], expected: F32) -> None:
    equal(function(), expected)


def test_names_and_text() -> None:
    assert JITTED.name == "plus"
    assert "plus(x: " in repr(JITTED)
    assert JITTED.__doc__ == plus.__doc__
    assert Affine.backwards.name == "reversed"
    assert str(JITTED.program(X, X)).count("reversed") == 0
    assert "reversed" in str(Affine.backwards.program(affine(1, 1), X))


def test_a_callable_object_does_not_write_into_the_wrapper() -> None:
    scale = Plain(2.0)
    vars(scale).update(name="mine", _cache=None, _options=None)
    function = ptir.jit(scale)
    equal(function(X), X + 2)
    assert function.name != "mine"


def test_options_that_do_not_fit() -> None:
    wrong: list[dict[str, Any]] = [{"donate": "z"}, {"dynamic": {"z.keys": {0: "S"}}}]
    for options in wrong:
        with pytest.raises(ArgumentError, match="names 'z'"):
            ptir.jit(**options)(plus)
    with pytest.raises(ArgumentError, match="no backend 'gpu'"):
        ptir.jit(backend="gpu")(plus)
    target: Any
    for target in (3, staticmethod(plus), classmethod(plus)):
        with pytest.raises(ArgumentError, match=r"ptir\.jit (takes|found)"):
            ptir.jit(target)

    def generator(x: Any) -> Any:
        yield x

    with pytest.raises(ArgumentError, match="generator"):
        ptir.jit(generator)


def test_nested_functions_are_one_program() -> None:
    @ptir.jit
    def inner(x: Any, flag: bool = False) -> Any:
        return x * 2.0 if flag else x

    @ptir.jit
    def outer(x: Any) -> Any:
        return inner(x, flag=True) + inner(x)

    equal(outer(X), 3 * X)
    assert inner.cache_info().misses == 0
    assert [i.op.name for i in outer.program(X).body] == ["mul", "add"]


def test_equal_modules_share_a_program_and_keep_their_weights() -> None:
    @ptir.jit
    def function(model: Affine, x: Any) -> Any:
        return model(x)

    for weight in (1.0, 2.0, 3.0):
        equal(function(affine(weight, weight), X), X * weight + weight)
    assert function.cache_info().misses == 1
    equal(function(affine(1, 1, factor=2.0), X), (X + 1) * 2)
    assert function.retraces()[-1].reason.startswith("argument model")
    both = ptir.jit(lambda a, b, x: a(x) - b(x))
    one, other = affine(2, 0), affine(3, 0)
    equal(both(one, other, X), -X)
    equal(both(one, one, X), 0 * X)
    equal(both(other, one, X), X)
    assert both.cache_info().misses == 2


def test_tied_weights_are_one_input() -> None:
    shared = Parameter(np.full(3, 2, np.float32), "w")
    tied = Affine(shared, shared)
    function = ptir.jit(lambda model, x: model(x))
    equal(function(tied, X), X * 2 + 2)
    equal(function(affine(2, 3), X), X * 2 + 3)
    assert [len(function.program(m, X).params) for m in (tied, affine(2, 3))] == [2, 3]


@pytest.mark.slow
def test_the_cache_does_not_keep_weights_alive() -> None:
    function = ptir.jit(lambda model, x: model(x))
    model = affine(2, 3)
    function(model, X)
    weight = weakref.ref(model)
    del model
    gc.collect()
    assert weight() is None


def test_results_share_memory_with_nothing() -> None:
    x = array(4)
    constant = array(4, start=9)
    captured = ptir.tensor(array(4, start=5))

    @ptir.jit
    def function(x: Any) -> Any:
        y = x + 1
        return x, x, y, y, y.reshape(2, 2), constant, captured, x[1:], x.reshape(2, 2)

    for eager in (False, True):
        with ptir.eager(eager):
            results = [r.numpy() for r in function(x)]
        others = [x, constant, captured.numpy()]
        for i, result in enumerate(results):
            for other in others + results[:i]:
                assert not np.shares_memory(result, other)
        kept = [r.copy() for r in results]
        x += 1
        for result, before in zip(results, kept, strict=True):
            np.testing.assert_array_equal(result, before)


def test_static_results_and_none() -> None:
    @ptir.jit
    def function(x: Any) -> Any:
        return {"none": None, "n": x.shape[0], "s": "text", "t": (x, [np.float32(2)]), "d": x.dtype}

    for eager in (False, True):
        with ptir.eager(eager):
            found = function(X)
            again = function(X)
        assert (found["none"], found["n"], found["s"], found["d"].name) == (None, 3, "text", "f32")
        equal(found["t"][0], X)
        equal(found["t"][1][0], 2)
        assert found["t"] is not again["t"]


def test_programs_can_be_looked_at() -> None:
    lowered = JITTED.lowered(X, X)
    assert "add" in str(JITTED.program(X, X))
    assert "add" in {i.op.name for i in lowered.body}
    with pytest.raises(ArgumentError, match="plus: missing a required argument"):
        JITTED.program(X)  # pyright: ignore[reportCallIssue]
