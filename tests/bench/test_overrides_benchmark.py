"""The policy ``benchmark``: candidates, the choice, and how long it is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import events, ptir
from gptrs.debug.benchmark import BenchmarkRan
from gptrs.ir.dispatch import OPS
from gptrs.ir.implementation import Implementation
from gptrs.jit import benchmark
from gptrs.kernels.driver.threads import limit_threads
from tests.support.models import random_tokens, tiny_gpt2

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((5, 200)).astype(np.float32)

Speeds = dict[str, float]


@pytest.fixture(autouse=True)
def speeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Speeds:
    """What candidates are said to take, by name (a second unless said); nothing is known yet."""
    given: Speeds = {}

    def seconds_of(name: str, run: Callable[[], object]) -> float:
        run()
        return given.get(name, 1.0)

    monkeypatch.setattr(benchmark, "seconds_of", seconds_of)
    monkeypatch.setattr(benchmark, "_winners", dict[str, Any]())
    monkeypatch.setenv("GPTRS_CACHE_DIR", str(tmp_path))
    softmax = OPS["softmax"]
    own = {n: i for n, i in softmax.implementations.items() if is_built_in(i)}
    monkeypatch.setattr(softmax, "implementations", own)
    return given


def is_built_in(implementation: Implementation) -> bool:
    """Other tests and the README register theirs."""
    return implementation.function.__module__.startswith("gptrs.")


@pytest.fixture
def ran() -> Iterator[list[BenchmarkRan]]:
    """The benchmarks that were run."""
    found: list[BenchmarkRan] = []
    with events.listen(lambda e: found.append(e) if isinstance(e, BenchmarkRan) else None):
        yield found


def plain_softmax(x: Any) -> Any:
    return ptir.softmax(x)


def plain_log_softmax(x: Any) -> Any:
    return ptir.log_softmax(x)


def timed(op: Any = ptir.softmax, keep: int = 64, **options: Any) -> Any:
    def f(*operands: Any) -> Any:
        return op(*operands)

    return ptir.jit(overrides={op.name: f"benchmark(cache={keep})"}, **options)(f)


def forget() -> None:
    benchmark._winners.clear()  # pyright: ignore[reportPrivateUsage]


def chosen(function: Any, *args: Any) -> tuple[str, ...]:
    return function.explain(*args).choices


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "names"),
    [
        ("faer", ["kernel", "portable", "online", "two_pass"]),
        ("reference", ["portable", "online", "two_pass"]),
    ],
)
def test_all_that_can_run_are_timed(
    backend: str, names: list[str], speeds: Speeds, ran: list[BenchmarkRan]
) -> None:
    speeds["two_pass"] = 0.5
    function = timed(backend=backend)
    plain = ptir.jit(backend=backend)(plain_softmax)
    np.testing.assert_allclose(function(X).numpy(), plain(X).numpy(), rtol=1e-5)
    (event,) = ran
    assert list(event.seconds) == names
    assert (event.composite, event.types, event.winner) == ("softmax", ("f32[5,200]",), "two_pass")
    assert chosen(function, X) == ("softmax: two_pass (benchmark)",)
    assert "log" in [i.op.name for i in function.lowered(X).body]
    assert "softmax(f32[5,200]): two_pass of " in str(event)


def test_those_whose_condition_fails_are_not(ran: list[BenchmarkRan]) -> None:
    timed()(X[:, :100])  # not long enough to be cut
    timed(dynamic={"operands": {1: "N"}})(X)  # nor when the program is for any extent
    assert ["online" in event.seconds for event in ran] == [False, False]


@pytest.mark.slow
def test_among_equals_the_usual_one_wins(speeds: Speeds) -> None:
    assert chosen(timed(backend="faer"), X) == ("softmax: kernel (benchmark)",)
    speeds["online"] = 0.1
    assert chosen(timed(backend="faer"), X) == ("softmax: kernel (benchmark)",)  # remembered


@pytest.mark.slow
def test_a_use_is_its_shape_at_the_sizes_of_the_call(
    speeds: Speeds, ran: list[BenchmarkRan]
) -> None:
    function = timed(dynamic={"operands": {0: "N"}})
    speeds["two_pass"] = 0.5
    function(X)
    function(X[:3])  # the same program
    assert [event.types for event in ran] == [("f32[5,200]",)]
    function.clear_cache()
    function(X[:3])  # another use
    function.clear_cache()
    function(X)
    assert [event.types for event in ran] == [("f32[5,200]",), ("f32[3,200]",)]
    with limit_threads(3):
        function.clear_cache()
        function(X)
    assert len(ran) == 3


def test_winners_are_kept_on_disk(speeds: Speeds, ran: list[BenchmarkRan], tmp_path: Path) -> None:
    speeds["two_pass"] = 0.5
    timed()(X)
    forget()  # as another process
    speeds["two_pass"] = 2.0
    assert chosen(timed(), X) == ("softmax: two_pass (benchmark)",)
    assert len(ran) == 1


def winner_files(folder: Path) -> list[Path]:
    found = (folder / "kernels").glob("*.kernel")
    return [file for file in found if file.read_bytes().endswith((b"two_pass", b"portable"))]


@pytest.mark.slow
def test_what_cannot_be_read_is_a_miss(
    speeds: Speeds, ran: list[BenchmarkRan], tmp_path: Path
) -> None:
    speeds["two_pass"] = 0.5
    timed()(X)
    (file,) = winner_files(tmp_path)
    whole = file.read_bytes()
    for wrong in (b"", whole[:-1], whole[:-1] + b"?", os.urandom(len(whole))):
        forget()
        file.write_bytes(wrong)
        assert chosen(timed(), X) == ("softmax: two_pass (benchmark)",)
        assert file.read_bytes() == whole
    assert len(ran) == 5
    for name in (b"\xff", b"gone"):  # well formed, and no candidate
        forget()
        store = benchmark.open_cache()  # pyright: ignore[reportPrivateLocalImportUsage]
        assert store is not None
        assert store.store(file.stem, name)
        assert chosen(timed(), X) == ("softmax: two_pass (benchmark)",)
    assert len(ran) == 7


def test_nothing_is_kept_on_disk_where_that_is_off(
    monkeypatch: pytest.MonkeyPatch, ran: list[BenchmarkRan], tmp_path: Path
) -> None:
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
    timed()(X)
    timed()(X)
    assert len(ran) == 1
    forget()
    timed()(X)
    assert len(ran) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_few_are_kept_in_memory(monkeypatch: pytest.MonkeyPatch, ran: list[BenchmarkRan]) -> None:
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
    for rows in (1, 2, 1, 3, 1, 2):  # 2 was used the longest ago when 3 came
        timed(keep=2)(X[:rows])
    assert [event.types[0] for event in ran] == [f"f32[{n},200]" for n in (1, 2, 3, 2)]


def test_an_implementation_that_changes_is_timed_again(ran: list[BenchmarkRan]) -> None:
    softmax = OPS["softmax"]

    def register(factor: float) -> None:
        @ptir.implementation("softmax", name="scaled")
        def _(x: Any, *, axis: int) -> Any:
            return ptir.softmax(x, axis=axis) * factor

    for factor in (1.0, 3.0, 2.0):
        register(factor)
        try:
            timed()(X)
            timed()(X)
        finally:
            del softmax.implementations["scaled"]
    assert len(ran) == 3


def test_two_threads_time_once(ran: list[BenchmarkRan], monkeypatch: pytest.MonkeyPatch) -> None:
    both = Barrier(2)
    slow: list[str] = []

    def seconds_of(name: str, run: Callable[[], object]) -> float:
        slow.append(name)
        return 1.0

    monkeypatch.setattr(benchmark, "seconds_of", seconds_of)

    def call(_: int) -> tuple[str, ...]:
        function = timed(backend="reference")
        both.wait()
        return chosen(function, X)

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(call, range(2))) == {("softmax: portable (benchmark)",)}
    assert len(slow) <= 25 * 3, "one benchmark has 25 rounds of three candidates"
    assert len(benchmark._winners[ptir.softmax]) == 1  # pyright: ignore[reportPrivateUsage]


def test_what_cannot_run_on_made_up_numbers_is_left_out(ran: list[BenchmarkRan]) -> None:
    softmax = OPS["softmax"]

    @ptir.implementation("softmax", name="picky")
    def _(x: Any, *, axis: int) -> Any:
        one = (x > 2.0).astype("si32")  # numbers are below 1 while timed: 0 // 0
        return ptir.softmax(x, axis=axis) * (one // one).astype("f32")

    try:
        timed(backend="reference")(X + 10)
    finally:
        del softmax.implementations["picky"]
    assert list(ran[0].seconds) == ["portable", "online", "two_pass"]


@pytest.mark.slow
def test_benchmarks_inside_of_candidates(speeds: Speeds, ran: list[BenchmarkRan]) -> None:
    @ptir.implementation("log_softmax", name="by_softmax")
    def _(x: Any, *, axis: int) -> Any:
        return ptir.log(ptir.softmax(x, axis=axis))

    speeds.update(by_softmax=0.5, two_pass=0.5)
    policies = {"log_softmax": "benchmark", "softmax": "benchmark"}
    function = ptir.jit(overrides=policies)(plain_log_softmax)
    try:
        found = chosen(function, X)
    finally:
        del OPS["log_softmax"].implementations["by_softmax"]
    assert found == ("log_softmax: by_softmax (benchmark)", "softmax: two_pass (benchmark)")


@pytest.mark.slow
def test_a_model_with_benchmarks(tmp_path: Path, ran: list[BenchmarkRan]) -> None:
    policies = dict.fromkeys(("attention", "layer_norm", "matmul", "linear"), "benchmark")
    runtime = {"functional_overrides": policies}
    plain = gptrs.load(tiny_gpt2(tmp_path / "plain"))
    model = gptrs.load(tiny_gpt2(tmp_path / "own", runtime=runtime))
    tokens = random_tokens(2, 9)
    expected, found = plain.forward(tokens).numpy(), model.forward(tokens).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert plain.generate("on", max_tokens=4) == model.generate("on", max_tokens=4)
    assert {"attention", "layer_norm"} <= {event.composite for event in ran}


@pytest.mark.slow
def test_lengths_are_full_while_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    arguments = benchmark._arguments  # pyright: ignore[reportPrivateUsage]

    def spy(*given: Any) -> Any:
        seen.extend(arguments(*given))
        return arguments(*given)

    monkeypatch.setattr(benchmark, "_arguments", spy)
    q = RANDOM.standard_normal((2, 2, 3, 8)).astype(np.float32)
    keys = RANDOM.standard_normal((2, 2, 40, 8)).astype(np.float32)
    start, end = np.array([1, 2], np.int32), np.array([30, 40], np.int32)
    timed(ptir.attention)(q, keys, keys, start, end)
    assert [array.tolist() for array in seen[-2:]] == [[0, 0], [40, 40]]
    assert all(np.isfinite(array).all() and (array > 0).all() for array in seen[:-2])


def test_real_timings_are_positive(
    monkeypatch: pytest.MonkeyPatch, ran: list[BenchmarkRan]
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
    forget()
    timed()(X)
    assert ran[0].seconds[ran[0].winner] == min(ran[0].seconds.values()) > 0


def test_eager_mode_times_nothing(ran: list[BenchmarkRan]) -> None:
    with ptir.eager():
        assert timed()(X).shape == X.shape
    assert ran == []
