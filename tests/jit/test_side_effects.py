"""GPTRS_DEBUG: side effects of a trace, and traces that differ."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ImpureCallWarning, NondeterminismWarning, SideEffectWarning
from tests.support.jitted import X, array, equal

counter = 0
last: Any = None


@pytest.fixture(autouse=True)
def debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_DEBUG", "1")


class Holder:
    calls = 0

    def __init__(self) -> None:
        self.count = 0
        self.parts: list[Any] = []

    @functools.cached_property
    def table(self) -> Any:
        return np.ones(3, np.float32)

    @functools.cached_property
    def traced(self) -> Any:
        return ptir.ones((3,)) * 2


def closures() -> list[tuple[str, Callable[[Any], Any], str, int, Callable[[], Any], Any]]:
    """Name; function; what the warning says; the line, counted from the function's; what it has
    changed, and the value of that."""
    log: list[int] = []
    known: dict[str, int] = {"a": 1}
    seen: set[int] = set()
    recent: deque[int] = deque(maxlen=2)
    counts: Counter[str] = Counter()
    holder = Holder()
    table = np.zeros(2)
    total = 0

    def to_list(x):
        y = x + 1
        log.append(x.ndim)
        return y

    def to_alias(x):
        other = log
        other.append(2)
        return x

    def in_helper(x):
        return x + len(str(add(log)))

    def add(items):
        items.append(3)
        return 1

    def to_dict(x):
        known["b"] = 2
        return x

    def from_dict(x):
        known.clear()
        return x

    def to_set(x):
        seen.add(x.ndim)
        return x

    def to_deque(x):
        recent.append(1)
        return x

    def to_counter(x):
        counts["a"] += 1
        return x

    def to_attribute(x):
        holder.count += 1
        return x

    def to_class(x):
        Holder.calls += 1
        return x

    def to_array(x):
        table[1] += 1
        return x

    def to_cell(x):
        nonlocal total
        total += 1
        return x

    def to_global(x):
        global counter
        counter += 1
        return x

    return [
        ("list", to_list, "closure log changes", 2, lambda: log, [1]),
        ("alias", to_alias, "closure log changes", 2, lambda: log, [1, 2]),
        ("helper", in_helper, "closure log changes", 4, lambda: log, [1, 2, 3]),
        ("dict", to_dict, "closure known changes", 1, lambda: known, {"a": 1, "b": 2}),
        ("clear", from_dict, "closure known changes", 1, lambda: known, {}),
        ("set", to_set, "closure seen changes", 1, lambda: seen, {1}),
        ("deque", to_deque, "closure recent changes", 1, lambda: [*recent], [1]),
        ("counter", to_counter, "closure counts changes", 1, lambda: counts, {"a": 1}),
        ("attribute", to_attribute, "closure holder.count changes", 1, lambda: holder.count, 1),
        ("class", to_class, "class Holder.calls changes", 1, lambda: Holder.calls, 1),
        ("array", to_array, "closure table changes", 1, lambda: table.tolist(), [0, 1]),
        ("cell", to_cell, "closure total changes", 2, lambda: total, 1),
        ("global", to_global, "global counter changes", 2, lambda: counter, 1),
    ]


@pytest.mark.parametrize("number", range(len(closures())), ids=[name for name, *_ in closures()])
def test_a_change_happens_once_and_is_named(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Holder, "calls", 0)
    monkeypatch.setitem(globals(), "counter", 0)
    _, function, text, line, state, changed = closures()[number]
    if isinstance(changed, list) and "log" in text:
        changed = changed[-1:]
    jitted = ptir.jit(name="step")(function)
    with pytest.warns(SideEffectWarning) as found:
        jitted(X)
    (warning,) = found
    assert str(warning.message) == (
        f"{text} while step is traced, and in no later call. Fix: return the new value, or change"
        " it in a function that ptir.callback calls."
    )
    assert warning.filename == __file__
    assert warning.lineno == function.__code__.co_firstlineno + line
    assert state() == changed


def leaks() -> list[tuple[str, Callable[[Any], Any], str, int]]:
    kept: list[Any] = []
    nested: dict[str, Any] = {"parts": ()}
    holder = Holder()

    def in_list(x):
        kept.append(x * 2)
        return x

    def in_dict(x):
        nested["parts"] = (1, [x])
        return x

    def in_attribute(x):
        holder.count = x.sum()
        return x

    def in_global(x):
        global last
        last = x
        return x

    def in_memo(x):
        return x + holder.traced

    return [
        ("list", in_list, r"closure kept keeps a traced value \(result of mul at line \d+", 1),
        ("dict", in_dict, r"closure nested keeps a traced value \(argument x, f32\[3\]\)", 1),
        ("attribute", in_attribute, r"closure holder\.count keeps a traced value \(result of", 1),
        ("global", in_global, r"global last keeps a traced value \(argument x", 2),
        ("memo", in_memo, r"closure holder\.traced keeps a traced value", 1),
    ]


@pytest.mark.parametrize("number", range(len(leaks())), ids=[name for name, *_ in leaks()])
def test_a_leak_is_named(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "last", None)
    _, function, text, line = leaks()[number]
    with pytest.warns(SideEffectWarning, match=text) as found:
        ptir.jit(name="step")(function)(X)
    (warning,) = found
    assert "when step has been traced" in str(warning.message)
    assert warning.lineno == function.__code__.co_firstlineno + line


def test_self_and_arguments() -> None:
    class Model:
        def __init__(self) -> None:
            self.steps = 0

        @ptir.jit
        def __call__(self, x):
            self.steps += 1
            return x

    model = Model()
    with pytest.warns(SideEffectWarning, match=r"argument self\.steps changes while") as found:
        model(X)
    assert found[0].lineno == inspect.unwrap(Model.__call__).__code__.co_firstlineno + 2
    assert model.steps == 1


random_numbers = np.random.default_rng(0)
numbers = itertools.count()


def draws(x: Any) -> Any:
    return (x + 1) * float(random_numbers.integers(1 << 40))


def draws_arrays(x: Any) -> Any:
    return x + random_numbers.normal(size=(100, 3)).astype(np.float32)


def consumes(x: Any) -> Any:
    y = x + 2
    for _ in range(next(numbers)):
        y = y * 3
    return y


def ends(x: Any, parts: Any = iter([1.0])) -> Any:  # noqa: B008 - to be consumed
    return x + next(parts)


def returns(x: Any) -> Any:
    return x, next(numbers)


DIFFERING: list[tuple[Callable[[Any], Any], str, int | None]] = [
    (draws, r"v1 = ptir\.mul\(v0, \d+\.0\)  # f32\[3\], then v1 = ptir\.mul\(v0, \d+\.0\)", 1),
    (draws_arrays, r"v1 = ptir\.constant\(.*, then v1 = ptir\.constant\(.*", 1),
    (consumes, r"return v0, then v1 = ptir\.mul\(v0, 3\)", 3),
    (ends, r"a second trace of step, unlike the first, raised StopIteration", None),
    (returns, r"a result is \d+, then \d+", None),
]


@pytest.mark.filterwarnings("ignore::gptrs.errors.ImpureCallWarning")
@pytest.mark.parametrize(("function", "text", "line"), DIFFERING)
def test_traces_that_differ(
    function: Any, text: str, line: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "numbers", itertools.count())
    with pytest.warns(NondeterminismWarning, match=text) as found:
        ptir.jit(name="step")(function)(X)
    (warning,) = [each for each in found if each.category is NondeterminismWarning]
    assert warning.filename == __file__
    assert "Fix: pass what changes as an argument" in str(warning.message)
    if line is not None:
        assert warning.lineno == function.__code__.co_firstlineno + line


def test_generators_are_where_one_trace_leaves_them() -> None:
    own = np.random.RandomState(3)
    with pytest.warns(ImpureCallWarning), pytest.warns(NondeterminismWarning):
        found = ptir.jit(lambda x: x * 0 + own.uniform() + np.random.uniform())(X)
    again = np.random.RandomState(3)
    assert own.uniform() != pytest.approx(again.uniform())
    assert own.get_state()[2] == again.get_state()[2] + 2  # pyright: ignore[reportArgumentType, reportIndexIssue]
    assert found.shape == (3,)


def test_prints_are_heard_once(capsys: pytest.CaptureFixture[str]) -> None:
    def step(x):
        print("traced")
        print("traced", file=sys.stderr)
        return x

    ptir.jit(name="step")(step)(X)
    out, err = capsys.readouterr()
    assert out == "traced\n"
    assert err.count("traced\n") == 1
    assert err.count("traced for the first call") == 1


def test_other_threads_are_heard(capsys: pytest.CaptureFixture[str]) -> None:
    def step(x):
        thread = threading.Thread(target=print, args=("from a thread",))
        thread.start()
        thread.join()
        return x

    ptir.jit(step)(X)
    assert capsys.readouterr().out == "from a thread\n" * 2


def pure(x: Any) -> Any:
    local: list[Any] = []
    for _ in range(3):
        local.append(x)
    x = x + 1
    x[0] = 3
    return {"sum": sum(local), "x": x}


memo = Holder()
POOL: dict[str, list[int]] = {"a": [1, 2]}


@pytest.mark.parametrize(
    "function",
    [
        pure,
        lambda x: x + memo.table,
        lambda x: x + POOL["a"][1] + Holder.calls,
        lambda x: ptir.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, x),
        lambda x: ptir.callback(lambda v: (POOL["a"].append(3), v)[1], x, result="f32[3]"),
        lambda x: x + ptir.random.normal(ptir.random.key(0), (3,)),
    ],
)
def test_no_warning(function: Callable[[Any], Any]) -> None:
    ptir.jit(function)(X)  # a warning would be an error


def test_nothing_is_traced_twice_without_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_DEBUG", "0")
    traces: list[int] = []

    def step(x):
        traces.append(1)
        return x + 1

    equal(ptir.jit(step)(X), X + 1)
    assert len(traces) == 1


def test_a_debugger_keeps_its_place() -> None:
    log: list[int] = []

    def debugger(*_: Any) -> None:
        return None

    def step(x):
        log.append(1)
        return x

    sys.settrace(debugger)
    try:
        with pytest.warns(SideEffectWarning, match="closure log changes"):  # without its line
            ptir.jit(step)(array(2))
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(None)
    assert log == [1]


def test_an_error_of_the_filter_leaves_one_change() -> None:
    log: list[int] = []
    function = ptir.jit(lambda x: log.append(1) or x)
    with pytest.raises(SideEffectWarning):
        function(X)
    assert log == [1]
