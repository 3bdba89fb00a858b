"""The fast path: a repeated call goes straight to its plan."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pytest

from gptrs import ptir, tree
from gptrs.errors import ArgumentError, ElementError
from gptrs.ir.tensor import Tensor
from tests.support.slow_path import Record, Scale, SlowCalls, X, leaves


def helper(x: Any) -> Any:
    return x * 2.0


def other(x: Any) -> Any:
    return x * 3.0


# Kinds of arguments: two calls of one kind, and one of another.
ARGUMENTS: dict[str, tuple[Any, Any, Any]] = {
    "shape": (X, X + 1, np.ones(4, np.float32)),
    "dtype": (X, X + 1, X.astype(np.float64)),
    "array and Tensor": (ptir.tensor(X), ptir.tensor(X + 1), ptir.tensor(X[:2])),
    "integers": (1, 7, 1.0),
    "bools": (True, True, 1),
    "bool and float": (True, True, 1.0),
    "floats": (0.0, -0.0, 0),
    "NaN": (math.nan, -math.nan, False),
    "NumPy scalars": (np.float32(1), np.float32(2), np.float64(1)),
    "NumPy scalar and number": (np.float64(1), np.float64(2), 1.0),
    "text": ("a", "".join("a"), "b"),
    "None": (None, None, 0),
    "tuples": ((X, 1), (X, 2), (X, 1.0)),
    "tuple and list": ((X, 1), (X, 2), [X, 1]),
    "nesting": ((X, (1,)), (X, (2,)), ((X, 1),)),
    "dicts": ({"a": 1}, {"a": 2}, {"b": 1}),
    "dict order": ({"a": 1, "b": 2}, {"a": 3, "b": 4}, {"b": 1, "a": 2}),
    "records": (Record(1), Record(2), Record(1.0)),
    "records of arrays": (Record(X), Record(X + 1), Record((X,))),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_that_differ(name: str, slow_calls: SlowCalls) -> None:
    first, second, third = ARGUMENTS[name]
    function = ptir.jit(lambda x, y: (x * 1.0, y))
    plain = ptir.jit(lambda x, y: (x * 1.0, y))
    function(X, first)
    assert slow_calls.during(lambda: function(X, second)) == 0
    assert slow_calls.during(lambda: function(X, third)) == 1
    for value in (first, second, third, second):
        found = function(X, value)
        plain.clear_cache()
        assert leaves(found) == leaves(plain(X, value))
    assert function.cache_info().misses == 2


@dataclass(frozen=True)
class Frozen:
    value: Any


class Mode(Enum):
    ADD = "add"
    SUB = "sub"


STATIC: dict[str, tuple[Any, Any]] = {
    "1 and True": (1, True),
    "1 and 1.0": (1, 1.0),
    "zeros": (0.0, -0.0),
    "tuples": ((1, (2,)), (1, (2.0,))),
    "records": (Frozen(1), Frozen(1.0)),
    "records of types": (Frozen(int), Frozen(float)),
    "modes": (Mode.ADD, Mode.SUB),
    "types": (np.float32, np.float64),
    "functions": (helper, other),
    "text": ("a", "b"),
}


@pytest.mark.parametrize("name", STATIC)
def test_static_arguments(name: str, slow_calls: SlowCalls) -> None:
    first, second = STATIC[name]
    function = ptir.jit(static_argnames="k")(lambda x, k: (x, repr(k)))
    for value in (first, second):
        assert function(X, value)[1] == repr(value)
    for value in (first, second, first):
        assert slow_calls.during(lambda v=value: function(X, v)) == 0
        assert function(X, k=value)[1] == repr(value)
    assert function.cache_info().misses == 2


def test_nan_is_one_static_value(slow_calls: SlowCalls) -> None:
    function = ptir.jit(static_argnames="k")(lambda x, k: x * k)
    function(X, math.nan)
    assert slow_calls.during(lambda: function(X, float("nan"))) == 0


def test_a_static_object_that_changes(slow_calls: SlowCalls) -> None:
    scale = Scale()
    function = ptir.jit(static_argnames="s")(lambda x, s: s.times(x))
    function(X, scale)
    assert slow_calls.during(lambda: function(X, scale)) == 0
    scale.factor = 7.0
    np.testing.assert_array_equal(function(X, scale).numpy(), X * 7)


def test_ways_to_give_the_same_arguments(slow_calls: SlowCalls) -> None:
    @ptir.jit
    def function(a: Any, b: Any = 2.0, *rest: Any, c: Any = 3.0, **named: Any) -> Any:
        total = a - b * 2.0 + c * 3.0
        for i, value in enumerate((*rest, *named.values())):
            total = total + value * float(i + 5)
        return total, tuple(named)

    ways: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((X,), {}),
        ((X, 5.0), {}),
        ((), {"b": 5.0, "a": X}),
        ((), {"c": X, "b": 5.0, "a": X + 1}),
        ((X,), {"c": 1.0}),
        ((X, 5.0, 6.0), {}),
        ((X, 5.0), {"d": 6.0}),
        ((X, 5.0), {"d": 6.0, "e": 7.0}),
        ((X, 5.0), {"e": 7.0, "d": 6.0}),
        ((X, 5.0, 6.0), {"d": 7.0, "c": 8.0}),
    ]
    expected = [leaves(function(*args, **kwargs)) for args, kwargs in ways]
    misses = function.cache_info().misses
    for (args, kwargs), result in zip(ways, expected, strict=True):
        plain = leaves(ptir.jit(function.__wrapped__)(*args, **kwargs))
        assert plain == result
        again = leaves(function(*args, **kwargs))
        assert again == result
        assert slow_calls.during(lambda a=args, k=kwargs: function(*a, **k)) == 0
    assert function.cache_info().misses == misses
    twice: dict[str, Any] = {"a": X}
    for _ in range(2):
        with pytest.raises(ArgumentError, match="missing a required argument"):
            function()  # pyright: ignore[reportCallIssue]
        with pytest.raises(ArgumentError, match="multiple values"):
            function(X, **twice)


def test_a_default_that_changes(slow_calls: SlowCalls) -> None:
    array = X.copy()
    function = ptir.jit(lambda x, y=array: x + y)
    function(X)
    array.fill(7)
    assert slow_calls.during(lambda: function(X)) == 0
    np.testing.assert_array_equal(function(X).numpy(), X + 7)


def test_numbers_that_do_not_fit() -> None:
    function = ptir.jit(lambda x, n: x * n)
    function(X, 3)
    with pytest.raises(ArgumentError, match=r"argument n is .* 64 bits"):
        function(X, 2**70)
    np.testing.assert_array_equal(function(X, 4).numpy(), X * 4)


def test_sizes_of_remembered_calls() -> None:
    function = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: (x.reshape(-1), x.shape[0], x.size))
    for _ in range(2):
        for rows in (1, 4, 2):
            flat, size, total = function(np.ones((rows, 3), np.float32))
            assert (flat.shape, size, total) == ((3 * rows,), rows, 3 * rows)
            assert flat.type == Tensor(np.ones(3 * rows, np.float32)).type


def test_an_error_while_a_remembered_program_runs() -> None:
    function = ptir.jit(lambda x, i: x[i])
    function(X, np.array([0, 1]))
    function(X, np.array([0, 2]))
    errors: list[str] = []
    for _ in range(2):
        with pytest.raises(ElementError, match="out of range") as raised:
            function(X, np.array([0, 9]))
        errors.append(str(raised.value))
        function.clear_cache()
    assert errors[0] == errors[1]


def test_a_container_that_is_made_known_later() -> None:
    class Bag:
        def __init__(self, *items: Any) -> None:
            self.items = items

    function = ptir.jit(lambda x, bag: x * bag.items[0])
    bag = Bag(2.0)
    for _ in range(2):
        np.testing.assert_array_equal(function(X, bag).numpy(), X * 2)
    container = tree.Container(
        lambda bag: (tuple(range(len(bag.items))), bag.items),
        lambda kind, labels, children: kind(*children),
        lambda label: f".items[{label}]",
    )
    tree.register(Bag, container)
    for value in (2.0, 3.0, 4.0):
        np.testing.assert_array_equal(function(X, Bag(value)).numpy(), X * value)
    assert function.cache_info().misses == 2


def test_arrays_of_other_classes_are_taken_apart_each_time(slow_calls: SlowCalls) -> None:
    class Own(np.ndarray[Any, Any]):
        pass

    function = ptir.jit(lambda x: x + 1)
    for _ in range(2):
        assert slow_calls.during(lambda: function(X.view(Own))) == 1
        assert slow_calls.during(lambda: function(X.astype(">f4"))) == 1
    function(X)
    assert slow_calls.during(lambda: function(X)) == 0
