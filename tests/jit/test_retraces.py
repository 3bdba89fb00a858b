"""Retraces: which calls cause one, the reasons that are given, and evictions from the cache."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import events, ptir
from gptrs.errors import RetraceWarning
from gptrs.jit import cache
from gptrs.jit.cache import Retrace
from tests.support.jitted import Box, Mode, X, array, equal


def test_programs_are_kept_by_shape_dtype_and_backend() -> None:
    function = ptir.jit(lambda x: x + 1)
    function(array(2, 3))
    function(array(4, 3))
    function(array(2, 3).astype(np.float64))
    function(array(6))
    function(1.0)
    assert [r.reason for r in function.retraces()] == [
        "the first call",
        "argument x: axis 0: 2 → 4",
        "argument x: f32[4,3] → f64[2,3]",
        "argument x: f64[2,3] → f32[6]",
        "argument x: f32[6] → f64[]",
    ]
    assert function.retraces()[0].where is not None
    assert function.retraces()[0].where.file == __file__  # pyright: ignore[reportOptionalMemberAccess]
    assert function.retraces()[0].milliseconds > 0
    function.clear_cache()
    assert function.cache_info() == (0, 0, 128, 0)
    with ptir.backend("reference"):
        equal(function(X), X + 1)


def test_settings_that_rewriting_depends_on_are_part_of_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    function = ptir.jit(lambda x: x * 3.0 / 7.0)
    for _ in range(2):
        function(X)
        function(X)
        monkeypatch.setenv("GPTRS_PRECISE", "1")
        function(X)
        monkeypatch.setenv("GPTRS_OPT_PRE_ITERS", "0")
        function(X)
        monkeypatch.delenv("GPTRS_PRECISE")
        monkeypatch.delenv("GPTRS_OPT_PRE_ITERS")
    assert [r.reason for r in function.retraces()] == [
        "the first call",
        "GPTRS_PRECISE: False → True",
        "GPTRS_OPT_PRE_ITERS: 8 → 0",
    ]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ((X, X), (X, X, X), "argument x: tuple of 2 → tuple of 3"),
        ([X], (X,), "argument x: list of 1 → tuple of 1"),
        (X, (X, X), "argument x: f32[3] → tuple of 2"),
        (None, Box(X, X), "argument x: None → Box"),
        ({"a": X}, {"a": X, "b": X}, "argument x: dict of 'a' → dict of 'a', 'b'"),
        (Box(X, (X, 1)), Box(X, (X,)), "argument x.right: tuple of 2 → tuple of 1"),
        (Box(X, {"k": [X]}), Box(X, {"k": []}), "argument x.right['k']: list of 1 → list of 0"),
        (Box(X, X, name="a"), Box(X, X, name="b"), "argument x.name: 'a' → 'b'"),
        (Box(X, 1), Box(X, 1.0), "argument x.right: si64[] → f64[]"),
        ((X, 1), (X, np.int64(1)), "argument x[1]: a Python number → an array"),
        ((X, True), (X, False), "argument x[1]: True → False"),
        ((X, "a" * 99), (X, "b"), f"argument x[1]: '{'a' * 56}... → 'b'"),
        ((X, Mode.ADD), (X, Mode.SUB), "argument x[1]: another value"),
    ],
)
def test_a_retrace_says_the_one_thing_that_changed(first: Any, second: Any, reason: str) -> None:
    function = ptir.jit(lambda x, y: y)
    heard: list[object] = []
    function(first, X)
    with events.listen(heard.append):
        function(second, X)
    (retrace,) = (event for event in heard if isinstance(event, Retrace))
    assert retrace.reason == reason
    assert f"{function.name} was traced in" in str(retrace)


def test_the_nearest_key_explains() -> None:
    function = ptir.jit(lambda x, y: x)
    function(array(2), array(2))
    function(array(3), array(3))
    function(array(2), array(9))
    assert function.retraces()[-1].reason == "argument y: axis 0: 2 → 9"


def test_the_least_recently_used_goes_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_CACHE_SIZE", "2")
    function = ptir.jit(lambda cache: cache)
    function(array(1))
    function(array(2))
    function(array(1))
    with pytest.warns(RetraceWarning) as warned:
        function(array(3))
    text = str(warned[0].message)
    assert "more than 2 programs" in text
    assert "argument cache: axis 0: 1 → 3" in text
    assert "dynamic={'cache': {0: 'S'}}" in text
    assert warned[0].filename == __file__
    assert function.cache_info() == (1, 3, 2, 2)
    function(array(1))
    assert function.cache_info().misses == 3
    function(array(2))  # was dropped; the warning comes once
    assert function.cache_info().misses == 4


def test_a_reason_is_found_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A miss takes as long however many programs are cached."""
    compared: list[object] = []
    changes = cache._changes  # pyright: ignore[reportPrivateUsage]

    def counted(old: Any, new: Any) -> list[str]:
        compared.append(old)
        return changes(old, new)

    monkeypatch.setattr(cache, "_changes", counted)
    function = ptir.jit(lambda x: x + 1)
    for size in range(1, 81):
        function(array(size))
    assert not compared
    assert function.retraces()[-1].reason == "argument x: axis 0: 79 → 80"
    assert 0 < len(compared) <= 64


def test_a_function_that_was_defined_again_is_named() -> None:
    scope: dict[str, Any] = {"ptir": ptir}

    def define(text: str, file: str) -> None:
        exec(compile(text, file, "exec"), scope)

    define("def helper(x):\n    return x * 2", "first")
    define("def other(x):\n    return helper(x)", "other")
    define("f = ptir.jit(lambda x: other(x) + 1, name='f')", "f")
    scope["f"](X)
    define("\ndef helper(x):\n    return x * 3", "second")
    equal(scope["f"](X), X * 3 + 1)
    define("\ndef helper(x):\n    return x * 3", "second")
    scope["f"](X)
    assert [r.reason for r in scope["f"].retraces()[1:]] == [
        "code of global helper: first:1 → second:2",
        "code of global helper: defined again at second:2",
    ]
