"""The faer backend against the reference: every row of the op table, at every vector level."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import product

import pytest

from gptrs.backends.faer.backend import FaerBackend
from gptrs.kernels.compiler.isa import host_levels
from tests.cases import CASES
from tests.cases.sample import Case
from tests.support.marks import slow_unless
from tests.support.rows import check_sample

LEVELS = [level.name for level in host_levels()]


@pytest.fixture(scope="module")
def backend() -> FaerBackend:
    return FaerBackend()


def rows() -> Iterator[object]:
    """The samples of each row: all of them in f32, of other dtypes and levels some are drawn, as
    each takes kernels of its own. Quick is one of each row at its first dtype."""
    for (number, case), level in product(enumerate(CASES), LEVELS):
        for dtype in case.dtypes:
            seed = zlib.crc32(f"{number} {dtype} {level}".encode())
            best = level == LEVELS[0]
            if dtype not in ("f32", "si32", "i1") and (seed % 5 > 1 or not best):
                continue
            drawn = seed // 7 % len(case.samples)
            chosen = {drawn}
            if dtype == "f32" and best:
                chosen = set(range(len(case.samples)))
            for index in sorted(chosen):
                name = f"{case.op}-{dtype}-{level}-{number}-{index}"
                marks = slow_unless(index == drawn and dtype == case.dtypes[0] and best)
                yield pytest.param(case, index, dtype, level, id=name, marks=marks)


@pytest.mark.parametrize(("case", "number", "dtype", "level"), list(rows()))
def test_row(
    case: Case,
    number: int,
    dtype: str,
    level: str,
    backend: FaerBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GPTRS_ISA", level)
    check_sample(case, number, dtype, backend)
