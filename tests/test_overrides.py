"""Which implementation of a composite runs: where policies come from, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.errors import (
    ArgumentError,
    LoadError,
    PtirError,
    SettingError,
    ShapeError,
    TraceError,
    VerifyError,
)
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS
from gptrs.ir.implementation import Implementation
from gptrs.ir.sizes import evaluate
from tests.models import random_tokens, tiny_gpt2

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((6, 300)).astype(np.float32) * 3
ENVIRONMENT = "GPTRS_OVERRIDES"


@pytest.fixture(autouse=True)
def _registrations(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """What a test registers is gone after it."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    composites: list[Any] = [op for op in OPS.values() if isinstance(op, Composite)]
    before = [dict(op.implementations) for op in composites]
    yield
    for op, known in zip(composites, before, strict=True):
        op.implementations.clear()
        op.implementations.update(known)


def softmax_function(**options: Any) -> Any:
    def f(x: Any) -> Any:
        return ptir.softmax(x)

    return ptir.jit(**options)(f)


def chosen(function: Any, *args: Any) -> tuple[str, ...]:
    return function.explain(*args).choices


# Each built-in alternative against the definition, in NumPy.


def attention_operands(keys: int, kv: tuple[Any, Any] = (None, None)) -> list[Any]:
    shapes = ((2, 4, 7, 8), (2, 2, keys, 8), (2, 2, keys, 6))
    return [*(RANDOM.standard_normal(s).astype(np.float32) for s in shapes), *kv]


KV = np.array([3, 295], np.int32), np.array([200, 300], np.int32)
ALTERNATIVES: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    ("softmax", "two_pass", [X], {}),
    ("softmax", "two_pass", [X], {"axis": 0}),
    ("softmax", "two_pass", [X[:, :0]], {"axis": 0}),
    ("softmax", "online", [X], {}),
    ("softmax", "online", [np.where(X > 0, X, -np.inf).astype(np.float32)], {}),
    ("softmax", "online", [X.T.copy()], {"axis": 0}),
    ("softmax", "online", [RANDOM.standard_normal((2, 3001)).astype(np.float16)], {}),
    ("layer_norm", "one_pass", [X, None, None], {}),
    ("layer_norm", "one_pass", [X, X[0], X[1]], {"eps": 1e-3}),
    ("layer_norm", "one_pass", [X.astype(np.float16), None, X[1].astype(np.float16)], {}),
    ("attention", "blocked", attention_operands(300), {}),
    ("attention", "blocked", attention_operands(129), {"causal": True, "scale": 0.2}),
    ("attention", "blocked", attention_operands(300, KV), {"causal": True}),
    ("attention", "blocked", attention_operands(300, (None, KV[1])), {"window": 5}),
    ("attention", "blocked", attention_operands(300, (KV[0], None)), {"causal": True}),
]


@pytest.mark.parametrize(("name", "other", "operands", "attrs"), ALTERNATIVES)
def test_alternatives_compute_what_the_definition_does(
    name: str, other: str, operands: list[Any], attrs: dict[str, Any]
) -> None:
    op = OPS[name]
    tensors = [None if o is None else ptir.tensor(o) for o in operands]
    ready, full = op.prepare(tensors, attrs)
    arrays = [o for o in operands if o is not None]
    (expected,) = evaluate(op.definition(ready, full), arrays)
    (found,) = evaluate(op.implemented(op.implementations[other], ready, full), arrays)
    # A few roundings of numbers up to 10, and one of f16.
    tolerance = 2e-6 if expected.dtype == np.float32 else 1e-3
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert found.dtype == expected.dtype


def test_every_alternative_has_a_row() -> None:
    built_in = {
        (op.name, other)
        for op in OPS.values()
        if isinstance(op, Composite)
        for other, known in op.implementations.items()
        if known.function.__module__.startswith("gptrs.")
    }
    assert built_in == {(name, other) for name, other, *_ in ALTERNATIVES}


# Where policies come from.


def test_each_place_and_the_innermost_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, decorated = softmax_function(), softmax_function(overrides={"softmax": "force=two_pass"})
    assert chosen(plain, X) == ()
    monkeypatch.setenv(ENVIRONMENT, " softmax : force = portable ; layer_norm: benchmark;")
    assert chosen(plain, X) == ("softmax: portable (force)",)
    assert chosen(decorated, X) == ("softmax: two_pass (force)",)
    with ptir.overrides({"softmax": "force=online"}):
        assert chosen(plain, X) == chosen(decorated, X) == ("softmax: online (force)",)
        with ptir.overrides({"softmax": "force=portable"}):
            assert chosen(decorated, X) == ("softmax: portable (force)",)
        with ptir.overrides({"layer_norm": "force=portable"}):  # of another composite
            assert chosen(decorated, X) == ("softmax: online (force)",)
    assert chosen(decorated, X) == ("softmax: two_pass (force)",)


@pytest.mark.parametrize("backend", ["faer", "reference"])
def test_results_are_those_of_the_implementation(backend: str) -> None:
    calls: list[str] = []

    @ptir.implementation("softmax", name="doubled")
    def _(x: Any, *, axis: int) -> Any:
        calls.append("traced")
        return ptir.softmax(x, axis=axis) * 2  # the kernel, or the definition: not itself again

    function = softmax_function(backend=backend)
    expected = function(X).numpy()
    with ptir.overrides({"softmax": "force=doubled"}):
        np.testing.assert_array_equal(function(X).numpy(), expected * 2)
        names = [i.op.name for i in function.lowered(X).body]
    assert ("custom_call" in names) == (backend == "faer")
    np.testing.assert_array_equal(function(X).numpy(), expected)
    assert calls == ["traced"]


def test_portable_opens_what_the_backend_claims() -> None:
    function = softmax_function(backend="faer")
    assert [i.op.name for i in function.lowered(X).body] == ["custom_call"]
    with ptir.overrides({"softmax": "force=portable"}):
        names = [i.op.name for i in function.lowered(X).body]
        assert "custom_call" not in names
        assert {"reduce_max", "exp", "reduce_sum"} <= set(names)
        np.testing.assert_allclose(function(X).numpy().sum(-1), 1, rtol=1e-6)
    with ptir.overrides({"softmax": "force=kernel"}):
        assert [i.op.name for i in function.lowered(X).body] == ["custom_call"]
    with (
        ptir.backend("reference"),
        ptir.overrides({"softmax": "force=kernel"}),
        pytest.raises(
            ArgumentError, match=r"backend 'reference', which has none for x: f32\[6,300"
        ),
    ):
        softmax_function()(X)


def test_forced_choices_spend_no_fuel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_FUEL", "0")
    function = softmax_function(backend="faer", overrides={"softmax": "force=two_pass"})
    assert "log" in [i.op.name for i in function.lowered(X).body]


def test_composites_inside_of_others_are_chosen() -> None:
    @ptir.implementation("sigmoid", name="by_tanh")
    def _(x: Any) -> Any:
        return ptir.tanh(x * 0.5) * 0.5 + 0.5

    @ptir.jit(backend="reference")
    def f(x: Any) -> Any:
        return ptir.silu(x) + ptir.silu(x * 2)

    with ptir.overrides({"sigmoid": "force=by_tanh"}):
        names = [i.op.name for i in f.lowered(X).body]
        assert "tanh" in names
        assert "exp" not in names
        assert chosen(f, X) == ("sigmoid: by_tanh (force), 2 times",)
        again = f(X).numpy()
    np.testing.assert_allclose(again, f(X).numpy(), rtol=1e-5, atol=1e-6)


def test_implementations_that_call_each_other_end() -> None:
    @ptir.implementation("softmax", name="by_log")
    def _(x: Any, *, axis: int) -> Any:
        return ptir.exp(ptir.log_softmax(x, axis=axis))

    @ptir.implementation("log_softmax", name="by_softmax")
    def _(x: Any, *, axis: int) -> Any:
        return ptir.log(ptir.softmax(x, axis=axis))

    function = softmax_function()
    expected = function(X).numpy()
    with ptir.overrides({"softmax": "force=by_log", "log_softmax": "force=by_softmax"}):
        assert chosen(function, X) == (
            "log_softmax: by_softmax (force)",
            "softmax: by_log (force)",
        )
        np.testing.assert_allclose(function(X).numpy(), expected, rtol=1e-5)


def test_an_implementation_may_loop_over_its_own_composite() -> None:
    def are_rows(x: ptir.Type, axis: int) -> bool:
        return x.rank == 2 and axis == -1

    @ptir.implementation("softmax", name="by_rows", when=are_rows)
    def _(x: Any, *, axis: int) -> Any:
        def step(state: Any, row: Any) -> Any:
            return state, ptir.softmax(row, axis=axis)

        return ptir.scan(step, x[0], x)[1]

    function = softmax_function()
    expected = function(X).numpy()
    with ptir.overrides({"softmax": "force=by_rows"}):
        np.testing.assert_allclose(function(X).numpy(), expected, rtol=1e-5)
        assert "scan" in [i.op.name for i in function.lowered(X).body]


def test_composites_in_loops_are_chosen() -> None:
    def step(count: Any, row: Any) -> Any:
        return count + 1.0, ptir.softmax(row)

    @ptir.jit
    def f(x: Any) -> Any:
        return ptir.scan(step, 0.0, x)[1]

    expected = f(X).numpy()
    with ptir.overrides({"softmax": "force=two_pass"}):
        assert chosen(f, X) == ("softmax: two_pass (force)",)
        np.testing.assert_allclose(f(X).numpy(), expected, rtol=1e-5)


# Caches.


def test_other_overrides_are_other_programs() -> None:
    function = softmax_function()
    for _ in range(3):
        function(X)
        with ptir.overrides({"softmax": "force=two_pass"}):
            function(X)
        with ptir.overrides({"softmax": "force=portable"}):
            function(X)
    assert [r.reason for r in function.retraces()] == [
        "the first call",
        "overrides: 'none' → 'softmax: force=two_pass'",
        "overrides: 'softmax: force=two_pass' → 'softmax: force=portable'",
    ]
    assert function.cache_info().hits == 6


def test_a_function_defined_again_replaces_itself() -> None:
    def register(factor: float) -> None:
        def scaled(x: Any, *, axis: int) -> Any:
            return ptir.exp(x) * factor

        scaled.__module__ = "__main__"  # a notebook's cell that runs again
        ptir.implementation("softmax", name="scaled")(scaled)

    function = softmax_function(overrides=None)
    register(1.0)
    with ptir.overrides({"softmax": "force=scaled"}):
        one = function(X).numpy()
        register(2.0)
        np.testing.assert_array_equal(function(X).numpy(), one * 2)
    assert "scaled (revision 1)" in function.retraces()[-1].reason


# Eager mode.


def test_eager_mode_runs_what_is_forced() -> None:
    seen: list[float] = []

    @ptir.implementation("sigmoid", name="watched")
    def _(x: Any) -> Any:
        seen.append(float(x.numpy()[0, 0]))  # values are real
        return ptir.tanh(x * 0.5) * 0.5 + 0.5

    @ptir.jit
    def f(x: Any) -> Any:
        return ptir.silu(x), ptir.softmax(x)

    with ptir.eager():
        plain = f(X)
        with ptir.overrides({"sigmoid": "force=watched", "softmax": "force=kernel"}):
            found = f(X)
    assert seen == [float(X[0, 0])]
    np.testing.assert_allclose(found[0].numpy(), plain[0].numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[1].numpy(), plain[1].numpy())


def test_eager_mode_checks_as_tracing_does() -> None:
    def is_matrix(x: ptir.Type) -> bool:
        return x.rank == 2

    @ptir.implementation("softmax", name="wide", when=is_matrix)
    def _(x: Any, *, axis: int) -> Any:
        return x.astype("f64")

    function = softmax_function()
    for eager in (True, False):
        with ptir.eager(eager), ptir.overrides({"softmax": "force=wide"}):
            with pytest.raises(VerifyError, match=r"'wide' of softmax gives f64\[6,300\]"):
                function(X)
            with pytest.raises(ArgumentError, match=r"'wide', which is not for x: f32\[300\]"):
                function(X[0])
            with pytest.raises(ShapeError, match="axis -1 is out of range"):  # of the definition
                function(np.float32(1))


# What is refused.

WRONG: list[tuple[Any, str]] = [
    ({"sofmax": "force=portable"}, "no composite 'sofmax'.*did you mean softmax.*use one of: att"),
    ({"exp": "force=portable"}, "no composite 'exp'"),
    (
        {"softmax": "force=two_pas"},
        "softmax has no implementation 'two_pas'.*did you mean two_pass",
    ),
    ({"softmax": "force=blocked"}, "use one of: kernel, online, portable, two_pass"),
    ({"softmax": "force="}, "softmax: found 'force=', expected 'force=<implementation>'"),
    ({"softmax": "two_pass"}, "found 'two_pass', expected"),
    ({"softmax": "benchmark(cache=0)"}, r"found 'benchmark\(cache=0\)', expected"),
    ({"softmax": "benchmark(size=3)"}, r"found 'benchmark\(size=3\)', expected"),
    ({"softmax": 1}, "'softmax': 1 is no pair of strings"),
    ([("softmax", "force=portable")], "expected policies by the name of a composite"),
]


@pytest.mark.parametrize(("policies", "message"), WRONG)
def test_what_is_refused(policies: Any, message: str, tmp_path: Path) -> None:
    def in_context() -> None:
        with ptir.overrides(policies):
            raise AssertionError

    def in_checkpoint() -> None:
        gptrs.load(tiny_gpt2(tmp_path, runtime={"functional_overrides": policies}))

    places: list[tuple[Callable[[], Any], type[PtirError], str]] = [
        (in_context, ArgumentError, "ptir.overrides: "),
        (lambda: ptir.jit(overrides=policies), ArgumentError, r"ptir.jit\(overrides=...\): "),
    ]
    if isinstance(policies, dict):  # JSON knows no tuples
        file = f"{tmp_path / 'config.json'}: runtime.functional_overrides: "
        places.append((in_checkpoint, LoadError, file))
    for call, kind, place in places:
        with pytest.raises(kind, match=f"(?s){place}.*{message}"):
            call()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("softmax", "'softmax' is no pair of composite and policy"),
        ("softmax: force=portable; softmax: benchmark", "'softmax' is named twice"),
        ("softmax=force: portable", "no composite 'softmax=force'"),
        ("softmax: force=other", "GPTRS_OVERRIDES: softmax has no implementation 'other'"),
        ("softmax: force=portable, gelu: benchmark", "found 'force=portable, gelu: benchmark'"),
    ],
)
def test_a_variable_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    function = softmax_function()
    function(X)
    monkeypatch.setenv(ENVIRONMENT, text)
    for eager in (False, True):
        with ptir.eager(eager), pytest.raises(SettingError, match=message):
            function(X)
    monkeypatch.setenv(ENVIRONMENT, " ; ")
    function(X)
    assert len(function.retraces()) == 1


def test_inside_of_a_traced_function_it_is_an_error() -> None:
    @ptir.jit
    def f(x: Any) -> Any:
        with ptir.overrides({"softmax": "force=portable"}):
            return ptir.softmax(x)

    with pytest.raises(TraceError, match="put it around the call"):
        f(X)


def register(function: Any, name: str = "other", when: Any = None) -> Any:
    return ptir.implementation("softmax", name=name, when=when)(function)


def test_what_cannot_be_registered() -> None:
    def good(x: Any, *, axis: int) -> Any:
        return x

    def without_axis(x: Any) -> Any:
        return x

    def with_another(x: Any, y: Any, axis: int) -> Any:
        return x + y

    def renamed(y: Any, axis: int) -> Any:
        return y

    def anything(*args: Any, **kwargs: Any) -> Any:
        return args[0]

    for call, message in (
        (lambda: ptir.implementation("softmix", name="a")(good), "no composite 'softmix'"),
        (lambda: register(good, "two_pass"), "softmax has an implementation 'two_pass' already"),
        (lambda: register(good, "portable"), "'portable' cannot name an implementation"),
        (lambda: register(good, "two words"), "'two words' cannot name an implementation"),
        (lambda: register(without_axis), "unexpected keyword argument 'axis'"),
        (lambda: register(with_another), "missing a required argument: 'y'"),
        (lambda: register(renamed), "y is in the place of x"),
        (lambda: register(good, when=renamed), "names 'y'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    assert register(good) is good
    register(anything, "any")
    assert isinstance(OPS["softmax"].implementations["any"], Implementation)


def test_what_is_no_tensor_is_an_error() -> None:
    def three(x: Any, axis: int) -> Any:
        return 3

    register(three)
    for eager in (False, True):
        with (
            ptir.eager(eager),
            ptir.overrides({"softmax": "force=other"}),
            pytest.raises(VerifyError, match="softmax returned 3, expected a Tensor"),
        ):
            softmax_function()(X)


def test_errors_in_an_implementation_name_it() -> None:
    def seven(x: Any, axis: int) -> Any:
        return x.reshape(7)

    register(seven)
    with (
        ptir.overrides({"softmax": "force=other"}),
        pytest.raises(ShapeError, match="in implementation 'other' of softmax"),
    ):
        softmax_function()(X)


# Checkpoints.


def test_a_checkpoint_has_its_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = gptrs.load(tiny_gpt2(tmp_path / "plain"))
    policies = {"attention": "force=portable"}
    model = gptrs.load(tiny_gpt2(tmp_path / "own", runtime={"functional_overrides": policies}))
    tokens = random_tokens(2, 9)
    function: Any = type(model.module).__call__

    def reasons() -> list[str]:
        return [r.reason for r in function.retraces()]

    expected = plain.forward(tokens).numpy()
    start = len(reasons())
    found = model.forward(tokens).numpy()
    assert "'attention: force=portable'" in reasons()[-1]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert plain.generate("on the", max_tokens=5) == model.generate("on the", max_tokens=5)
    count = len(reasons())
    assert count > start
    for piece in model.stream("on the", max_tokens=3):  # between steps nothing is left behind
        assert piece is not None
        plain.forward(tokens)
    assert len(reasons()) == count
    monkeypatch.setenv(ENVIRONMENT, "attention: force=kernel; softmax: force=two_pass")
    model.forward(tokens)  # the checkpoint counts for attention, the variable for softmax
    assert "'attention: force=portable; softmax: force=two_pass'" in reasons()[-1]
    with ptir.overrides({"attention": "force=kernel"}):
        model.forward(tokens)
    assert "'attention: force=kernel; softmax: force=two_pass'" in reasons()[-1]


@pytest.mark.parametrize(
    ("runtime", "message"),
    [
        (3, "runtime is 3, expected an object"),
        ({"functional_overrides": ["softmax"]}, "functional_overrides: found .*softmax"),
        ({"functional_overrides": {"softmax": "fast"}}, "found 'fast', expected"),
    ],
)
def test_a_checkpoint_with_wrong_overrides(tmp_path: Path, runtime: Any, message: str) -> None:
    directory = tiny_gpt2(tmp_path, runtime=runtime)
    with pytest.raises(LoadError, match=message) as raised:
        gptrs.load(directory)
    assert str(directory / "config.json") in str(raised.value)
    data = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**data, "runtime": {"threads": 2}}))
    assert gptrs.load(directory).forward([1, 2]).shape[0] == 2
