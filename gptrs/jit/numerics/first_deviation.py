"""First deviation of a backend from the reference backend: the pass or the lowered instruction.

The programs after each pass run on the reference backend, then every
instruction of the final program runs on both backends, as the end of a program of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, cast

import ml_dtypes

from gptrs.backends.base import Backend
from gptrs.backends.reference import ReferenceBackend
from gptrs.debug.diff import changes
from gptrs.debug.numeric_diff.deviation import Deviation
from gptrs.debug.numeric_diff.difference import Difference, difference
from gptrs.debug.numeric_diff.instruction_text import instruction_texts, op_name
from gptrs.debug.passes import Passes
from gptrs.ir.effect_tape import Tape, replayed
from gptrs.ir.program import Program, Value
from gptrs.ir.types import Array, Type
from gptrs.jit.chooser import chooser
from gptrs.jit.derived import run_of
from gptrs.jit.lower import passes_over
from gptrs.jit.numerics.traced_call import TracedCall, with_all_results
from gptrs.passes.base import Context
from gptrs.passes.dce import eliminate_dead_code

_UNITS = 10.0  # the magnitude that tolerances refer to


def first_deviation(call: TracedCall, within: float, tape: Tape | None = None) -> Deviation | None:
    """The first deviation of the backend of ``call``, if any; f32 numbers of order 10 that differ
    by up to ``within`` count as equal.

    Each instruction runs as the end of a program of its own, with everything that it depends on, so
    that the backend compiles it as in the whole program. Effects come from ``tape``.
    """
    search = _Search(call, within, tape or Tape())
    return search.deviating_pass() or search.deviating_instruction()


def deviating_pass(call: TracedCall, within: float, tape: Tape | None = None) -> Deviation | None:
    """The first pass after which the reference backend gives other results."""
    return _Search(call, within, tape or Tape()).deviating_pass()


class _Search:
    def __init__(self, call: TracedCall, within: float, tape: Tape) -> None:
        self._call, self._within, self._tape = call, within, tape
        self._reference = ReferenceBackend()
        options = call.options
        choose = chooser(call.overrides, call.backend, call.sizes, options.is_precise)
        self._passes: Passes = passes_over(call.program, call.backend, options, choose)

    def deviating_pass(self) -> Deviation | None:
        programs = self._passes.programs
        expected = self._results(self._reference, programs[0])
        for ran, program in zip(self._passes.changed, programs[1:], strict=True):
            found = self._results(self._reference, program)
            if (apart := self._apart(program.results, found, expected)) is not None:
                (change,) = changes(ran.before, ran.after)
                return Deviation("pass", ran.name, str(change), change.where, apart)
        return None

    def deviating_instruction(self) -> Deviation | None:
        backend, program = self._call.backend, self._passes.programs[-1]
        every = self._results(self._reference, with_all_results(program))
        values = (result for instruction in program.body for result in instruction.results)
        expected = dict(zip(values, every, strict=True))
        for number, instruction in enumerate(program.body):
            part = program.with_body(program.body[: number + 1], instruction.results)
            found = self._results(backend, eliminate_dead_code(part, Context(backend)))
            means = [expected[result] for result in instruction.results]
            if (apart := self._apart(instruction.results, found, means)) is not None:
                text = next(islice(instruction_texts(program), number, None))
                where = instruction.where
                return Deviation("instruction", op_name(instruction), text, where, apart)
        return None

    def _results(self, backend: Backend, program: Program) -> tuple[Array, ...]:
        plan = backend.plan(program, precise=self._call.options.is_precise)
        with replayed(self._tape):
            return run_of(program, plan)(self._call.kept().given, self._call.sizes)

    def _apart(
        self, values: Sequence[Value], found: Sequence[Array], expected: Sequence[Array]
    ) -> Difference | None:
        """The difference of the first of ``values`` that disagrees; None if all agree."""
        for value, ours, theirs in zip(values, found, expected, strict=True):
            apart = difference(ours, theirs, _tolerance(value.type, self._within))
            if not apart.agrees:
                return apart
        return None


def _tolerance(type: Type, within: float) -> float:
    """The tolerance for elements of ``type``: at least one rounding of a narrow type."""
    if not type.dtype.is_float:
        return 0.0
    finfo = cast("Any", ml_dtypes.finfo)
    return max(within, _UNITS * float(finfo(type.dtype.numpy).eps))
