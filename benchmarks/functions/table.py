"""All cases, family by family."""

from __future__ import annotations

from benchmarks.functions import (
    applications,
    contractions,
    elementwise,
    indexing,
    loops,
    movement,
    npbench,
    rearrangements,
    reductions,
)
from benchmarks.functions.case import Case


def all_cases() -> list[Case]:
    """In the order in which they are measured."""
    modules = (
        elementwise, reductions, movement, rearrangements, indexing, contractions, loops,
        applications, npbench,
    )  # fmt: skip
    return [case for module in modules for case in module.cases()]
