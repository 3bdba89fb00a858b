"""Warnings of clocks, random numbers and the like that a traced function calls."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import datetime
import io
import os
import random
import secrets
import sys
import time
import uuid
import warnings
from collections.abc import Callable
from datetime import datetime as moment
from random import Random, gauss
from time import perf_counter as clock
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ImpureCallWarning
from tests.support.jitted import X, array, equal

pytestmark = pytest.mark.filterwarnings("error")  # of calls that are none, too

rng = np.random.default_rng(0)
seeded = Random(0)
generators = {"first": rng}


class Holder:
    """Objects that a function reaches from an argument or a closure."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)
        self.scale = 2.0

    def noise(self) -> Any:
        return self.rng.normal()

    def step(self, x: Any) -> Any:
        return x + self.noise()


def helper() -> float:
    return np.random.normal()


def inner_import() -> int:
    import time

    return time.time_ns()


def aliased() -> float:
    draw = rng
    return draw.uniform()


def unpacked() -> float:
    bounds = (0.0, 1.0)
    return np.random.uniform(*bounds)


# A call, the text in the warning, and a part of the remedy.
IMPURE: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: np.random.normal(), "np.random.normal", "ptir.random and a key"),
    (lambda: np.random.rand(3), "np.random.rand", "ptir.random and a key"),
    (lambda: np.random.randint(3), "np.random.randint", "ptir.random and a key"),
    (lambda: np.random.sample(), "np.random.sample", "ptir.random and a key"),
    (lambda: np.random.default_rng(), "np.random.default_rng", "give it a seed"),
    (lambda: np.random.RandomState(), "np.random.RandomState", "give it a seed"),
    (lambda: rng.normal(size=3), "rng.normal", "ptir.random and a key"),
    (lambda: rng.integers(9), "rng.integers", "ptir.random and a key"),
    (lambda: random.random(), "random.random", "ptir.random and a key"),
    (lambda: random.uniform(0, 1), "random.uniform", "ptir.random and a key"),
    (lambda: random.choice((1, 2)), "random.choice", "ptir.random and a key"),
    (lambda: gauss(0, 1), "gauss", "ptir.random and a key"),
    (lambda: seeded.random(), "seeded.random", "ptir.random and a key"),
    (lambda: Random().random(), "Random", "give it a seed"),
    (lambda: time.time(), "time.time", "pass the value as an argument"),
    (lambda: time.perf_counter(), "time.perf_counter", "pass the value as an argument"),
    (lambda: time.monotonic_ns(), "time.monotonic_ns", "or use ptir.callback"),
    (lambda: clock(), "clock", "pass the value as an argument"),
    (lambda: datetime.datetime.now().second, "datetime.datetime.now", "pass the value"),
    (lambda: moment.now(datetime.UTC).second, "moment.now", "pass the value"),
    (lambda: datetime.date.today().day, "datetime.date.today", "pass the value"),
    (lambda: os.urandom(2)[0], "os.urandom", "ptir.random and a key"),
    (lambda: uuid.uuid4().int % 7, "uuid.uuid4", "pass the value"),
    (lambda: secrets.randbelow(9), "secrets.randbelow", "ptir.random and a key"),
    (lambda: secrets.choice((1, 2)), "secrets.choice", "ptir.random and a key"),
    (lambda: sum(rng.random() for _ in range(2)), "rng.random", "ptir.random and a key"),
    (lambda: (lambda: rng.random())(), "rng.random", "ptir.random and a key"),
    (helper, "np.random.normal", "ptir.random and a key"),
    (inner_import, "time.time_ns", "pass the value"),
    (aliased, "draw.uniform", "ptir.random and a key"),
    (unpacked, "np.random.uniform", "ptir.random and a key"),
    (Holder().noise, "self.rng.normal", "ptir.random and a key"),
]


@pytest.mark.parametrize(
    ("call", "text", "remedy"), IMPURE, ids=[f"{n}-{text}" for n, (_, text, _) in enumerate(IMPURE)]
)
def test_an_impure_call(call: Callable[[], Any], text: str, remedy: str) -> None:
    def step(x):
        return x * 0 if call() is None else x + 1

    function = ptir.jit(name="step")(step)
    with pytest.warns(ImpureCallWarning) as found:
        equal(function(X), X + 1)
    (warning,) = found
    said = str(warning.message)
    assert said.startswith(f"{text}() is called while step is traced, and in no later call")
    assert remedy in said
    assert warning.filename == __file__
    function(X)  # a warning would be an error
    assert sys.gettrace() is None


def test_the_line_is_that_of_the_call() -> None:
    def step(x):
        y = x + 1
        z = np.random.normal()
        return y * z + random.random()

    with pytest.warns(ImpureCallWarning) as found:
        ptir.jit(step)(X)
    start = step.__code__.co_firstlineno
    assert [warning.lineno - start for warning in found] == [2, 3]


def test_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("2"))
    function = ptir.jit(lambda x: x * int(input()))
    with pytest.warns(ImpureCallWarning, match=r"input\(\) is called"):
        equal(function(X), X * 2)
    with pytest.raises(EOFError):
        function(array(4))
    assert sys.gettrace() is None


def test_torch_where_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = ModuleType("torch")
    torch.randn = torch.zeros = lambda size: np.zeros(size, np.float32)
    torch.zeros = lambda size: np.zeros(size, np.float32)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.warns(ImpureCallWarning, match=r"torch\.randn\(\) is called"):
        ptir.jit(lambda x: x + torch.randn(3) + torch.zeros(3))(X)


def test_methods_and_arguments() -> None:
    holder = Holder()
    for function in (ptir.jit(holder.step), ptir.jit(lambda x: holder.step(x))):
        with pytest.warns(ImpureCallWarning, match=r"self\.rng\.normal\(\)"):
            function(X)
    with pytest.warns(ImpureCallWarning, match=r"source\.normal\(\)"):
        ptir.jit(lambda x, source: x + source.normal())(X, rng)
    with pytest.warns(ImpureCallWarning, match=r"draw\.normal\(\)"):
        ptir.jit(lambda x: [x + draw.normal() for draw in generators.values()])(X)


def test_functions_inside_of_functions() -> None:
    inner = ptir.jit(lambda x: x + random.random())

    def body(total, row):
        return total + row * time.time(), None

    with pytest.warns(ImpureCallWarning, match=r"random\.random\(\)"):
        ptir.jit(lambda x: inner(x) + 1)(X)
    with pytest.warns(ImpureCallWarning, match=r"time\.time\(\)"):
        ptir.jit(lambda x: ptir.scan(body, 0.0, x)[0])(X)
    with pytest.warns(ImpureCallWarning, match=r"random\.random\(\)"):
        inner.lower(X)


def own_generator(x: Any) -> Any:
    own = np.random.default_rng(3)
    return x + own.normal(size=3).astype(np.float32) + Random(4).random()


def branches(x: Any) -> Any:
    return x + (np.random.normal() if x.ndim > 5 else 1)


def unread(x: Any) -> Any:
    function = time.time
    return x if function is not None else x + 1


def reached_by_callback(x: Any) -> Any:
    drawn = ptir.callback(lambda: np.float32(np.random.normal() * 0), result="f32[]")
    return x + drawn


class Layer:
    """Names that impure functions have, and other meanings."""

    def normal(self, x: Any) -> Any:
        return x + self.time()

    def time(self) -> int:
        return 1


@pytest.mark.parametrize(
    "function",
    [
        own_generator,
        branches,
        unread,
        reached_by_callback,
        lambda x: Layer().normal(x),
        lambda x: x + ptir.random.normal(ptir.random.key(0), (3,)),
        lambda x: np.random.seed(0) or x,
        lambda x: x + len(repr(rng.bit_generator.state)) * 0,
        lambda x: time.sleep(0) or x,
        lambda x: ptir.callback(clock, result="f64[]") * 0 + x,
    ],
)
def test_no_warning(function: Callable[[Any], Any]) -> None:
    jitted = ptir.jit(function)
    jitted(X)  # a warning would be an error
    jitted(X)


def test_outside_of_traces() -> None:
    helper()
    with ptir.eager():
        ptir.jit(lambda x: x + helper())(X)


@pytest.mark.parametrize("action", ["default", "always"])
def test_once_for_each_line(action: Any) -> None:
    function = ptir.jit(lambda x: x + helper())
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)
        for size in (1, 2, 3):
            function(array(size))
    assert len(found) == 1


def test_an_error_of_the_filter_is_raised() -> None:
    function = ptir.jit(lambda x: x + np.random.normal())
    with pytest.raises(ImpureCallWarning, match=r"np\.random\.normal"):
        function(X)
    assert function.cache_info().misses == 0


def test_a_debugger_keeps_its_place() -> None:
    def debugger(*_: Any) -> None:
        return None

    def step(x):
        sys.settrace(debugger)
        return x + np.random.normal()

    try:
        with pytest.warns(ImpureCallWarning):  # of the frame that was watched already
            ptir.jit(lambda x: step(x))(X)
        assert sys.gettrace() is debugger
        ptir.jit(lambda x: x + np.random.normal())(X)  # it is in use: nothing is found
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(None)
