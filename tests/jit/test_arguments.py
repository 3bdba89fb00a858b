"""Arguments of jitted functions: which are traced, and which are static."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, DTypeError
from gptrs.ir.tensor import Tensor
from tests.support.jitted import Box, Mode, Pair, X, equal, plus


@pytest.mark.parametrize(
    ("argument", "use"),
    [
        ((X, 2 * X), lambda p: p[0] + p[1]),
        ([X, 2 * X], lambda p: p[0] + p[1]),
        ({"a": X, "b": 2 * X}, lambda p: p["a"] + p["b"]),
        (OrderedDict(a=X, b=2 * X), lambda p: p["a"] + p["b"]),
        (Pair(X, 2 * X), lambda p: p.x + p.y),
        (Box(X, 2 * X, 1.0), lambda p: p.left * p.factor + p.right),
        ({"a": [(X, 0), Box(Pair(2 * X, ""), 1)]}, lambda p: p["a"][0][0] + p["a"][1].left.x),
        (Pair(ptir.tensor(X), [2 * X, False]), lambda p: p.x + p.y[0]),
    ],
)  # fmt: skip
def test_containers_come_in_and_go_out(argument: Any, use: Callable[[Any], Any]) -> None:
    @ptir.jit
    def function(p: Any) -> Any:
        assert type(p) is type(argument)
        return use(p), p

    total, back = function(argument)
    equal(total, 3 * X)
    assert type(back) is type(argument)
    equal(use(back), 3 * X)
    assert function.cache_info().misses == 1
    function(argument)
    assert function.cache_info()[:2] == (1, 1)


def test_what_a_dataclass_keeps_beside_its_fields_comes_along() -> None:
    @dataclass
    class Grid:
        step: Any

        def __post_init__(self) -> None:
            self.half = self.step * np.float32(0.5)

    @ptir.jit
    def function(grid: Grid) -> Any:
        return grid.half

    equal(function(Grid(X)), X * np.float32(0.5))


def test_args_and_kwargs() -> None:
    @ptir.jit
    def function(first: Any, *rest: Any, scale: Any = 1.0, **named: Any) -> Any:
        total = first
        for part in (*rest, *named.values()):
            total = total + part
        return total * scale

    equal(function(X), X)
    equal(function(X, X, X), 3 * X)
    equal(function(X, X, a=X, scale=2), 6 * X)
    assert function.cache_info().misses == 3
    assert [r.reason for r in function.retraces()[1:2]] == [
        "argument rest: tuple of 0 → tuple of 2"
    ]


def test_python_numbers_are_traced_and_weak() -> None:
    @ptir.jit
    def function(x: Any, n: Any) -> Any:
        return x * n

    for n in (1, 2, -7):
        equal(function(X, n), X * n)
    assert function.cache_info().misses == 1
    equal(function(X, 2.5), X * 2.5)
    assert function.cache_info().misses == 2
    half = function(X.astype(np.float16), 0.5)
    assert half.dtype.name == "f16"
    whole = function(np.arange(3, dtype=np.int8), 3)
    assert whole.dtype.name == "si8"
    assert function(3, 4).item() == 12
    with pytest.raises(ArgumentError, match=r"argument n is .* 64 bits"):
        function(X, 2**70)


def test_weak_numbers_and_arrays_are_told_apart() -> None:
    weak = ptir.jit(lambda s: s)(2.0)
    strong = ptir.tensor(np.float64(2))
    assert weak.type == strong.type
    for dynamic in (None, {"x": {0: "N"}}):
        function = ptir.jit(dynamic=dynamic)(lambda x, s: (x.sum(), s * 1))
        assert [function(X, s)[1].weak for s in (weak, strong, weak)] == [True, False, True]
        assert function.cache_info().misses == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *[(True, False), ("add", "sub"), (None, "add"), (b"a", b"b"), (Mode.ADD, Mode.SUB)],
        *[(ptir.exp, ptir.tanh), (np.float32, np.float64), (range(2), range(3)), (Tensor, int)],
    ],
)
def test_values_that_are_no_numbers_are_static(first: Any, second: Any) -> None:
    function = ptir.jit(lambda x, how: (x, how))
    for how in (first, second, first, second):
        equal(function(X, how)[0], X)
        assert function(X, how)[1] == how
    assert function.cache_info().misses == 2


def test_static_arguments() -> None:
    @ptir.jit(static_argnames=("n", "box"))
    def function(x: Any, n: Any, box: Any = ()) -> Any:
        return x * n if n else x

    equal(function(X, 3), X * 3)
    equal(function(X, 0), X)
    equal(function(X, 3), X * 3)
    assert function.cache_info().misses == 2
    assert function.retraces()[1].reason == "static argument n: 3 → 0"
    for other in (Box(1, 2), Box(1.0, 2), Box(True, 2), Pair(1, 2), (1, 2), (1.0, 2), (0.0, -0.0)):
        function(X, 3, other)
    assert function.cache_info().misses == 9
    with pytest.raises(ArgumentError, match="static argument n is a list"):
        function(X, [1])
    with pytest.raises(ArgumentError, match="static argument n holds a Tensor"):
        function(X, ptir.tensor(X))
    with pytest.raises(ArgumentError, match="static_argnames names 'm'"):
        ptir.jit(static_argnames="m")(plus)


def test_static_arguments_by_place() -> None:
    def function(x: Any, n: Any, /, m: Any = 1, *rest: Any, last: Any = 0) -> Any:
        return x * n * m

    options: tuple[Any, ...] = (1, (1,), [-2], np.int64(1))
    for places in options:
        jitted = ptir.jit(static_argnums=places)(function)
        equal(jitted(X, 3), X * 3)
        equal(jitted(X, 3, 1), X * 3)
        assert [r.reason for r in jitted.retraces()] == ["the first call"]
        equal(jitted(X, 2), X * 2)
        assert jitted.retraces()[1].reason == "static argument n: 3 → 2"
    jitted = ptir.jit(static_argnums=-1, static_argnames="n")(function)
    for _ in range(3):
        equal(jitted(X, 3, m=0), X * 0)
        equal(jitted(X, 3, 2), X * 6)
    assert jitted.cache_info().misses == 2
    with pytest.raises(ArgumentError, match="static argument m is a dict"):
        jitted(X, 3, {})


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({"static_argnums": 3}, ("the argument 3 of function", "takes 3 by position", "'rest'")),
        ({"static_argnums": (0, -4)}, ("the argument -4", "x, n, m")),
        ({"static_argnums": "n"}, ("'n', expected an integer", "static_argnames")),
        ({"static_argnums": (1, 2.0)}, ("(1, 2.0), expected an integer",)),
        ({"static_argnums": 1, "donate": "n"}, ("n of function is static and donated",)),
        ({"static_argnames": "x", "dynamic": {"x": {0: "N"}}}, ("x of function is static and",)),
    ],
)
def test_static_places_that_are_none(options: dict[str, Any], texts: tuple[str, ...]) -> None:
    def function(x: Any, n: Any, m: Any = 1, *rest: Any, last: Any = 0) -> Any:
        return x

    with pytest.raises(ArgumentError) as error:
        ptir.jit(**options, name="function")(function)
    for text in texts:
        assert text in str(error.value)


WRAPPED: dict[type, Callable[[Any], Any]] = {
    list: lambda value: [value],
    tuple: lambda value: (value,),
    dict: lambda value: {"a": value},
    Box: lambda value: Box(value, 1),
}


def nested(kind: type, levels: int) -> Any:
    """An array in so many containers."""
    value: Any = X
    for _ in range(levels):
        value = WRAPPED[kind](value)
    return value


def holding_itself(kind: type) -> Any:
    inner: list[Any] = []
    inner.append(WRAPPED[kind](inner))
    return inner[0]


USES: dict[str, Callable[[Any], Any]] = {
    "argument": lambda value: ptir.jit(lambda x: 1.0)(value),
    "static": lambda value: ptir.jit(static_argnames="x")(lambda x: 1.0)(value),
    "program": lambda value: ptir.jit(lambda x: 1.0).program(value),
    "explain": lambda value: ptir.jit(lambda x: 1.0).explain(value),
    "result": lambda value: ptir.jit(lambda: value)(),
    "eager": lambda value: eagerly(lambda x: x, value),
    "cond": lambda value: ptir.jit(lambda x: ptir.cond(x > 0, lambda v: x, lambda v: x, value))(
        1.0
    ),
    "while_loop": lambda value: ptir.while_loop(lambda v: False, lambda v: v, value),
    "scan": lambda value: ptir.scan(lambda v, x: (v, x), value, X),
    "operand": lambda value: ptir.exp(value),
    "operands": lambda value: ptir.concat(value),
    "tensor": lambda value: ptir.tensor(value),
}


def eagerly(function: Callable[[Any], Any], value: Any) -> Any:
    with ptir.eager():
        return ptir.jit(function)(value)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", WRAPPED)
def test_containers_that_are_too_deep_or_hold_themselves(use: str, kind: type) -> None:
    for value in (nested(kind, 3000), nested(kind, 200), holding_itself(kind)):
        with pytest.raises((ArgumentError, DTypeError)) as found:
            USES[use](value)
        assert len(str(found.value)) < 1000


def test_the_error_names_the_argument_and_the_levels() -> None:
    with pytest.raises(ArgumentError) as found:
        ptir.jit(lambda x, y: x)(X, nested(dict, 3000))
    assert found.value.problem == (
        "a dict lies in 100 other containers, or holds itself, expected at most 100 levels"
    )
    assert found.value.context == ["argument y"]


@pytest.mark.parametrize("kind", WRAPPED)
def test_a_hundred_levels_are_not_too_deep(kind: type) -> None:
    value = nested(kind, 99)  # and the tuple of the result
    function: Any = ptir.jit(lambda x: (x, value))
    for _ in range(3):  # traced, and remembered
        assert [type(part) for part in function(value)] == [kind, kind]
