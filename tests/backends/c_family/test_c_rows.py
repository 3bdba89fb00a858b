"""Rows of the op table as C: compiled together, and compared with the reference."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gptrs.backends.c_family.c11 import CProgram
from gptrs.backends.c_family.c_target import CTarget, c_program
from gptrs.backends.reference import ReferencePlan
from gptrs.errors import ArgumentError
from gptrs.ir.program import Program
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.cases import CASES
from tests.cases.sample import SIZES, Case, Inputs, differences, inputs, is_symbolic
from tests.support.c_programs import compiled, needs_gcc, run
from tests.support.marks import slow_unless
from tests.support.rows import LEAST_ULPS, outcome, trace

PARTS = 8
EVERYTHING = "ALL_C_ROWS" in os.environ
"""All samples of each row, and not one that is drawn."""


class _Row(NamedTuple):
    case: Case
    program: Program
    made: CProgram
    runs: list[tuple[Inputs, Mapping[str, int]]]


def _rows(case: Case, dtype: str, name: str, declined: set[str]) -> Iterator[_Row]:
    seed = zlib.crc32(name.encode())
    for number, sample in enumerate(case.samples):
        if number != seed % len(case.samples) and not EVERYTHING:
            continue
        for symbolic in sorted({False, is_symbolic(sample)}):
            made = inputs(sample, dtype, symbolic=symbolic)
            sizes: list[Mapping[str, int]] = [{"S": 1}, SIZES, {"S": 5}] if symbolic else [{}]
            runs = [(inputs(sample, dtype, s) if symbolic else made, s) for s in sizes]
            program = trace(case, made)
            lowered = lower(program, Context(CTarget(), precise=True), check=False)
            try:
                written = c_program(f"{name}_{number}_{int(symbolic)}", lowered)
            except ArgumentError:
                declined.add(f"{case.op} of {dtype}")
                continue
            yield _Row(case, program, written, runs)


def _check(rows: list[_Row], directory: Path) -> None:
    library = compiled([row.made for row in rows], directory)
    wrong: list[Any] = []
    for row in rows:
        ulps = max(2 * row.case.ulps, LEAST_ULPS.get(row.case.op, 0))
        for made, sizes in row.runs:
            expected = outcome(ReferencePlan(row.program), made.arrays, sizes)
            found = run(library, row.made, made.arrays, sizes)
            where = row.case.op, row.made.name, made.types, dict(made.sample.attrs), sizes
            if isinstance(expected, str) or isinstance(found, str):
                if isinstance(expected, str) != isinstance(found, str):
                    wrong.append((*where, found, expected))
                continue
            for result, exact in zip(found, expected, strict=True):
                if text := differences(result, exact, ulps, row.case.magnitude):
                    wrong.append((*where, text))
    assert not wrong, "\n".join(map(str, wrong))


@needs_gcc
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=slow_unless(part == 0)) for part in range(PARTS)]
)
def test_rows(part: int, tmp_path: Path) -> None:
    rows: list[_Row] = []
    declined: set[str] = set()
    for number, case in enumerate(CASES):
        if number % PARTS == part:
            for dtype in case.dtypes:
                rows += _rows(case, dtype, f"p{number}_{dtype}", declined)
    _check(rows, tmp_path)
