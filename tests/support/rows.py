"""Rows of the op table: run by a backend and compared with the reference."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence

from gptrs.backends.base import Backend, Plan
from gptrs.backends.reference import ReferencePlan
from gptrs.errors import DTypeError, PtirError
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Program
from gptrs.ir.types import Array
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.cases import CASES
from tests.cases.sample import SIZES, Case, Inputs, differences, inputs, is_symbolic, several
from tests.support.backends import is_declined

# In a kernel a product and a sum may be rounded once, and sums run in another order.
LEAST_ULPS = {"dot_general": 4, "matmul": 4, "linear": 4}

Runs = Sequence[tuple[Inputs, Mapping[str, int]]]
_SHARE = 20  # one row in so many is drawn


def rows(backend: str, *, everything: bool) -> Iterator[tuple[Case, str, tuple[int, ...], str]]:
    """Rows of the op table at a dtype, the numbers of their samples, and a name: all of them, or a
    few that are always the same."""
    for number, case in enumerate(CASES):
        for dtype in case.dtypes:
            samples = tuple(range(len(case.samples)))
            seed = zlib.crc32(f"{number} {dtype} {backend}".encode())
            if not everything:
                if seed % _SHARE:
                    continue
                samples = (seed // _SHARE % len(samples),)
            yield case, dtype, samples, f"{case.op}-{dtype}-{number}"


def trace(case: Case, made: Inputs) -> Program:
    """The program of one call of the op."""
    recorder = Recorder(case.op)
    params = tuple(recorder.input(t, f"x{i}") for i, t in enumerate(made.types))
    with interpreter(recorder):
        result = OPS[case.op](*made.operands(params), **made.sample.attrs)
        return recorder.finish(several(result))


def check_sample(case: Case, number: int, dtype: str, backend: Backend) -> None:
    """A sample of a row, at its own size and with symbolic ones. Raises `DTypeError` when the
    backend declines it."""
    sample = case.samples[number]
    made = inputs(sample, dtype)
    check(case, trace(case, made), backend, [(made, {})])
    if is_symbolic(sample):
        made = inputs(sample, dtype, symbolic=True)
        runs = [(inputs(sample, dtype, s), s) for s in ({"S": 1}, SIZES, {"S": 5})]
        check(case, trace(case, made), backend, runs)


def check(case: Case, program: Program, backend: Backend, runs: Runs) -> None:
    """One plan gives the results of the reference, or its errors, in all ``runs``."""
    lowered = lower(program, Context(backend, precise=True))
    try:
        plan = backend.plan(lowered)
    except DTypeError as error:
        if is_declined(error, lowered):
            raise
        raise AssertionError("a decline names an op and a dtype of the program") from error
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
