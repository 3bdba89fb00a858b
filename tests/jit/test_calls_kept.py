"""The call cache of the fast path: what it keeps alive, evicts, and compares at each call."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, DonatedError, SettingError
from gptrs.ir.parameter import Parameter
from gptrs.jit.fast_path.call_cache import _MAX_ENTRIES
from gptrs.nn.module import Module
from tests.support.slow_path import Layer, Scale, SlowCalls, X, layer


def test_models_take_turns(slow_calls: SlowCalls) -> None:
    function = ptir.jit(lambda model, x: model(x))
    models = [layer(2.0), layer(3.0), layer(5.0)]
    for model in models:
        function(model, X)
    for model, value in zip(models, (2.0, 3.0, 5.0), strict=True):
        assert slow_calls.during(lambda m=model: function(m, X)) == 0
        np.testing.assert_array_equal(function(model, X).numpy(), X * value)
    assert function.cache_info().misses == 1


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("place", ["argument", "tuple", "global", "attribute", "table"])
def test_a_model_that_is_dropped_is_freed(place: str, slow_calls: SlowCalls) -> None:
    model = family()
    scope: dict[str, Any] = {"apply": apply, "box": Scale(), "table": {}}
    body = {"global": "model", "attribute": "box.model", "table": "table['m']"}.get(place, "given")
    exec(f"def function(x, given): return apply({body}, x)", scope)
    function = ptir.jit(scope["function"])
    scope["model"] = scope["box"].model = scope["table"]["m"] = model
    argument: Any = {"argument": model, "tuple": model}.get(place)
    function(X, argument)
    assert slow_calls.during(lambda: function(X, argument)) == 0
    watched = [weakref.ref(part) for part in (model, model.rest[3], model.rest[3].weight)]
    scope["model"] = scope["table"]["m"] = scope["box"].model = argument = model = None
    gc.collect()
    assert [found() for found in watched] == [None, None, None]
    assert function.cache_info().currsize == 1


@pytest.mark.slow
def test_a_program_that_is_dropped_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_CACHE_SIZE", "1")
    function = ptir.jit(lambda x: x + 1)
    function(X)
    (known,) = function._calls._cached.values()
    program = weakref.ref(known.slot.entry.lowered)
    del known
    with pytest.warns(UserWarning, match="drops the least"):
        function(X[:2])
    gc.collect()
    assert program() is None
    assert len(function._calls._cached) == 1
    function.clear_cache()
    assert not function._calls._cached
    assert function.cache_info() == (0, 0, 1, 0)
    function(X)
    assert function.cache_info() == (0, 1, 1, 1)


@pytest.mark.slow
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


@pytest.mark.slow
def test_few_calls_are_remembered(slow_calls: SlowCalls) -> None:
    function = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: x * 2)
    for size in range(1, 2 * _MAX_ENTRIES):
        function(np.ones(size, np.float32))
        assert (
            slow_calls.during(lambda: function(np.ones(1, np.float32))) == 0
        )  # the last used stay
    assert len(function._calls._cached) == _MAX_ENTRIES
    assert slow_calls.during(lambda: function(np.ones(2, np.float32))) == 1
    assert function.cache_info().misses == 1
    for i in range(2 * _MAX_ENTRIES):
        ways: Any = {f"n{i}": X}
        assert ptir.jit(lambda **named: named)(**ways).keys() == ways.keys()


def test_donated_arguments(slow_calls: SlowCalls) -> None:
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

    assert slow_calls.during(again) == 0
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


def test_modes_are_looked_at_in_each_call(
    monkeypatch: pytest.MonkeyPatch, slow_calls: SlowCalls
) -> None:
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
        assert slow_calls.during(lambda: function(X)) == 0


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
