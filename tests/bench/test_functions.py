"""The cases of `benchmarks.functions`: ours mean what NumPy's do; which families there are."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.functions import measure, report, sides
from benchmarks.functions.case import Case
from benchmarks.functions.measure import Line
from benchmarks.functions.table import all_cases
from gptrs import ptir

LARGEST = 12  # extent of a shrunk case

CASES = all_cases()
SHRUNK = {f"{case.family}: {case.name}": case for case in CASES}


def shrunk(size: Any) -> Any:
    """The size with no extent above `LARGEST`: equal extents stay equal."""
    if not isinstance(size, tuple):
        return min(size, LARGEST)
    return tuple(map(shrunk, cast("tuple[Any, ...]", size)))


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in SHRUNK.items()])
def test_meanings_agree(case: Case) -> None:
    case = replace(case, size=shrunk(case.size))
    arguments = case.arguments()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = sides.as_arrays(case.xp(np, *arguments))
    with ptir.backend("reference"), np.errstate(all="ignore"):
        found = sides.as_arrays(sides.ours(case, arguments)())
    measure.compare(found, expected)


def test_every_family_has_cases() -> None:
    found = [case.family for case in CASES]
    assert len(CASES) >= 150
    assert all(found.count(family) >= 2 for family in set(found))
    assert len({(case.family, str(case)) for case in CASES}) == len(CASES)


def test_a_result_that_differs_is_no_result() -> None:
    measure.compare([np.array([1, 2], np.float32)], [np.array([1, 2.00001], np.float32)])
    with pytest.raises(AssertionError, match="differ"):
        measure.compare([np.array([1, 2], np.float32)], [np.array([1, 2.1], np.float32)])
    with pytest.raises(AssertionError, match="integers"):
        measure.compare([np.array([1, 2], np.int32)], [np.array([1, 3], np.int32)])
    with pytest.raises(AssertionError, match="shape"):
        measure.compare([np.array([1], np.float32)], [np.array([[1]], np.float32)])


def test_a_case_that_fails_is_listed() -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("no way")

    line = measure.measure(replace(CASES[0], ours=broken), ["numpy"], 1, 0, 0)
    assert "no way" in line.failed["ours"]
    assert set(line.times) == {"numpy"}
    assert line.ratio is None
    text = report.summary([line], 1)
    assert "failing: 1" in text
    assert "no way" in text


def test_the_summary_names_where_we_are_behind() -> None:
    lines = [
        Line("a", "fast", 1, {"ours": 10.0, "numpy": 40.0, "torch": 80.0}),
        Line("a", "slow", 1, {"ours": 40.0, "numpy": 10.0}),
        Line("b", "alone", 1, {"ours": 40.0}),
    ]
    text = report.summary(lines, 1)
    assert [line.ratio for line in lines] == [0.25, 4.0, None]
    assert "behind in 1 of 2" in text
    assert "a: slow  numpy" in text
    assert report.row(lines[0]).endswith("0.25  numpy")


def test_sides_take_turns_in_random_order() -> None:
    turns: list[str] = []

    def side(name: str) -> Any:
        return lambda: turns.append(name)

    calls = {name: side(name) for name in ("ours", "numpy", "torch")}
    found = measure.in_turn(calls, lambda: float(len(turns)), seconds=60.0, turn=0.0)
    rounds = [turns[k : k + 6 : 2] for k in range(6, len(turns), 6)]  # after two calls each
    assert len(rounds) == measure.MOST_ROUNDS
    assert all(sorted(order) == sorted(calls) for order in rounds)
    assert {order[0] for order in rounds} == set(calls)
    assert all(time > 0 for time in found.values())
