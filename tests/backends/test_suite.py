"""The shared backend suite fails for a backend that violates the protocol."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from gptrs.backends.base import DeviceInfo, PlanReport
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.errors import DTypeError
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.types import Array
from tests.backend_suite import test_backend_programs as programs
from tests.cases import CASES
from tests.support import ROOT
from tests.support.rows import check_sample, rows

Run = Callable[[ReferencePlan, Sequence[Any], Mapping[str, int]], tuple[Array, ...]]


def broken(run: Run | None = None, report: Callable[[PlanReport], PlanReport] | None = None) -> Any:
    """The reference with another way to run, or to report."""

    class BrokenPlan(ReferencePlan):
        def run(self, arguments: Sequence[Any], sizes: Mapping[str, int]) -> tuple[Array, ...]:
            return run(self, arguments, sizes) if run else super().run(arguments, sizes)

        def report(self, sizes: Mapping[str, int]) -> PlanReport:
            made = super().report(sizes)
            return report(made) if report else made

    class BrokenBackend(ReferenceBackend):
        def plan(self, program: Program, *, precise: bool = False) -> ReferencePlan:
            return BrokenPlan(program)

    return BrokenBackend()


def right(plan: ReferencePlan, arguments: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    return ReferencePlan(plan.program).run(arguments, sizes)


def returns_arguments(plan: ReferencePlan, arguments: Sequence[Any], sizes: Any) -> Any:
    given: dict[Value, Array] = dict(zip(plan.program.params, arguments, strict=True))
    found = right(plan, arguments, sizes)
    return tuple(given.get(r, a) for r, a in zip(plan.program.results, found, strict=True))


def returns_one_array_twice(plan: ReferencePlan, arguments: Sequence[Any], sizes: Any) -> Any:
    found = dict(zip(plan.program.results, right(plan, arguments, sizes), strict=True))
    return tuple(found[result] for result in plan.program.results)


def returns_its_constants(plan: ReferencePlan, arguments: Sequence[Any], sizes: Any) -> Any:
    constants = {i.result: i.attrs["value"] for i in plan.program.body if i.op.name == "constant"}
    found = right(plan, arguments, sizes)
    return tuple(constants.get(r, a) for r, a in zip(plan.program.results, found, strict=True))


def returns_its_buffers(plan: ReferencePlan, arguments: Sequence[Any], sizes: Any) -> Any:
    found = right(plan, arguments, sizes)
    kept: tuple[Array, ...] = vars(plan).setdefault("kept", found)
    for buffer, array in zip(kept, found, strict=True):
        buffer[...] = array
    return kept


def writes_into_arguments(plan: ReferencePlan, arguments: Sequence[Any], sizes: Any) -> Any:
    found = right(plan, arguments, sizes)
    for array in arguments:
        array *= 0
    return found


def keeps_the_first_sizes(plan: ReferencePlan, arguments: Sequence[Any], sizes: Any) -> Any:
    return right(plan, arguments, vars(plan).setdefault("sizes", sizes))


def shares_variables(plan: ReferencePlan, arguments: Sequence[Any], sizes: Any) -> Any:
    variables = vars(plan)
    variables["arguments"], variables["sizes"] = arguments, sizes
    time.sleep(0.001)  # another thread comes
    return right(plan, variables["arguments"], variables["sizes"])


def returns_views(plan: ReferencePlan, arguments: Sequence[Any], sizes: Any) -> Any:
    found = right(plan, arguments, sizes)
    return tuple(np.asfortranarray(array) for array in found)


def is_a_little_wrong(plan: ReferencePlan, arguments: Sequence[Any], sizes: Any) -> Any:
    found = right(plan, arguments, sizes)
    return tuple(a * a.dtype.type(1.0001) if a.dtype.kind == "f" else a for a in found)


Check = Callable[..., None]
memory: Check = programs.test_nobody_else_sees_the_memory_of_results
results: Check = programs.test_results_are_those_of_the_reference


@pytest.mark.parametrize(
    ("run", "check", "name"),
    [
        (returns_arguments, memory, "arguments"),
        (returns_one_array_twice, memory, "twice"),
        (returns_its_constants, memory, "constants"),
        (returns_its_buffers, memory, "several"),
        (writes_into_arguments, memory, "several"),
        (returns_views, memory, "views"),
        (is_a_little_wrong, results, "several"),
        (is_a_little_wrong, programs.test_a_composite_is_claimed_or_inlined, "composites"),
    ],
)
def test_a_broken_promise(run: Run, check: Check, name: str) -> None:
    check(*programs.PROGRAMS[name], ReferenceBackend())
    with pytest.raises(AssertionError):
        check(*programs.PROGRAMS[name], broken(run))


def test_sizes_of_the_first_call() -> None:
    with pytest.raises((AssertionError, ValueError)):
        programs.test_one_plan_serves_all_sizes(
            *programs.SYMBOLIC["sizes"], broken(keeps_the_first_sizes)
        )


def test_variables_of_several_threads() -> None:
    with pytest.raises(AssertionError):
        programs.test_threads_share_a_plan("several", broken(shares_variables))


def test_an_instruction_that_is_not_reported() -> None:
    def forget(made: PlanReport) -> PlanReport:
        return PlanReport(made.program, made.steps[1:])

    with pytest.raises(AssertionError):
        programs.test_the_report_has_every_instruction(
            *programs.PROGRAMS["several"], broken(report=forget)
        )


def test_a_machine_without_memory() -> None:
    made = broken()
    made.devices = lambda: (DeviceInfo(0, "cpu", 0),)
    with pytest.raises(AssertionError):
        programs.test_devices_are_there(made)


class Declining(ReferenceBackend):
    """Declines a dtype with this text, in which {op} is the op's name."""

    def __init__(self, dtype: str, text: str) -> None:
        self.dtype, self.text = dtype, text

    def plan(self, program: Program, *, precise: bool = False) -> ReferencePlan:
        def types(instruction: Instruction) -> set[str]:
            return {v.type.dtype.name for v in (*instruction.values(), *instruction.results)}

        for instruction in program.body:
            if self.dtype in types(instruction):
                raise DTypeError(self.text.format(op=instruction.op.name))
        return super().plan(program, precise=precise)


@pytest.mark.parametrize(
    ("dtype", "text", "allowed"),
    [
        ("f16", "{op} of f16 is not there", True),
        ("f16", "f16 is not there", False),
        ("f16", "{op} cannot be done", False),
        ("f16", "{op} of bf16 is not there", False),
        ("f32", "{op} of f32 is not there", False),
    ],
)
def test_declined(dtype: str, text: str, allowed: bool) -> None:
    case = next(case for case in CASES if case.op == "tanh")
    made = Declining(dtype, text)
    check_sample(case, 0, "f64", made)
    with pytest.raises(DTypeError if allowed else AssertionError):
        check_sample(case, 0, dtype, made)


def test_a_row_that_is_a_little_wrong() -> None:
    case = next(case for case in CASES if case.op == "tanh")
    check_sample(case, 0, "f32", ReferenceBackend())
    with pytest.raises(AssertionError):
        check_sample(case, 0, "f32", broken(is_a_little_wrong))


def test_rows_are_all_there_or_drawn() -> None:
    everything = {name for *_, name in rows("faer", everything=True)}
    assert len(everything) == sum(len(case.dtypes) for case in CASES)
    drawn = [name for *_, name in rows("faer", everything=False)]
    assert drawn == [name for *_, name in rows("faer", everything=False)]
    assert set(drawn) < everything
    assert len(everything) / 40 < len(drawn) < len(everything) / 10


@pytest.mark.slow
def test_with_a_backend_only_the_suite_runs() -> None:
    command = [sys.executable, "-m", "pytest", "--backend", "reference", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--collect-only"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert all(line.startswith("tests/backend_suite/") for line in found)
    assert len([line for line in found if "::test_row[" in line]) == len(
        list(rows("reference", everything=True))
    )


@pytest.mark.slow
@pytest.mark.parametrize("given", ["nobody", "no_such_module:Backend", "gptrs.ptir:Tensor"])
def test_a_backend_that_cannot_be_had(given: str) -> None:
    command = [sys.executable, "-m", "pytest", "--backend", given, "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --backend: " in done.stderr
