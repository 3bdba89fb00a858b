"""What a function reads besides its arguments is compared at each call: no stale program runs."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import sys
import types
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.errors import CaptureWarning, DonatedError
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import f32
from gptrs.nn.module import Module

X = np.arange(1, 4, dtype=np.float32)


class Config:
    kind_factor = 2.0

    def __init__(self, factor: Any) -> None:
        self.factor = factor
        self.calls = 0

    def times(self, x: Any) -> Any:
        return x * self.own() * scale

    def own(self) -> Any:
        return self.factor

    @property
    def doubled(self) -> Any:
        return self.factor * 2

    def __getitem__(self, key: int) -> Any:
        return key * scale

    def unused(self) -> Any:
        return unused_factor


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor: Any) -> None:
        self.factor = factor


class Layer(Module):
    weight: Parameter

    def __call__(self, x: Any) -> Any:
        return x * self.weight * scale


@dataclass
class Record:
    factor: Any

    def times(self, x: Any) -> Any:
        return x * self.factor * scale


scale: float = 1.0
unused_factor: Any = 1.0
box: Any = None
activation: Any = None


def helper(x: Any) -> Any:
    return inner_helper(x)


def inner_helper(x: Any) -> Any:
    return x * scale


@pytest.fixture(autouse=True)
def restored() -> None:
    global scale, box
    scale, box = 1.0, None
    Config.kind_factor = 2.0


def set_scale(value: float) -> None:
    global scale
    scale = value


def set_box(value: Any) -> None:
    global box
    box = value


def layer(value: float) -> Layer:
    return Layer(Parameter(np.full(3, value, np.float32), "w"))


CONFIG, SLOTTED, RECORD, LAYER = Config(3.0), Slotted(3.0), Record(3.0), layer(3.0)
SCALED: dict[str, Callable[[Any], Any]] = {
    "global": lambda x: x * scale,
    "helper": helper,
    "lambda in a dict": lambda x: {"f": lambda y: y * scale}["f"](x),
    "nested function": lambda x: next(y * scale for y in (x,)),
    "jitted helper": lambda x: JITTED_HELPER(x),
    "jitted partial": lambda x: JITTED_PARTIAL(x),
    "partial": lambda x: PARTIAL(x),
    "method": lambda x: CONFIG.times(x),
    "special method": lambda x: x * CONFIG[1],
    "module": lambda x: LAYER(x),
    "dataclass": lambda x: RECORD.times(x),
    "cached helper": lambda x: x * CACHED(),
    "list of functions": lambda x: FUNCTIONS[0](x),
    "numpy vectorised default": lambda x: WITH_CLOSURE(x),
}
JITTED_HELPER = ptir.jit(helper)
JITTED_PARTIAL = ptir.jit(partial(helper))
PARTIAL = partial(inner_helper)
FUNCTIONS = [helper]


class _Uncached:
    def __call__(self) -> float:
        return scale


CACHED = _Uncached()


def _closure() -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        return helper(x)

    return call


WITH_CLOSURE = _closure()


@pytest.mark.parametrize("name", SCALED)
def test_a_global_that_is_read_anywhere_on_the_way(name: str) -> None:
    function = ptir.jit(SCALED[name])
    first = function(X).numpy()
    for scale in (2.0, 5.0, 1.0):
        set_scale(scale)
        np.testing.assert_allclose(function(X).numpy(), first * np.float32(scale), rtol=1e-6)
    assert function.cache_info().misses == 3  # the last one is known
    assert function.retraces()[1].reason == "global scale: 1.0 → 2.0"


def test_what_is_not_read_does_not_matter() -> None:
    global unused_factor
    function = ptir.jit(lambda x: CONFIG.times(x))
    for value in range(3):
        unused_factor = CONFIG.calls = value
        function(X)
    assert function.cache_info().misses == 1


class _OwnDict(dict[str, Any]):
    pass


def _set(box: Any, value: Any) -> None:
    box.factor = value


def _put(box: Any, value: Any) -> None:
    box["k" if isinstance(box, dict) else 0] = value


def _fill(box: Any, value: Any) -> None:
    box[...] = value


def _widened(box: Any) -> Any:
    return ptir.cast(box, dtype=f32)


# A value that holds 2.0, how to read it, how to change it in place.
HOLDERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any, Any], None]]] = {
    "object": (lambda: Config(2.0), lambda b: b.factor, _set),
    "object by method": (lambda: Config(2.0), lambda b: b.own(), _set),
    "object by property": (lambda: Config(1.0), lambda b: b.doubled, lambda b, v: _set(b, v / 2)),
    "object by name": (lambda: Config(2.0), lambda b: getattr(b, "fac" + "tor"), _set),
    "slots": (lambda: Slotted(2.0), lambda b: b.factor, _set),
    "dataclass": (lambda: Record(2.0), lambda b: b.factor, _set),
    "namespace": (lambda: SimpleNamespace(factor=2.0), lambda b: b.factor, _set),
    "argparse": (lambda: argparse.Namespace(factor=2.0), lambda b: b.factor, _set),
    "class": (lambda: type("C", (Config,), {"factor": 2.0}), lambda b: b.factor, _set),
    "class of object": (lambda: Config(0), lambda b: b.kind_factor, lambda b, v: _set_kind(v)),
    "function": (lambda: _with_attribute(), lambda b: b.factor, _set),
    "list": (lambda: [2.0], lambda b: b[0], _put),
    "dict": (lambda: {"k": 2.0}, lambda b: b["k"], _put),
    "nested": (lambda: ([{"k": 2.0}],), lambda b: b[0][0]["k"], lambda b, v: _put(b[0][0], v)),
    "OrderedDict": (lambda: OrderedDict(k=2.0), lambda b: b["k"], _put),
    "defaultdict": (lambda: defaultdict(int, k=2.0), lambda b: b["k"], _put),
    "own dict": (lambda: _OwnDict(k=2.0), lambda b: b["k"], _put),
    "deque": (lambda: deque([2.0]), lambda b: b[0], _put),
    "set": (lambda: {2.0}, lambda b: max(b), lambda b, v: b.add(v)),
    "array": (lambda: np.full(3, 2, np.float32), lambda b: b, _fill),
    "big array": (lambda: np.full((9999, 3), 2, np.float32), lambda b: b[0], _fill),
    "torch": (lambda: torch.full((3,), 2.0), lambda b: b, _fill),
    "bf16": (lambda: torch.full((3,), 2.0).bfloat16(), _widened, _fill),
    "partial": (lambda: partial(max, [2.0]), lambda b: b(), lambda b, v: b.args[0].append(v)),
    "bound method": (lambda: Config(2.0).own, lambda b: b(), lambda b, v: _set(b.__self__, v)),
    "module": (lambda: _module(), lambda b: b.factor, _set),
    "list of objects": (
        lambda: [Config(1.0), Config(2.0)],
        lambda b: b[1].factor,
        lambda b, v: _set(b[1], v),
    ),
}


def _module() -> types.ModuleType:
    module = types.ModuleType("user_module")
    vars(module)["factor"] = 2.0
    return module


def _set_kind(value: float) -> None:
    Config.kind_factor = value


def _with_attribute() -> Callable[[], None]:
    def function() -> None: ...

    vars(function)["factor"] = 2.0
    return function


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("place", ["global", "closure", "argument"])
def test_a_value_changed_in_place(name: str, place: str) -> None:
    make, read, change = HOLDERS[name]
    holder = make()
    set_box(holder)
    function = {
        "global": ptir.jit(lambda x, _: x * read(box)),
        "closure": ptir.jit(lambda x, _: x * read(holder)),
        "argument": ptir.jit(lambda x, box: x * read(box)),
    }[place]
    argument = holder if place == "argument" else None
    for value in (2.0, 4.0, 7.0):
        if value != 2.0:
            change(holder, value)
        found = function(X, argument).numpy()
        np.testing.assert_array_equal(
            found[:1].squeeze(), (X * np.float32(value))[: found[:1].size]
        )
    misses = function.cache_info().misses
    assert function(X, argument).shape[-1] == 3
    assert function.cache_info().misses == misses
    assert "" not in [r.reason for r in function.retraces()]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ptir.exp, ptir.tanh),
        (np.float32, np.float64),
        (lambda x: x * 1.0, lambda x: x * 2.0),
        (partial(max, 1), partial(max, 2)),
        (Config, Slotted),
        (np, torch),
        (1, True),
        (0.0, -0.0),
        ((1, 2), (1.0, 2)),
        (ptir.DType, ptir.Type),
    ],
)
def test_a_global_that_names_something_else(first: Any, second: Any) -> None:
    global activation
    function = ptir.jit(lambda x: (x, activation))
    for value in (first, second, first):
        activation = value
        assert function(X)[1] is value or repr(function(X)[1]) == repr(value)
    assert function.cache_info().misses == 2


def test_defaults_of_a_helper() -> None:
    def make(k: float) -> Callable[[Any], Any]:
        def scaled(x: Any, k: float = k, *, j: float = k) -> Any:
            return x * k + j

        return scaled

    set_box(make(2.0))
    function = ptir.jit(lambda x: box(x))
    np.testing.assert_array_equal(function(X).numpy(), X * 2 + 2)
    set_box(make(3.0))
    np.testing.assert_array_equal(function(X).numpy(), X * 3 + 3)


def test_keyword_defaults_of_a_helper() -> None:
    def make(k: float) -> Callable[[Any], Any]:
        def scaled(x: Any, *, k: float = k) -> Any:
            return x * k

        return scaled

    function = ptir.jit(lambda x: box(x))
    for k in (2.0, 3.0):
        set_box(make(k))
        np.testing.assert_array_equal(function(X).numpy(), X * k)


def test_the_class_of_an_argument_reads_a_global() -> None:
    function = ptir.jit(lambda x, record: record.times(x))
    for value in (1.0, 2.0):
        set_scale(value)
        np.testing.assert_array_equal(function(X, Record(3.0)).numpy(), X * 3 * value)


def test_a_method_that_reads_what_was_met_before_it() -> None:
    class Secret:
        def __init__(self) -> None:
            self.late = 1.0

    class Reader:
        def read(self, secret: Any) -> Any:
            return secret.late

    a_secret, reader = Secret(), Reader()
    function = ptir.jit(lambda x: x * reader.read(a_secret))
    for value in (1.0, 2.0):
        a_secret.late = value
        np.testing.assert_array_equal(function(X).numpy(), X * value)


def test_a_module_imported_inside_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("gptrs_test_settings")
    module.FACTOR = 2.0  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, module.__name__, module)

    @ptir.jit
    def function(x: Any) -> Any:
        from gptrs_test_settings import FACTOR  # pyright: ignore[reportMissingImports]

        return x * FACTOR

    np.testing.assert_array_equal(function(X).numpy(), X * 2)
    module.FACTOR = 3.0  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_array_equal(function(X).numpy(), X * 3)


def test_a_module_read_in_two_places() -> None:
    module = types.ModuleType("gptrs_test_two")
    vars(module).update(a=1.0, b=1.0)

    def second(x: Any) -> Any:
        return x * module.b

    @ptir.jit
    def function(x: Any) -> Any:
        return second(x) * module.a

    for a, b in ((1.0, 1.0), (1.0, 2.0), (3.0, 2.0)):
        vars(module).update(a=a, b=b)
        np.testing.assert_array_equal(function(X).numpy(), X * a * b)


def test_classes_and_objects_that_name_each_other() -> None:
    class Parent:
        child: Any = None
        factor = 2.0

    class Child:
        parent = Parent

    Parent.child = Child()
    Parent.child.loop = [Parent.child]
    function = ptir.jit(lambda x: x * Parent.child.parent.factor * len(Parent.child.loop))
    np.testing.assert_array_equal(function(X).numpy(), X * 2)
    Parent.factor = 3.0
    np.testing.assert_array_equal(function(X).numpy(), X * 3)


def test_a_constant_is_a_copy() -> None:
    set_box(np.ones(3, np.float32))
    function = ptir.jit(lambda x: x * box)
    np.testing.assert_array_equal(function(X).numpy(), X)
    box.fill(9)
    set_box(np.ones(3, np.float32))  # equal to what was traced, so that program runs
    np.testing.assert_array_equal(function(X).numpy(), X)
    assert function.cache_info().misses == 1


def test_weights_in_closures_and_globals_are_inputs() -> None:
    set_box(layer(2.0))
    function = ptir.jit(lambda x: box(x))
    np.testing.assert_array_equal(function(X).numpy(), X * 2)
    set_box(layer(5.0))
    np.testing.assert_array_equal(function(X).numpy(), X * 5)
    assert function.cache_info().misses == 1
    assert [p.role for p in function.program(X).params] == ["input", "parameter"]
    local = layer(7.0)
    both = ptir.jit(lambda x: local(x) + box(x))
    np.testing.assert_array_equal(both(X).numpy(), X * 12)


def test_a_captured_tensor_that_is_donated_elsewhere() -> None:
    cache = ptir.tensor(X.copy())
    function = ptir.jit(lambda x: x + cache)
    np.testing.assert_array_equal(function(X).numpy(), X + X)
    ptir.jit(donate="y")(lambda y: y + 1)(cache)
    with pytest.raises(DonatedError):
        function(X)


def test_a_large_captured_array_warns_with_its_line() -> None:
    large = np.zeros((1 << 18) + 1, np.float32)
    small = np.zeros(1 << 18, np.float32)
    weight = Parameter(large, "large")
    with pytest.warns(CaptureWarning, match=r"1\.0 MB .*Fix: pass it as an argument") as warned:
        ptir.jit(lambda x: x + large)(large)
    line = test_a_large_captured_array_warns_with_its_line.__code__.co_firstlineno
    assert warned[0].filename == __file__
    assert warned[0].lineno == line + 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ptir.jit(lambda x: x + small)(small)
        ptir.jit(lambda x: x + weight)(large)


def test_kinds_of_arrays_as_constants() -> None:
    values: list[NDArray[Any]] = [np.float32(2), np.full(3, 2, np.float32)]  # pyright: ignore[reportAssignmentType]
    for value in values:
        function = ptir.jit(lambda x, v=value: x * v)
        np.testing.assert_array_equal(function(X).numpy(), X * 2)
