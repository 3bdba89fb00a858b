"""Native calls after changes of what a function reads, of settings and of contexts."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from gptrs import nn, ptir
from gptrs.errors import ElementError
from gptrs.ir.parameter import Parameter
from gptrs.jit.native_call import checks
from tests.support.native_calls import NEEDS_NATIVE_CALLS, X, is_native, outcome, warm

pytestmark = NEEDS_NATIVE_CALLS


SCALE = 2.0


class Scaled(nn.Module):
    w: Any
    factor: float = 3.0

    def __call__(self, x: Any) -> Any:
        return x * self.w * self.factor * SCALE


class Holder:
    """An object that is no container."""

    def __init__(self) -> None:
        self.values = [1.0, 2.0]
        self.table = {"a": 3.0}


Function = Callable[[Any], Any]


def changes() -> Generator[tuple[Function, Function]]:
    """A function, and a change of what its call reads."""
    model = Scaled(Parameter(X, "w"))
    yield model, lambda patch: patch.setitem(globals(), "SCALE", 5.0)
    yield model, lambda _: setattr(model, "factor", 7.0)
    yield model, lambda _: setattr(model, "w", Parameter(X * 2, "w"))
    yield model, lambda _: setattr(model, "more", 1)
    yield model, lambda patch: patch.setattr(Scaled, "__call__", lambda self, x: x - self.w)
    yield model, lambda patch: patch.delitem(globals(), "SCALE")
    captured = X.copy()
    yield lambda x: x + captured, lambda _: captured.fill(9)
    holder = Holder()
    yield lambda x: x * holder.values[1], lambda _: holder.values.append(1.0)
    yield lambda x: x * holder.values[1], lambda _: setattr(holder, "values", [1.0, 3.0])
    yield lambda x: x * holder.table["a"], lambda _: holder.table.update(a=4.0)
    yield closure()
    yield lambda x: times(x), lambda patch: patch.setattr(times, "__defaults__", (3.0,))
    yield lambda x: times(x), lambda patch: patch.setattr(times, "__code__", plus.__code__)


def times(x: Any, factor: float = 2.0) -> Any:
    return x * factor


def plus(x: Any, factor: float = 2.0) -> Any:
    return x + factor


def closure() -> tuple[Function, Function]:
    value = 2.0

    def change(_: object) -> None:
        nonlocal value
        value = 11.0

    return lambda x: x * value, change


@pytest.mark.parametrize("number", range(13))
def test_changes_of_captures(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    function, change = [*changes()][number]
    jitted = ptir.jit(lambda x: function(x))
    warm(jitted, X)
    assert is_native(jitted, X)
    change(monkeypatch)
    assert not is_native(jitted, X)
    assert outcome(jitted, X) == outcome(ptir.jit(lambda x: function(x)), X)


@pytest.mark.parametrize("variable", ["GPTRS_EAGER", "GPTRS_PRECISE", "GPTRS_NUM_THREADS"])
def test_changes_of_settings(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", "2")
    jitted = ptir.jit(lambda x: x + 1)
    warm(jitted, X)
    assert is_native(jitted, X)
    monkeypatch.setenv(variable, "1")
    assert not is_native(jitted, X)
    monkeypatch.delenv(variable)
    monkeypatch.setenv("GPTRS_NUM_THREADS", "2")
    assert is_native(jitted, X)


@contextmanager
def another_environment() -> Generator[None]:
    before = os.environ
    os.environ = dict(before)  # noqa: B003  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        os.environ = before  # noqa: B003


@pytest.mark.parametrize(
    "context",
    [ptir.eager, lambda: ptir.backend("reference"), another_environment, ptir.assume_unchanged],
)
def test_contexts(context: Callable[[], Any]) -> None:
    jitted = ptir.jit(lambda x: x + 1)
    warm(jitted, X)
    with context():
        assert not is_native(jitted, X)
        np.testing.assert_array_equal(jitted(X).numpy(), X + 1)
    assert is_native(jitted, X)


def test_inside_of_a_trace() -> None:
    inner = ptir.jit(lambda x: x + 1)
    warm(inner, X)
    outer = ptir.jit(lambda y: inner(X) * y)
    assert len(outer.program(X).body) > 1
    np.testing.assert_array_equal(outer(X).numpy(), (X + 1) * X)


def test_a_failed_step() -> None:
    jitted = ptir.jit(lambda x, y: x // y)
    x, y = np.arange(4, dtype=np.int32), np.array([1, 2, 3, 4], np.int32)
    warm(jitted, x, y)
    assert is_native(jitted, x, y)
    zero = np.array([1, 2, 0, 4], np.int32)
    errors = []
    for function in (jitted, ptir.jit(lambda x, y: x // y)):
        with pytest.raises(ElementError) as found:
            function(x, zero)
        errors.append(str(found.value).replace("<lambda>", ""))
    assert errors[0].splitlines()[0] == errors[1].splitlines()[0]
    assert is_native(jitted, x, y)


def test_an_evicted_program() -> None:
    jitted = ptir.jit(lambda x: x + 1)
    warm(jitted, X)
    jitted.clear_cache()
    assert not is_native(jitted, X)
    jitted(X)
    assert jitted.cache_info().misses == 1


FACTOR = 2.0


def scaled(x: Any) -> Any:
    return x * FACTOR


@pytest.mark.parametrize("versions", [True, False])
def test_globals_that_change_and_change_back(
    monkeypatch: pytest.MonkeyPatch, versions: bool
) -> None:
    """A dictionary that was changed is looked at again, whatever was changed in it."""
    if not versions:
        monkeypatch.setattr(checks, "has_versions", lambda: False)
    jitted = ptir.jit(scaled)
    warm(jitted, X)
    before = FACTOR
    for _ in range(2):
        monkeypatch.setitem(globals(), "FACTOR", 3.0)
        np.testing.assert_array_equal(jitted(X).numpy(), X * 3)
        monkeypatch.setitem(globals(), "FACTOR", before)
        assert is_native(jitted, X)
        np.testing.assert_array_equal(jitted(X).numpy(), X * 2)
        monkeypatch.setitem(globals(), "ANOTHER", 1.0)
        assert is_native(jitted, X)


def test_variables_of_the_environment_that_change_back(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = ptir.jit(lambda x: x + 1)
    warm(jitted, X)
    for _ in range(2):
        monkeypatch.setenv("GPTRS_EAGER", "1")
        assert not is_native(jitted, X)
        monkeypatch.delenv("GPTRS_EAGER")
        monkeypatch.setenv("ANOTHER_VARIABLE", "1")
        assert is_native(jitted, X)
