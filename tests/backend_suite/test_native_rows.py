"""No op of the language runs in Python on the default backend: the steps of all rows' plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from gptrs.backends.discovery import get_backend
from gptrs.backends.faer.expansions import expanded
from gptrs.backends.faer.schedule import schedule_of
from gptrs.backends.faer.steps import ControlStep, PlanStep, ReferenceStep
from gptrs.ir.program import Program
from gptrs.kernels.compiler import isa
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.cases import CASES
from tests.cases.sample import inputs, is_symbolic
from tests.support.rows import trace


@dataclass(frozen=True)
class _Region:
    """The plan of a region, with nothing compiled."""

    program: Program
    steps: Sequence[PlanStep] = ()
    packed: dict[Any, Any] = field(default_factory=dict[Any, Any])


def _plan(program: Program) -> Any:
    program = expanded(program)
    return _Region(program, schedule_of(program, isa.current(), _plan))


def _references(steps: Sequence[PlanStep]) -> Iterator[str]:
    for step in steps:
        if isinstance(step, ReferenceStep):
            yield step.instruction.op.name
        elif isinstance(step, ControlStep):
            for plan in step.plans.values():
                yield from _references(getattr(plan, "steps", ()))


@pytest.mark.slow
@pytest.mark.skipif(not isa.current().half, reason="f16 and fp8 run in NumPy on this CPU")
def test_no_row_of_the_op_table_has_a_reference_step() -> None:
    backend = get_backend("faer")
    found: dict[str, set[tuple[str, str]]] = {}
    for case in CASES:
        for dtype in case.dtypes:
            for sample in case.samples:
                for symbolic in {False, is_symbolic(sample)}:
                    program = trace(case, inputs(sample, dtype, symbolic=symbolic))
                    steps = _plan(lower(program, Context(backend), check=False)).steps
                    for op in _references(steps):
                        found.setdefault(op, set()).add((case.op, dtype))
    assert not found, f"NumPy runs steps of these rows: {found}"
