"""Override policies: which implementation of a composite runs, and which policy wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.errors import ArgumentError, ShapeError, VerifyError
from tests.support.models import random_tokens, tiny_gpt2
from tests.support.overriding import ENVIRONMENT, X, chosen, softmax_function

pytestmark = pytest.mark.usefixtures("own_implementations")


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


@pytest.mark.slow
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
