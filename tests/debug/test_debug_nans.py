"""``ptir.debug_nans``: the instruction that makes a NaN, its line and its operands."""

# Traced functions take any array: small functions and what they return are not typed.
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.errors import ArgumentError, NanError, NanWarning
from tests.support.planted import line_of
from tests.support.slow_path import SlowCalls

X = np.array([1.0, 2.0, 3.0], np.float32)
SETTING = "GPTRS_DEBUG_NANS"


@pytest.fixture(autouse=True)
def off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting is restored after each test."""
    monkeypatch.setenv(SETTING, "off")


def logarithm(x: Any) -> Any:
    shifted = x - 2
    return ptir.log(shifted) * 3  # the line


def scanned(x: Any) -> Any:
    def body(state: Any, row: Any) -> Any:
        state = state - 1
        return state, ptir.sqrt(state) * row  # the line

    return ptir.scan(body, 1.5, x)[1]


def looped(x: Any) -> Any:
    def body(state: Any) -> Any:
        count, y = state
        return count + 1, ptir.sqrt(y - 1)  # the line

    return ptir.while_loop(lambda state: state[0] < 4, body, (0, x + 2))[1]


def branched(x: Any) -> Any:
    return ptir.cond(
        x[0] > 0,
        lambda y: y / (y - 2),
        lambda y: ptir.log(y - 2),  # the line
        x,
    )


def normalized(x: Any) -> Any:
    return ptir.softmax(x * -np.inf)  # the line


MADE: list[tuple[Callable[..., Any], Any, str, str]] = [
    (logarithm, X, "ptir.log", ""),
    (scanned, X, "ptir.sqrt", "scan body, iteration 1"),
    (looped, X - 2, "ptir.sqrt", "while_loop body, iteration 1"),
    (branched, -X, "ptir.log", "cond branch otherwise"),
    (normalized, X, "ptir.sub", "softmax"),
]
ids = [function.__name__ for function, *_ in MADE]


@pytest.mark.parametrize(("function", "x", "op", "path"), MADE, ids=ids)
def test_the_instruction_is_named(function: Callable[..., Any], x: Any, op: str, path: str) -> None:
    jitted = ptir.jit(function)
    jitted(x)
    with ptir.debug_nans("raise"), pytest.raises(NanError) as raised:
        jitted(x)
    error = raised.value
    head = f"{function.__name__}: {path}: {op} gives NaN in " if path else f"{op} gives NaN in "
    assert head in error.problem
    assert "0 NaN" in error.problem.splitlines()[1], "of the operands"
    assert error.where is not None
    assert (error.where.file, error.where.line) == line_of(function, "# the line")
    jitted(x)  # no longer


@pytest.mark.parametrize(("function", "x", "op", "path"), MADE[:4], ids=ids[:4])
def test_in_eager_mode(function: Callable[..., Any], x: Any, op: str, path: str) -> None:
    with ptir.debug_nans("raise"), ptir.eager(), pytest.raises(NanError) as raised:
        ptir.jit(function)(x)
    assert raised.value.problem.startswith(f"{op} gives NaN in ")
    assert raised.value.where is not None
    assert raised.value.where[:2] == line_of(function, "# the line")
    if "iteration" in path:
        assert path in raised.value.context


def test_statistics_of_the_operands() -> None:
    with ptir.debug_nans("raise"), pytest.raises(NanError) as raised:
        ptir.jit(logarithm)(np.array([1, 2, 6, np.inf], np.float32))
    _, operand, result = raised.value.problem.splitlines()
    assert "result of sub" in operand
    assert operand.endswith("f32[4]: min -1, max 4, mean 1, 0 NaN, 1 infinite")
    assert result.endswith("1 NaN, 2 infinite")


@pytest.mark.parametrize("eager", [False, True])
def test_what_is_no_new_nan(eager: bool) -> None:
    masked = ptir.jit(lambda x: ptir.where(x > 0, ptir.log(ptir.where(x > 0, x, 1)), 0))
    doubled = ptir.jit(lambda x: x * 2)
    captured = np.array([np.nan, 1, 2], np.float32)
    added = ptir.jit(lambda x: x + captured)
    with ptir.debug_nans("raise"), ptir.eager(eager):
        masked(X - 2)
        doubled(np.array([np.nan]))
        added(X)
        ptir.jit(lambda x: ptir.lgamma(x))(X)  # masks NaN on the way
    with ptir.debug_nans("raise"):
        ptir.jit(lambda x: ptir.where(x > 0, ptir.log(x), 0))(X - 2)


def test_the_masked_one_is_not_blamed() -> None:
    def both(x: Any) -> Any:
        masked = ptir.where(x > 0, ptir.log(x), 0.0)
        return masked + (x - x) / (x - x)  # the line

    with ptir.debug_nans("raise"), pytest.raises(NanError, match=r"ptir\.div gives") as raised:
        ptir.jit(both)(X - 2)
    assert raised.value.where is not None
    assert raised.value.where.line == line_of(both, "# the line")[1]


def test_infinities() -> None:
    inverse = ptir.jit(lambda x: 1 / x)
    zero = np.zeros(1, np.float32)
    with ptir.debug_nans("raise"):
        inverse(zero)
    with ptir.debug_nans("raise", infinities=True), pytest.raises(NanError, match="NaN or inf"):
        inverse(zero)


def test_warnings_for_each_call() -> None:
    jitted = ptir.jit(logarithm)
    for _ in range(2):
        with ptir.debug_nans("log"), pytest.warns(NanWarning, match=r"ptir\.log gives") as found:
            result = jitted(X)
        assert np.isnan(result.numpy()).tolist() == [True, False, False]
        (warning,) = found
        assert (warning.filename, warning.lineno) == line_of(logarithm, "# the line")


def test_the_process_and_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = ptir.jit(logarithm)
    ptir.debug_nans("raise")
    assert os.environ[SETTING] == "raise"
    with pytest.raises(NanError):
        jitted(X)
    with ThreadPoolExecutor(1) as pool, pytest.raises(NanError):
        pool.submit(jitted, X).result()
    with ptir.debug_nans("off"):
        jitted(X)
        assert os.environ[SETTING] == "raise"
    with pytest.raises(NanError):
        jitted(X)
    ptir.debug_nans("off")
    jitted(X)
    with ptir.debug_nans("raise"), ThreadPoolExecutor(1) as pool:
        pool.submit(jitted, X).result()  # another context
    monkeypatch.setenv(SETTING, "raise+inf")
    with pytest.raises(NanError, match="NaN or infinity"):
        jitted(X)


def test_donated_arguments_and_effects(capsys: pytest.CaptureFixture[str]) -> None:
    called: list[float] = []

    @ptir.jit(donate="state")
    def step(state: Any, x: Any) -> Any:
        ptir.print("step {}", x)
        y = ptir.callback(lambda v: called.append(float(v)) or v, x, result="f32[]")
        return ptir.dynamic_update_slice(state, ptir.sqrt(state[:1] - y), start=(0,))

    state = ptir.tensor(X)
    with ptir.debug_nans("raise"):
        state = step(state, np.float32(1))
        assert state.numpy().tolist() == [0, 2, 3]
        old = state
        with pytest.raises(NanError, match=r"ptir\.sqrt gives NaN in 1 of 1") as raised:
            step(state, np.float32(5))
    assert "min -5" in raised.value.problem
    assert old.donated
    assert called == [1.0, 5.0]
    assert capsys.readouterr().out.splitlines() == ["step 1.0", "step 5.0"]


def test_compiled_functions() -> None:
    compiled = ptir.jit(logarithm).lower(X).compile()
    compiled(X)
    with ptir.debug_nans("raise"), pytest.raises(NanError, match=r"ptir\.log gives"):
        compiled(X)


@pytest.mark.slow
def test_a_model() -> None:
    model = gptrs.load("stories")
    tokens = np.array([[1, 2, 3]])
    with ptir.debug_nans("raise"):
        model.forward(tokens)
        weight = model.parameters()["h.1.ln_2.weight"].numpy().copy()
        weight[3] = np.inf
        model.parameters()["h.1.ln_2.weight"] = weight
        with pytest.raises(NanError) as raised:
            model.forward(tokens)
    assert raised.value.where is not None
    assert raised.value.problem.startswith("gpt2: gelu_tanh: ptir.mul gives NaN in ")
    assert raised.value.where.function == "MLP.__call__"


def test_calls_are_fast_again(slow_calls: SlowCalls) -> None:
    jitted = ptir.jit(lambda x: x * 2)
    for _ in range(5):
        jitted(X)
    before = slow_calls.count
    with ptir.debug_nans("raise"):
        jitted(X)
        jitted(X)
    watched = slow_calls.count - before
    for _ in range(5):
        jitted(X)
    assert watched == 2
    assert slow_calls.count - before == 2


def test_wrong_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="action is 'stop', expected 'raise', 'log' or 'off'"):
        ptir.debug_nans("stop")  # type: ignore[arg-type]
    monkeypatch.setenv(SETTING, "maybe")
    with pytest.raises(gptrs.PtirError, match=f"{SETTING}='maybe': expected off, raise or log"):
        ptir.jit(logarithm)(X)
    monkeypatch.setenv(SETTING, "off")
