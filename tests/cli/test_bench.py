"""``gptrs bench`` in this process: its options, tables, JSON, CSV and files."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

import gptrs_bench
from gptrs_bench.peers import GPT2
from gptrs_bench.plan import Run
from gptrs_bench.results import Excluded, Result
from tests.support.cli import Cli, in_process
from tests.support.models import tiny_gpt2

FIGURES = {"ours": [2.0, 2.0, 4.0], "slow": [8.0, 6.0, 4.0], "fast": [1.0, 1.0, 1.0]}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys, "bench")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that are asked for, none of which is made; each gives the same."""
    asked: list[Run] = []

    def measure(run: Run) -> Generator[Result | Excluded]:
        asked.append(run)
        yield Excluded(run.label, "jax", "not installed: jax")
        yield Result(run.label, "prefill", 64, 2, "ms", FIGURES, {"slow": 1e-6})

    monkeypatch.setattr("gptrs_bench.measure.measure", measure)
    return asked


@pytest.mark.slow
def test_a_real_comparison(bench: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GPT2.required, "openvino", ("a_library",))
    directory, out = tiny_gpt2(tmp_path / "gpt2"), tmp_path / "found.csv"
    options = [
        "--threads",
        "1",
        "2",
        "--bench-tokens",
        "1",
        "4",
        "--modes",
        "decode",
        "--rounds",
        "1",
        "--json",
    ]
    done = bench(str(directory), *options, "--against", "openvino", "--out", str(out))
    assert (done.code, done.err) == (
        *(0, f"{directory}: openvino is left out: not installed: a_library\n"),
    )
    found = json.loads(done.out)
    assert found["cores"] >= 1
    assert found["versions"]["numpy"]
    assert [(r["mode"], r["count"], r["threads"], r["side"]) for r in found["results"]] == [
        *(("decode", 1, 1, "ours"), ("decode", 4, 1, "ours")),
        *(("decode", 1, 2, "ours"), ("decode", 4, 2, "ours")),
    ]
    assert all(r["figures"] == [r["median"]] and r["median"] > 0 for r in found["results"])
    assert found["left_out"][0]["side"] == "openvino"
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [float(row["median"]) for row in rows] == [r["median"] for r in found["results"]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--threads 1 2 --bench-tokens 1 64", {"threads": (1, 2), "bench_tokens": (1, 64)}),
        ("--threads 1,2 --batch 8", {"threads": (1, 2), "batch": (8,)}),
        ("--threads=1 2 --threads 4 --batch 1 8 16", {"threads": (1, 2, 4), "batch": (1, 8, 16)}),
        ("--against torch,jax --rounds 3", {"against": ("torch", "jax"), "rounds": 3}),
        ("--modes decode,start --backend x", {"modes": ("decode", "start"), "backend": "x"}),
    ],
)
def test_options(bench: Cli, runs: list[Run], options: str, expected: dict[str, object]) -> None:
    before, after = bench("model", *options.split()), bench(*options.split(), "model")
    assert (before.code, after.code) == (0, 0)
    assert runs[0] == runs[1]
    assert {name: getattr(runs[0], name) for name in expected} == expected


def test_tables(bench: Cli, runs: list[Run]) -> None:
    done = bench("model")
    assert (done.code, done.err) == (0, "model: jax is left out: not installed: jax\n")
    assert (runs[0].threads, runs[0].against, runs[0].rounds) == ((), ("torch",), 7)
    first, _, title, head, *rows = done.out.splitlines()
    assert "numpy" in first
    assert title == "model: prefill 64 tokens, 2 threads"
    assert "median, ms" in head
    assert [row.split() for row in rows] == [
        ["ours", "2", "2", "to", "3"],
        ["fast", "1", "1", "to", "1", "0.50"],
        ["slow", "6", "5", "to", "7", "3.00"],
    ]


def test_csv_and_files(bench: Cli, runs: list[Run], tmp_path: Path) -> None:
    done = bench("--random", "config.json", "--csv", "--out", str(tmp_path / "found.json"))
    assert runs == [Run(random=Path("config.json"))]
    rows = list(csv.DictReader(done.out.splitlines()))
    assert [(row["model"], row["side"], row["times_as_good"]) for row in rows] == [
        *(("config.json", "ours", "1.0"), ("config.json", "fast", "0.5")),
        ("config.json", "slow", "3.0"),
    ]
    written = json.loads((tmp_path / "found.json").read_text())
    assert [row["figures"] for row in written["results"]] == [
        FIGURES[name] for name in ("ours", "fast", "slow")
    ]


def test_suites(bench: Cli, runs: list[Run], tmp_path: Path) -> None:
    suite = tmp_path / "suite.json"
    suite.write_text(json.dumps([{"model": "a", "rounds": 2}, {"model": "b"}]))
    done = bench("--suite", str(suite), "--threads", "1", "2", "--rounds", "5")
    assert done.code == 0
    assert runs == [Run("a", threads=(1, 2), rounds=2), Run("b", threads=(1, 2), rounds=5)]
    suite.write_text("[{}]")
    done = bench("--suite", str(suite))
    assert (done.code, len(runs)) == (1, 2)
    assert "suite.json, entry 1: neither a model nor a random one" in done.err


def test_wrong_results_are_an_error(bench: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(run: Run) -> Generator[Result | Excluded]:
        yield Excluded(run.label, "torch", "its logits are 1 from ours", 2, is_wrong=True)

    monkeypatch.setattr("gptrs_bench.measure.measure", measure)
    done = bench("model")
    assert done.code == 1
    assert done.err == "model, 2 threads: torch is left out: its logits are 1 from ours\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "neither a model nor a random one"),
        ("model --random x.json", "both of them"),
        ("model --suite x.json", "give a model, --random or --suite"),
        ("model --threads two", "--threads has 'two', expected integers from 1 up"),
        ("model --bench-tokens 0", "bench_tokens has 0, expected integers from 1 up"),
        ("model --against tensorflow", "against has 'tensorflow', expected some of torch"),
        ("model --modes speed", "modes has 'speed', expected some of prefill"),
        ("model --json --csv", "give --json or --csv, not both"),
        ("model --out found.txt", "expected a .json or .csv file"),
        ("model --rounds 0", "--rounds"),
    ],
)
def test_wrong_usage(bench: Cli, runs: list[Run], arguments: str, said: str) -> None:
    done = bench(*arguments.split())
    assert (done.code, done.out, runs) == (2, "", [])
    assert said in done.err


def test_models_that_cannot_be_loaded(bench: Cli, tmp_path: Path) -> None:
    done = bench(str(tmp_path / "nothing"))
    assert done.code == 1
    assert "there is no model directory" in done.err


def test_the_checkout_comes_first(
    bench: Cli, runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that measure find `gptrs_bench` on the path of this one."""
    source = str(Path(str(gptrs_bench.__file__)).parents[1])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(p for p in sys.path if p != source)])
    assert bench("model").code == 0
    assert sys.path[:2] == [source, str(tmp_path)]
    assert bench("model").code == 0
    assert sys.path.count(source) == 1


def test_without_the_engine(bench: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gptrs.cli.bench._CHECKOUT", tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "gptrs_bench"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gptrs_bench", None)
    done = bench("model")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "error: gptrs bench needs gptrs_bench, which is not installed",
        "  fix: pip install 'gptrs[bench]'",
    ]
