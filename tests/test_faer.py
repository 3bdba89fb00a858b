"""The native backend against the reference: every row of the op table, at every vector level."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import pytest

from gptrs.backends.base import Plan
from gptrs.backends.faer.backend import FaerBackend
from gptrs.backends.reference import ReferencePlan
from gptrs.errors import PtirError
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Program
from gptrs.ir.types import Array
from gptrs.kernels.isa import host_levels
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.cases import CASES
from tests.cases.sample import (
    SIZES,
    Case,
    Inputs,
    Sample,
    differences,
    inputs,
    is_symbolic,
    several,
)

LEVELS = [level.name for level in host_levels()]
# In a kernel a product and a sum may be rounded once, and sums run in another order.
LEAST_ULPS = {"dot_general": 4, "matmul": 4, "linear": 4}


@pytest.fixture(scope="module")
def backend() -> FaerBackend:
    return FaerBackend()


def trace(case: Case, made: Inputs) -> Program:
    recorder = Recorder(case.op)
    params = tuple(recorder.input(t, f"x{i}") for i, t in enumerate(made.types))
    with interpreter(recorder):
        result = OPS[case.op](*made.operands(params), **made.sample.attrs)
        return recorder.finish(several(result))


def check(
    case: Case,
    program: Program,
    backend: FaerBackend,
    runs: Sequence[tuple[Inputs, Mapping[str, int]]],
) -> None:
    lowered = lower(program, Context(backend))
    plan = backend.plan(lowered)
    for made, sizes in runs:
        expected = outcome(ReferencePlan(program), made.arrays, sizes)
        found = outcome(plan, made.arrays, sizes)
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected
            continue
        ulps = max(2 * case.ulps, LEAST_ULPS.get(case.op, 0))
        for result, exact in zip(found, expected, strict=True):
            wrong = differences(result, exact, ulps, case.magnitude)
            assert not wrong, (made.sample, sizes, wrong)


def outcome(
    plan: Plan, arrays: Sequence[Array], sizes: Mapping[str, int]
) -> tuple[Array, ...] | str:
    """The results, or the text of the error."""
    try:
        return plan.run(arrays, sizes)
    except PtirError as error:
        return str(error)


def rows() -> Iterator[object]:
    """The samples of each row: all of them in f32, of other dtypes and levels some are drawn, as
    each takes kernels of its own."""
    for (number, case), level in product(enumerate(CASES), LEVELS):
        for dtype in case.dtypes:
            seed = zlib.crc32(f"{number} {dtype} {level}".encode())
            best = level == LEVELS[0]
            if dtype not in ("f32", "si32", "i1") and (seed % 5 > 1 or not best):
                continue
            chosen = {seed // 7 % len(case.samples)}
            if dtype == "f32" and best:
                chosen = set(range(len(case.samples)))
            for index in sorted(chosen):
                name = f"{case.op}-{dtype}-{level}-{number}-{index}"
                yield pytest.param(case, case.samples[index], dtype, level, id=name)


@pytest.mark.parametrize(("case", "sample", "dtype", "level"), list(rows()))
def test_row(
    case: Case,
    sample: Sample,
    dtype: str,
    level: str,
    backend: FaerBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GPTRS_ISA", level)
    made = inputs(sample, dtype)
    check(case, trace(case, made), backend, [(made, {})])
    if is_symbolic(sample):
        made = inputs(sample, dtype, symbolic=True)
        sizes = ({"S": 1}, SIZES, {"S": 5})
        runs = [(inputs(sample, dtype, s), s) for s in sizes]
        check(case, trace(case, made), backend, runs)
