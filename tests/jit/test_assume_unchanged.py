"""`ptir.assume_unchanged`: guards of captured state are checked once per block."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.errors import DonatedError
from gptrs.ir.parameter import Parameter
from gptrs.jit.guards import Guard
from tests.support.slow_path import Layer, X, layer


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Guard]:
    """The guards that looked, one for each time."""
    found: list[Guard] = []
    read = Guard.read

    def counted(guard: Guard, roots: list[object]) -> object:
        found.append(guard)
        return read(guard, roots)

    monkeypatch.setattr(Guard, "read", counted)
    return found


def test_a_loop_looks_once(looks: list[Guard]) -> None:
    function, model = ptir.jit(lambda model, x: model(x)), layer(2.0)
    function(model, X)
    looks.clear()
    unchanged = ptir.assume_unchanged()
    for i in range(5):
        with unchanged:
            np.testing.assert_array_equal(function(model, X + i).numpy(), (X + i) * 2)
    assert len(looks) == 1
    function(model, X)
    assert len(looks) == 2


def test_changes_are_seen_before_and_after() -> None:
    function, model = ptir.jit(lambda model, x: model(x)), layer(2.0)
    function(model, X)
    model.factor = 3.0
    unchanged = ptir.assume_unchanged()
    with unchanged:  # the first look sees a change, and the next call is like it
        np.testing.assert_array_equal(function(model, X).numpy(), X * 6)
        np.testing.assert_array_equal(function(model, X).numpy(), X * 6)
        model.factor = 5.0
        np.testing.assert_array_equal(function(model, X).numpy(), X * 6)
    np.testing.assert_array_equal(function(model, X).numpy(), X * 10)
    with ptir.assume_unchanged():
        np.testing.assert_array_equal(function(model, X).numpy(), X * 10)


def test_other_arguments_are_looked_at_by_themselves(looks: list[Guard]) -> None:
    function = ptir.jit(lambda model, x: model(x))
    models = [layer(2.0), layer(3.0)]
    shapes = X, np.ones((2, 3), np.float32)
    for model in models:
        for x in shapes:
            function(model, x)
    looks.clear()
    unchanged = ptir.assume_unchanged()
    for _ in range(3):
        for model, value in zip(models, (2.0, 3.0), strict=True):
            for x in shapes:
                with unchanged:
                    np.testing.assert_array_equal(function(model, x).numpy(), x * value)
    assert len(looks) == 4


def test_a_model_that_takes_the_memory_of_another_is_another() -> None:
    function, unchanged = ptir.jit(lambda model, x: model(x)), ptir.assume_unchanged()
    for i in range(50):
        model = Layer(Parameter(np.full(3, i, np.float32), "w"))
        for _ in range(3):
            with unchanged:
                np.testing.assert_array_equal(function(model, X).numpy(), X * i)
        del model


@pytest.mark.slow
def test_it_keeps_models_only_as_long_as_it_is_kept() -> None:
    function, model = ptir.jit(lambda model, x: model(x)), layer(2.0)
    gone, unchanged = weakref.ref(model), ptir.assume_unchanged()
    for _ in range(3):
        with unchanged:
            function(model, X)
    del model
    gc.collect()
    assert gone() is not None
    del unchanged
    gc.collect()
    assert gone() is None


def test_donation_is_checked_in_every_call() -> None:
    function, unchanged = ptir.jit(donate="x")(lambda x, y: x + y), ptir.assume_unchanged()
    y = ptir.tensor(X)
    for _ in range(3):
        with unchanged:
            function(ptir.tensor(X.copy()), y)
    x = ptir.tensor(X.copy())
    with unchanged, pytest.raises(DonatedError):
        function(x, x)


def test_an_error_ends_the_block_and_blocks_nest(looks: list[Guard]) -> None:
    function, model = ptir.jit(lambda model, x: model(x)), layer(2.0)
    outer, inner = ptir.assume_unchanged(), ptir.assume_unchanged()

    def fail() -> None:
        function(model, X)
        raise ZeroDivisionError

    function(model, X)
    with outer:
        function(model, X)
        assert len(looks) == 1
        with pytest.raises(ZeroDivisionError), inner:
            fail()
        assert len(looks) == 2
        with outer, inner:
            function(model, X)
        function(model, X)
        assert len(looks) == 2
    function(model, X)
    assert len(looks) == 3


def test_threads_may_share_one(looks: list[Guard]) -> None:
    function, model = ptir.jit(lambda model, x: model(x)), layer(2.0)
    function(model, X)
    unchanged, entered, left = ptir.assume_unchanged(), threading.Event(), threading.Event()
    ended: list[bool] = []

    def call() -> None:
        with unchanged:
            entered.set()
            left.wait(60)
            function(model, X)
        ended.append(True)

    thread = threading.Thread(target=call)
    with unchanged:
        function(model, X)
        thread.start()
        entered.wait(60)
    left.set()
    thread.join()
    assert ended
    assert len(looks) == 1
    function(model, X)
    assert len(looks) == 2


def test_other_threads_look() -> None:
    function, model = ptir.jit(lambda model, x: model(x)), layer(2.0)
    found: list[float] = []

    def call() -> None:
        found.append(float(function(model, X).numpy()[0] / X[0]))

    with ptir.assume_unchanged():
        call()
        call()
        model.factor = 3.0
        call()
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert found == [2, 2, 2, 6]


def test_a_text_looks_at_the_model_once_for_each_program(good: Path, looks: list[Guard]) -> None:
    model = gptrs.load(good)
    expected = model.generate("once", max_tokens=8, ignore_eos=True)
    looks.clear()
    assert model.generate("once", max_tokens=8, ignore_eos=True) == expected
    assert len(looks) == 2  # one program for the prompt, one for each token after it
    pieces = model.stream_tokens(model.tokenizer.encode("once"), max_tokens=8, ignore_eos=True)
    ids = [next(pieces), next(pieces)]
    norm = model.module.ln_f
    norm.weight = Parameter(-norm.weight.numpy(), "other")
    assert model.tokenizer.decode([*ids, *pieces]) == expected
    assert model.generate("once", max_tokens=8, ignore_eos=True) != expected


def test_the_old_name_warns() -> None:
    with pytest.warns(DeprecationWarning, match=r"ptir.Steady is called gptrs.ptir.assume_unch"):
        assert ptir.Steady is ptir.assume_unchanged
