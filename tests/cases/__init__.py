"""The table of ops: at least one row per op. `tests.cases.sample` describes a row."""

from __future__ import annotations

import pytest

from tests.cases.composite import COMPOSITE
from tests.cases.control import CONTROL
from tests.cases.effects import EFFECTS
from tests.cases.elementary import ELEMENTARY
from tests.cases.elementwise import ELEMENTWISE
from tests.cases.fft import FFT
from tests.cases.language import LANGUAGE
from tests.cases.linalg import LINALG
from tests.cases.moving import MOVING
from tests.cases.quantizing import QUANTIZING
from tests.cases.random import RANDOM
from tests.cases.reducing import REDUCING
from tests.cases.sample import Case
from tests.cases.sorting import SORTING
from tests.cases.vision import VISION
from tests.cases.windows import WINDOWS
from tests.support.marks import slow_unless

CASES: tuple[Case, ...] = (
    *ELEMENTWISE,
    *ELEMENTARY,
    *MOVING,
    *REDUCING,
    *COMPOSITE,
    *WINDOWS,
    *VISION,
    *LANGUAGE,
    *LINALG,
    *FFT,
    *SORTING,
    *RANDOM,
    *QUANTIZING,
    *CONTROL,
    *EFFECTS,
)


_FIRST = {case.op: case for case in reversed(CASES)}


def is_first(case: Case) -> bool:
    """Whether it is the first row of its op."""
    return _FIRST[case.op] is case


each_case = pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.op, marks=slow_unless(is_first(case))) for case in CASES]
)
"""A test of every row: quick for the first row of each op."""

__all__ = ["CASES", "each_case", "is_first"]
