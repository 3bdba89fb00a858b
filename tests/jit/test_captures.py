"""Guards of captured state: compared at each call, so that no stale program runs."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.errors import CaptureWarning, DonatedError
from gptrs.ir.parameter import Parameter
from tests.support import captured
from tests.support.captured import (
    CONFIG,
    HOLDERS,
    SCALED,
    Config,
    Record,
    Slotted,
    X,
    layer,
    set_scale,
)

box: Any = None
activation: Any = None


@pytest.fixture(autouse=True)
def restored() -> None:
    set_scale(1.0)
    set_box(None)
    Config.kind_factor = 2.0


def set_box(value: Any) -> None:
    global box
    box = value


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
    function = ptir.jit(lambda x: CONFIG.times(x))
    for value in range(3):
        captured.unused_factor = CONFIG.calls = value
        function(X)
    assert function.cache_info().misses == 1


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
        (np, types),
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
