"""The table: at least one row per op. `tests.cases.sample` says what a row is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cases.composite import COMPOSITE
from tests.cases.control import CONTROL
from tests.cases.elementwise import ELEMENTWISE
from tests.cases.language import LANGUAGE
from tests.cases.moving import MOVING
from tests.cases.quantizing import QUANTIZING
from tests.cases.random import RANDOM
from tests.cases.reducing import REDUCING
from tests.cases.sample import Case
from tests.cases.sorting import SORTING
from tests.cases.vision import VISION
from tests.cases.windows import WINDOWS
from tests.marks import slow_unless

CASES: tuple[Case, ...] = (
    *ELEMENTWISE,
    *MOVING,
    *REDUCING,
    *COMPOSITE,
    *WINDOWS,
    *VISION,
    *LANGUAGE,
    *SORTING,
    *RANDOM,
    *QUANTIZING,
    *CONTROL,
)


def _params() -> Iterator[object]:
    ops: set[str] = set()
    for case in CASES:
        yield pytest.param(case, id=case.op, marks=slow_unless(case.op not in ops))
        ops.add(case.op)


each_case = pytest.mark.parametrize("case", list(_params()))
"""A test of every row: quick for the first row of each op."""

__all__ = ["CASES", "each_case"]
