"""Calls that were made before go straight to their program."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

import gc
import math
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Any

import numpy as np
import pytest

from gptrs import ptir, tree
from gptrs.errors import ArgumentError, DonatedError, ElementError, SettingError
from gptrs.ir.tensor import Parameter, Tensor
from gptrs.jit.calls import _KEPT
from gptrs.nn.module import Module
from tests.walks import Walks, counted, leaves

X = np.arange(1, 4, dtype=np.float32)


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> Walks:
    return counted(monkeypatch)


class Scale:
    factor = 2.0

    def __init__(self) -> None:
        self.extra = 1.0

    def times(self, x: Any) -> Any:
        return x * self.factor


@dataclass
class Record:
    factor: Any = 2.0


class Layer(Module):
    weight: Parameter
    factor: Any = 1.0

    def __call__(self, x: Any) -> Any:
        return x * self.weight * self.factor


def layer(value: float) -> Layer:
    return Layer(Parameter(np.full(3, value, np.float32), "w"))


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
def test_arguments_that_differ(name: str, walks: Walks) -> None:
    first, second, third = ARGUMENTS[name]
    function = ptir.jit(lambda x, y: (x * 1.0, y))
    plain = ptir.jit(lambda x, y: (x * 1.0, y))
    function(X, first)
    assert walks.during(lambda: function(X, second)) == 0
    assert walks.during(lambda: function(X, third)) == 1
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
def test_static_arguments(name: str, walks: Walks) -> None:
    first, second = STATIC[name]
    function = ptir.jit(static_argnames="k")(lambda x, k: (x, repr(k)))
    for value in (first, second):
        assert function(X, value)[1] == repr(value)
    for value in (first, second, first):
        assert walks.during(lambda v=value: function(X, v)) == 0
        assert function(X, k=value)[1] == repr(value)
    assert function.cache_info().misses == 2


def test_nan_is_one_static_value(walks: Walks) -> None:
    function = ptir.jit(static_argnames="k")(lambda x, k: x * k)
    function(X, math.nan)
    assert walks.during(lambda: function(X, float("nan"))) == 0


def test_a_static_object_that_changes(walks: Walks) -> None:
    scale = Scale()
    function = ptir.jit(static_argnames="s")(lambda x, s: s.times(x))
    function(X, scale)
    assert walks.during(lambda: function(X, scale)) == 0
    scale.factor = 7.0
    np.testing.assert_array_equal(function(X, scale).numpy(), X * 7)


def test_ways_to_give_the_same_arguments(walks: Walks) -> None:
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
        assert walks.during(lambda a=args, k=kwargs: function(*a, **k)) == 0
    assert function.cache_info().misses == misses
    twice: dict[str, Any] = {"a": X}
    for _ in range(2):
        with pytest.raises(ArgumentError, match="missing a required argument"):
            function()  # pyright: ignore[reportCallIssue]
        with pytest.raises(ArgumentError, match="multiple values"):
            function(X, **twice)


def test_a_default_that_changes(walks: Walks) -> None:
    array = X.copy()
    function = ptir.jit(lambda x, y=array: x + y)
    function(X)
    array.fill(7)
    assert walks.during(lambda: function(X)) == 0
    np.testing.assert_array_equal(function(X).numpy(), X + 7)


def test_numbers_that_do_not_fit() -> None:
    function = ptir.jit(lambda x, n: x * n)
    function(X, 3)
    with pytest.raises(ArgumentError, match=r"argument n is .* 64 bits"):
        function(X, 2**70)
    np.testing.assert_array_equal(function(X, 4).numpy(), X * 4)


def test_models_take_turns(walks: Walks) -> None:
    function = ptir.jit(lambda model, x: model(x))
    models = [layer(2.0), layer(3.0), layer(5.0)]
    for model in models:
        function(model, X)
    for model, value in zip(models, (2.0, 3.0, 5.0), strict=True):
        assert walks.during(lambda m=model: function(m, X)) == 0
        np.testing.assert_array_equal(function(model, X).numpy(), X * value)
    assert function.cache_info().misses == 1


def test_models_that_take_the_memory_of_another() -> None:
    function = ptir.jit(lambda model, x: model(x))
    for i in range(200):
        shape = (3,) if i % 3 else (2, 3)
        model = Layer(Parameter(np.full(shape, i, np.float32), "w"), float(i % 2))
        np.testing.assert_array_equal(
            function(model, X).numpy(), np.broadcast_to(X * i * (i % 2), shape)
        )
        del model


class Family(Module):
    inner: Layer
    rest: tuple[Any, ...]
    parent: Any = None


def family() -> Family:
    made = Family(layer(2.0), tuple(layer(i + 3.0) for i in range(6)))
    for child in (made.inner, *made.rest):
        vars(child)["parent"] = made
    made.parent = [made]
    return made


def apply(model: Family, x: Any) -> Any:
    for each in (model.inner, *model.rest):
        x = each(x)
    return x


@pytest.mark.parametrize("place", ["argument", "tuple", "global", "attribute", "table"])
def test_a_model_that_is_dropped_is_freed(place: str, walks: Walks) -> None:
    model = family()
    scope: dict[str, Any] = {"apply": apply, "box": Scale(), "table": {}}
    body = {"global": "model", "attribute": "box.model", "table": "table['m']"}.get(place, "given")
    exec(f"def function(x, given): return apply({body}, x)", scope)
    function = ptir.jit(scope["function"])
    scope["model"] = scope["box"].model = scope["table"]["m"] = model
    argument: Any = {"argument": model, "tuple": model}.get(place)
    function(X, argument)
    assert walks.during(lambda: function(X, argument)) == 0
    watched = [weakref.ref(part) for part in (model, model.rest[3], model.rest[3].weight)]
    scope["model"] = scope["table"]["m"] = scope["box"].model = argument = model = None
    gc.collect()
    assert [found() for found in watched] == [None, None, None]
    assert function.cache_info().currsize == 1


def test_a_program_that_is_dropped_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_CACHE_SIZE", "1")
    function = ptir.jit(lambda x: x + 1)
    function(X)
    (known,) = function._calls._known.values()
    program = weakref.ref(known.slot.entry.lowered)
    del known
    with pytest.warns(UserWarning, match="drops the least"):
        function(X[:2])
    gc.collect()
    assert program() is None
    assert len(function._calls._known) == 1
    function.clear_cache()
    assert not function._calls._known
    assert function.cache_info() == (0, 0, 1, 0)
    function(X)
    assert function.cache_info() == (0, 1, 1, 1)


def test_a_function_that_is_dropped_is_freed() -> None:
    function = ptir.jit(lambda x: x + 1)
    function(X)
    calls = weakref.ref(function._calls)
    del function
    gc.collect()
    assert calls() is None


def test_remembered_calls_are_uses_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_CACHE_SIZE", "2")
    function = ptir.jit(lambda x: x + 1)
    for size in (1, 2, 1, 1):
        function(np.ones(size, np.float32))
    assert function.cache_info() == (2, 2, 2, 2)
    with pytest.warns(UserWarning, match="drops the least"):
        function(np.ones(3, np.float32))  # for which that of size 2 goes
    function(np.ones(1, np.float32))
    assert function.cache_info() == (3, 3, 2, 2)


def test_few_calls_are_remembered(walks: Walks) -> None:
    function = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: x * 2)
    for size in range(1, 2 * _KEPT):
        function(np.ones(size, np.float32))
        assert walks.during(lambda: function(np.ones(1, np.float32))) == 0  # the last used stay
    assert len(function._calls._known) == _KEPT
    assert walks.during(lambda: function(np.ones(2, np.float32))) == 1
    assert function.cache_info().misses == 1
    for i in range(2 * _KEPT):
        ways: Any = {f"n{i}": X}
        assert ptir.jit(lambda **named: named)(**ways).keys() == ways.keys()


def test_sizes_of_remembered_calls() -> None:
    function = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: (x.reshape(-1), x.shape[0], x.size))
    for _ in range(2):
        for rows in (1, 4, 2):
            flat, size, total = function(np.ones((rows, 3), np.float32))
            assert (flat.shape, size, total) == ((3 * rows,), rows, 3 * rows)
            assert flat.type == Tensor(np.ones(3 * rows, np.float32)).type


def test_donated_arguments(walks: Walks) -> None:
    function = ptir.jit(donate="t")(lambda t, x: (t + x, t * 2))
    tensor, x = ptir.tensor(X.copy()), ptir.tensor(X.copy())
    total, _ = function(tensor, x)

    def again() -> None:
        nonlocal total
        before = total
        total, _ = function(before, x)
        assert before.donated
        with pytest.raises(DonatedError, match=r"donated to .* \(argument t\)"):
            before.numpy()

    assert walks.during(again) == 0
    np.testing.assert_array_equal(total.numpy(), X * 3)
    with pytest.raises(DonatedError, match="donated to"):
        function(tensor, x)
    shared = X.copy()
    aliases = [
        (total, total),
        (ptir.tensor(shared), ptir.tensor(shared)),
        (ptir.tensor(shared[:3]), ptir.tensor(shared[:3])),
        (ptir.tensor(shared), shared),
    ]
    for first, second in aliases:
        with pytest.raises(DonatedError, match="arguments t and x are the same Tensor or views"):
            function(first, second)
    with pytest.raises(DonatedError, match="only gptrs Tensors"):
        function(X, x)
    twice = ptir.jit(donate="t")(lambda t, x, y: t + x + y)
    for _ in range(2):
        np.testing.assert_array_equal(twice(ptir.tensor(X.copy()), X, X).numpy(), X * 3)


def test_a_captured_tensor_that_is_donated_later() -> None:
    captured = ptir.tensor(X.copy())
    function = ptir.jit(lambda x: x + captured)
    for _ in range(2):
        function(X)
    ptir.jit(donate="t")(lambda t: t + 1)(captured)
    with pytest.raises(DonatedError):
        function(X)


def test_modes_are_looked_at_in_each_call(monkeypatch: pytest.MonkeyPatch, walks: Walks) -> None:
    runs = count()

    def body(x: Any) -> Any:
        next(runs)
        return x + 1

    function = ptir.jit(body)
    for _ in range(2):
        function(X)
    with ptir.eager():
        function(X)
    monkeypatch.setenv("GPTRS_EAGER", "1")
    function(X)
    with ptir.eager(False):
        function(X)
    monkeypatch.setenv("GPTRS_EAGER", "maybe")
    with pytest.raises(SettingError):
        function(X)
    monkeypatch.delenv("GPTRS_EAGER")
    function(X)
    assert next(runs) == 3  # traced once, twice eager
    monkeypatch.setenv("GPTRS_BACKEND", "nothing")
    with pytest.raises(ArgumentError, match="no backend 'nothing'"):
        function(X)
    with ptir.backend("reference"):
        function(X)
        assert walks.during(lambda: function(X)) == 0


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


def test_threads_that_call_and_change() -> None:
    scale = Scale()
    function = ptir.jit(lambda x: (x * scale.extra, scale.extra))

    def call() -> bool:
        for _ in range(300):
            result, read = function(X)
            if not np.array_equal(result.numpy(), X * np.float32(read)):
                return False
        return True

    def change() -> bool:
        for i in range(300):
            scale.extra = float(i % 5)
            vars(scale)["more"] = i
            del vars(scale)["more"]
        return True

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(job) for job in (call, call, change, call)]
        assert all(job.result(timeout=60) for job in jobs)
    scale.extra = 7.0
    np.testing.assert_array_equal(function(X)[0].numpy(), X * 7)


def test_arrays_of_other_classes_are_taken_apart_each_time(walks: Walks) -> None:
    class Own(np.ndarray[Any, Any]):
        pass

    function = ptir.jit(lambda x: x + 1)
    for _ in range(2):
        assert walks.during(lambda: function(X.view(Own))) == 1
        assert walks.during(lambda: function(X.astype(">f4"))) == 1
    function(X)
    assert walks.during(lambda: function(X)) == 0
