"""The benchmark of first calls: its choice of cases, a measured case, and its summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.functions import first_calls
from benchmarks.functions.first_calls import Line, chosen, first_call, summary
from benchmarks.functions.table import all_cases

CASES = all_cases()


def test_every_family_has_one_case_of_its_first_function() -> None:
    numbers = chosen(CASES, None)
    families = [CASES[number].family for number in numbers]
    assert families == list(dict.fromkeys(case.family for case in CASES))
    (softmax,) = chosen(CASES, ["softmax, norms"])
    assert str(CASES[softmax]) == "softmax of rows 1000×1000"
    with pytest.raises(SystemExit, match="no family none"):
        chosen(CASES, ["none"])


def test_a_first_call_takes_time() -> None:
    (number,) = chosen(CASES, ["call"])
    assert first_call("ours", CASES[number]) > 0


def test_the_summary_counts_slow_warm_calls() -> None:
    lines = [
        Line("a", "fast", 400.0, 40.0, 4000.0, 400.0),
        Line("a", "slow", 1000.0, 60.0, 2500.0, 700.0),
        Line("b", "without torch", 100.0, 80.0, None, None),
    ]
    text = summary(lines)
    assert "mean 0.20, at most 0.40" in text
    assert "median 60 ms, 2 of 3 above 50 ms" in text


@pytest.mark.slow
def test_cold_and_warm_calls_have_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "figures.json"
    monkeypatch.setattr("sys.argv", ["first_calls", "--family", "call", "--json", str(file)])
    monkeypatch.setattr(first_calls, "SIDES", ("ours",))
    first_calls.main()
    (line,) = json.loads(file.read_text())["lines"]
    assert line["cold"] > 0
    assert line["warm"] > 0
    assert line["torch_cold"] is None
