"""``gptrs.profile``: every step that ran, with its time, line, layer, arithmetic and traffic."""

# Traced functions take any array: small functions and what they return are not typed.
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import gc
import json
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.debug import machine_limits
from gptrs.debug.machine_limits import Limits, keep_limits
from gptrs.debug.profile import roofline
from gptrs.debug.profile.profile import Profile
from gptrs.errors import ArgumentError, MissingPackageError
from gptrs.kernels.driver import live_tables, recording

Measured = Callable[..., None]
X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)
W = X.T.copy()


@ptir.jit
def model(x: Any, w: Any) -> Any:
    h = ptir.relu(x @ w)
    return ptir.softmax(h * 2) + 1


@pytest.fixture(autouse=True)
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """No limits of this machine, until this is called with threads, GFLOP/s and GB/s."""
    file = tmp_path / "limits.json"
    monkeypatch.setattr(machine_limits, "limits_file", lambda: file)

    def keep(threads: int, gflops: float, gbytes: float) -> None:
        keep_limits([Limits(threads, gflops, gbytes, "2026-01-31")])

    return keep


def checked(profile: Profile) -> Profile:
    """``profile``, whose spans and totals fit together."""
    assert profile.lost == 0
    totals: Counter[int] = Counter()
    for span in profile.spans:
        assert profile.start <= span.end + 2e4  # two clocks
        assert span.end <= profile.end + 2e4
        assert span.start <= span.end
        if span.kind == "step":
            assert span.step is not None
            totals[id(span.step)] += 1
    for step in profile.steps:
        assert step.calls >= 1
        assert step.ns >= 0
        if step.kind not in ("reference", "control", "host", "kernel"):
            assert totals[id(step)] == step.calls
    return profile


def test_steps_are_those_of_the_plan() -> None:
    explained = model.explain(X, W).report
    model(X, W)
    with gptrs.profile() as found:
        for _ in range(3):
            model(X, W)
    checked(found)
    assert [step.kernel for step in found.steps] == [step.name for step in explained.steps]
    assert {step.calls for step in found.steps} == {3}
    assert sum(span.kind == "run" for span in found.spans) == 3
    assert 0 < found.steps_ms < found.ms
    product = found.steps[0]
    assert (product.op, product.flops) == ("matmul", 2 * 4 * 6 * 4 + 4 * 4)
    assert product.bytes == 2 * X.nbytes + 64
    assert product.function == "model"
    assert product.line.startswith(__file__)


def test_a_token_reads_its_experts_alone() -> None:
    experts = gptrs.Parameter(np.ones((8, 3, 4), np.float16), "experts")

    @ptir.jit
    def mixed(x: Any, ids: Any) -> Any:
        return ptir.grouped_linear(x, ids, ptir.cast(experts, dtype=ptir.f32))

    for tokens, read in ((1, 2), (50, 8)):
        x, ids = np.ones((tokens, 4), np.float32), np.ones((tokens, 2), np.int64)
        (step,) = checked(mixed.profile(x, ids)).steps
        assert step.bytes == x.nbytes + ids.nbytes + read * 3 * 4 * 2 + tokens * 2 * 3 * 4


def test_one_call_with_its_lowering() -> None:
    @ptir.jit
    def fresh(x: Any) -> Any:
        return ptir.tanh(x) * 3.5

    found = checked(fresh.profile(X))
    np.testing.assert_allclose(found.result.numpy(), np.tanh(X) * 3.5, rtol=1e-6)
    assert {"trace", "pass", "plan"} <= set(found.once_ms())
    assert "trace" in str(found)
    assert not fresh.profile(X).once_ms().get("trace")


@pytest.mark.parametrize("driver", ["pool", "numba"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_drivers_and_threads(driver: str, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    monkeypatch.setenv("GPTRS_DRIVER", driver)
    made: Any = ptir.jit(lambda x: ptir.exp(x).sum(0))
    x = np.ones((700, 900), np.float32)
    made(x)
    with gptrs.profile() as found:
        made(x)
    checked(found)
    assert found.steps
    workers = {span.thread for span in found.spans if span.kind == "chunks"}
    assert len(workers) <= (threads == "2" and driver == "pool")


def test_calls_from_several_threads() -> None:
    model(X, W)
    with gptrs.profile() as found, ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: model(X, W), range(30)))
    checked(found)
    runs = [span for span in found.spans if span.kind == "run"]
    assert len(runs) == 30
    assert sum(step.calls for step in found.steps if step.op == "matmul") == 30


def test_iterations_of_loops_count() -> None:
    @ptir.jit
    def looping(x: Any) -> Any:
        def body(c: Any, row: Any) -> Any:
            return ptir.tanh(c @ x.T @ x) + row, row

        return ptir.scan(body, x[0], ptir.broadcast_to(x[1], shape=(50, 300)))[0]

    x = np.full((200, 300), 0.01, np.float32)
    looping(x)
    found = checked(looping.profile(x))
    products = [step for step in found.steps if step.op in ("matmul", "scan")]
    assert products
    assert max(step.calls for step in products) in (1, 50)
    assert sum(step.calls * step.flops for step in products) >= 50 * 2 * 2 * 200 * 300


def test_what_python_runs_is_told_without_what_it_calls() -> None:
    @ptir.jit
    def calling(x: Any) -> Any:
        def body(c: Any, row: Any) -> Any:
            ptir.print("{}", row[0])
            return c + ptir.exp(row), None

        total, _ = ptir.scan(body, x[0], x)
        return total

    calling(X)
    found = checked(calling.profile(X))
    python = [step for step in found.steps if step.kind in ("control", "host")]
    assert {step.kind for step in python} == {"control", "host"}
    spans = [span for span in found.spans if span.kind == "python"]
    control = next(span for span in spans if span.step and span.step.kind == "control")
    own = next(step for step in python if step.kind == "control").ns
    assert 0 < own < control.end - control.start
    assert found.steps_ms <= found.ms


def test_groups() -> None:
    gptrs.load("stories").forward([1, 2, 3])
    gc.collect()  # the model is gone when its program runs again
    handle = gptrs.load("stories")
    with gptrs.profile() as found:
        handle.forward([1, 2, 3])
    checked(found)
    modules = {row.name for row in found.rows("module")}
    assert {"lm_head", "h.0.mlp.c_fc", "h.0.attn.c_attn"} <= modules
    assert {"h.0", "h.1"} <= {row.name for row in found.rows("module", depth=2)}
    assert "Conv1D.__call__" in {row.name for row in found.rows("function")}
    assert {"matmul", "attention", "layer_norm"} <= {row.name for row in found.rows("op")}
    assert [row.name for row in found.rows("program")] == ["gpt2"]
    for group in ("kernel", "line", "step"):
        rows = found.rows(group)
        assert rows == sorted(rows, key=lambda row: -row.ms)
        assert sum(row.ms for row in rows) == pytest.approx(found.steps_ms)
        assert sum(row.share for row in rows) == pytest.approx(1)
    assert len(found.table("module", 3).splitlines()) == 5
    wrong: Any = "colour"
    with pytest.raises(ArgumentError, match="group is 'colour', expected one of kernel, op"):
        found.rows(wrong)


def test_names_outlive_the_model() -> None:
    handle = gptrs.load("stories")
    handle.forward([1, 2])
    with gptrs.profile() as found:
        handle.forward([1, 2])
        del handle
    assert checked(found).steps


def test_comparison() -> None:
    model(X, W)
    first, second = model.profile(X, W), model.profile(X, W)
    lines = first.compare(second).splitlines()
    assert len(lines) == 1 + len(first.rows()) + 1
    assert lines[-1].startswith("all steps")


def test_files(tmp_path: Path) -> None:
    model(X, W)
    found = model.profile(X, W)
    trace = json.loads(found.save(tmp_path / "trace.json").read_text())
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(complete) == len(found.spans)
    assert all(event["dur"] >= 0 for event in complete)
    named = {event["tid"] for event in trace["traceEvents"] if event["ph"] == "M"}
    assert named == {event["tid"] for event in complete}
    (run,) = (event for event in complete if event["cat"] == "run")
    for event in complete:
        if event["cat"] == "step":
            assert run["ts"] <= event["ts"] <= run["ts"] + run["dur"]
    flame = json.loads(found.save(tmp_path / "a.speedscope.json").read_text())
    (sampled,) = flame["profiles"]
    assert sampled["endValue"] == pytest.approx(sum(step.ns for step in found.steps), rel=1e-3)
    names = [frame["name"] for frame in flame["shared"]["frames"]]
    assert [names[sample[0]] for sample in sampled["samples"]] == ["model"] * len(found.steps)
    lines = found.save(tmp_path / "a.jsonl").read_text().splitlines()
    assert [json.loads(line)["kernel"] for line in lines] == [s.kernel for s in found.steps]
    with pytest.raises(ArgumentError, match=r"a\.txt has no ending"):
        found.save(tmp_path / "a.txt")


def test_one_at_a_time_and_nothing_afterwards() -> None:
    with gptrs.profile():
        with pytest.raises(ArgumentError, match="a profile is running already"):  # noqa: SIM117
            with gptrs.profile():
                pass
        assert live_tables.listeners
    assert not live_tables.listeners
    with gptrs.profile() as found:
        pass
    model(X, W)
    assert not found.steps


def test_an_error_ends_it() -> None:
    model(X, W)
    kept: list[Profile] = []

    def failing() -> None:
        with gptrs.profile() as found:
            kept.append(found)
            model(X, W)
            raise KeyError(found)

    with pytest.raises(KeyError):
        failing()
    assert kept[0].steps
    assert not live_tables.listeners


def test_a_full_buffer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_BYTES", 1 << 12)
    monkeypatch.setattr(recording, "_spare", [])
    model(X, W)
    with gptrs.profile() as found:
        for _ in range(200):
            model(X, W)
    assert found.lost > 100
    assert 0 < sum(span.kind == "run" for span in found.spans) < 100
    assert "runs are missing" in str(found)


def test_a_view_takes_its_times() -> None:
    model(X, W)
    found = model.view(X, W).with_times(model.profile(X, W))
    measured = found.document["measured"]
    assert measured["runs"] == 1
    assert [step["step"] for step in measured["steps"]] == list(range(4))
    assert all(step["ns"] > 0 for step in measured["steps"])


def test_html() -> None:
    model(X, W)
    page = model.profile(X, W)._repr_html_()  # pyright: ignore[reportPrivateUsage]
    kernels, *others = page.split("<table>")[1:]
    assert kernels.count("<tr>") == 1 + len(model.explain(X, W).report.steps)
    assert len(others) == 3


@pytest.mark.parametrize("threads", ["1", "2"])
def test_how_near_rows_come_to_the_limits(
    monkeypatch: pytest.MonkeyPatch, measured: Measured, threads: str
) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    model(X, W)
    found = model.profile(X, W)
    assert found.threads == int(threads)
    assert {row.limit for row in found.rows()} == {None}
    assert "% of limit" not in found.table()
    assert "% of limit" not in found._repr_html_()  # pyright: ignore[reportPrivateUsage]
    measured(3, 1.0, 1.0)
    assert "% of limit" not in found.table(), "on other threads"
    measured(int(threads), 8.0, 4.0)
    for row in found.rows("step"):
        assert row.limit == pytest.approx(max(row.gflops / 8, row.gbytes / 4))
    heads, *lines = found.table("step").splitlines()
    assert heads.endswith("GB/s  % of limit")
    first = found.rows("step")[0].limit
    assert first is not None
    assert lines[0].split()[-1] == f"{100 * first:.0f}"
    assert "% of limit" in str(found)
    assert "% of limit" in found._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "% of limit" not in Profile().table()


def test_a_flame_graph_by_its_short_name(tmp_path: Path) -> None:
    model(X, W)
    found = model.profile(X, W)
    for name in ("flame", "flame.json", "flame.speedscope.json"):
        path = found.flamegraph(tmp_path / name)
        assert path == tmp_path / "flame.speedscope.json"
        assert path.read_text() == found.save(tmp_path / "b.speedscope.json").read_text()
        path.unlink()


def test_a_roofline(measured: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(roofline, "_LABELLED", 2)
    model(X, W)
    found = model.profile(X, W)
    measured(found.threads, 200.0, 20.0)
    figure = found.roofline()
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    rows = [row for row in found.rows() if row.gflops]
    (dots,) = axes.collections
    np.testing.assert_allclose(
        dots.get_offsets(), [(row.gflops / row.gbytes, row.gflops) for row in rows]
    )
    sizes = dots.get_sizes()
    assert list(sizes) == sorted(sizes, reverse=True)
    assert [text.get_text().partition(",")[0] for text in axes.texts] == [
        row.name for row in rows[:2]
    ]
    roof = axes.lines[0]
    assert roof.get_xdata()[1] == pytest.approx(10.0)
    np.testing.assert_allclose(roof.get_ydata()[1:], 200.0)
    assert roof.get_ydata()[0] == pytest.approx(20.0 * roof.get_xdata()[0])
    assert figure._repr_png_().startswith(b"\x89PNG")
    pickle.loads(pickle.dumps(figure))


def test_a_roofline_that_cannot_be_drawn(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ArgumentError, match="no kernel of the profile does arithmetic"):
        Profile().roofline()
    monkeypatch.setenv("GPTRS_NUM_THREADS", "1")
    model(X, W)
    found = model.profile(X, W)
    with pytest.raises(ArgumentError, match="were not measured on 1 thread") as caught:
        found.roofline()
    assert caught.value.fix == "gptrs env --measure --threads 1"
    measured(1, 200.0, 20.0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    with pytest.raises(MissingPackageError, match="a roofline needs matplotlib") as missing:
        found.roofline()
    assert missing.value.fix == "pip install 'gptrs[plot]'"


def test_new_sizes_are_bound() -> None:
    @ptir.jit(dynamic={"x": {0: "N"}})
    def rows(x: Any) -> Any:
        return ptir.exp(x) - 1

    rows(X)
    assert "bind" not in rows.profile(X).once_ms()
    found = checked(rows.profile(X[:3]))
    (run,) = (span for span in found.spans if span.kind == "run")
    assert [span.name for span in found.spans if span.kind == "bind"] == [run.name]
    assert "bind" in str(found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_records_nothing() -> None:
    model(X, W)
    with gptrs.profile() as found:
        model(X, W)
        child = os.fork()
        model(X, W)
    runs = sum(span.kind == "run" for span in found.spans)
    if not child:
        with gptrs.profile() as own:
            model(X, W)
        os._exit(10 * runs + sum(span.kind == "run" for span in own.spans))
    assert runs == 2
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 11
