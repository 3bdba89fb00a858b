"""GPTRS_CHECK: every call of a compiled function against the reference backend.

The traced program runs again by NumPy's meaning, on the same arguments. Results that are equal up
to `UNITS` in the last place of their largest element agree. Others are investigated: each
instruction by its own bound (`gptrs.jit.numerics.rows`); if all are within it, the whole against
rounding as it is measured. So the same draws of random numbers, and the same choices between
numbers that are nearly equal, are no condition for results to agree.
"""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.backends.reference import ReferenceBackend
from gptrs.debug.numeric_diff.diff import Diff, Row
from gptrs.errors import ElementError, MismatchError
from gptrs.ir.effect_tape import Tape, replayed
from gptrs.ir.types import Array
from gptrs.jit.numerics.agreement import measured_bounds, plain_bounds
from gptrs.jit.numerics.compare import cause_of
from gptrs.jit.numerics.rows import instruction_rows, result_rows
from gptrs.jit.numerics.traced_call import TracedCall
from gptrs.jit.numerics.ways import Way, compiled_way, eager_way
from gptrs.passes.base import Context, run_passes
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.simplify import simplify


def check(call: TracedCall, results: Sequence[Array], tape: Tape) -> None:
    """Compare ``results`` of ``call``, as it was before it ran, with the reference backend's.
    Effects come from ``tape``. Raises `MismatchError`."""
    reference = eager_way()
    expected = _expected(call, reference, tape)
    rows = result_rows(results, expected, plain_bounds(expected))
    if all(row.agrees for row in rows):
        return
    way = compiled_way("jit", call.backend, call.options, call.overrides)
    instructions = tuple(instruction_rows(call, way, reference, tape))
    found = Diff(call.name, "jit", "eager", instructions, ())
    if found.agrees:
        rows = result_rows(results, expected, measured_bounds(call, expected, tape))
        if all(row.agrees for row in rows):
            return
        found = Diff(call.name, "jit", "eager", (), rows)
    raise _mismatch(call, found, next((row for row in rows if not row.agrees), rows[0]), tape)


def _expected(call: TracedCall, reference: Way, tape: Tape) -> tuple[Array, ...]:
    """The results by NumPy's meaning. An error there is none of the call if rules leave out what
    raises it, as they may what no result depends on."""
    live = call.live().program
    try:
        with replayed(tape):
            return reference.run(live, call.given, call.sizes)
    except ElementError as error:
        context = Context(ReferenceBackend(), precise=True)
        needed = run_passes(live, (simplify, eliminate_dead_code), context)
        try:
            with replayed(tape):
                return reference.run(needed, call.given, call.sizes)
        except ElementError:
            raise MismatchError(
                f"{call.name}: the reference backend raises an error and {call.backend.name} does"
                f" not: {error.problem}",
                fix="report it, or see which rewrite it is: gptrs bisect",
            ) from error


def _mismatch(call: TracedCall, found: Diff, result: Row, tape: Tape) -> MismatchError:
    """The error: the result that differs, and the first instruction that does."""
    cause, first = cause_of(call, found, tape), found.first
    assert first is not None
    backend = call.backend.name
    lines = [
        f"{call.name}: {_apart(result)} of {backend} differs from the reference backend's",
    ]
    if first.own is not None:
        inside = "".join(f"{each}, " for each in first.path)
        lines.append(f"  the first instruction that differs: {inside}{_apart(first)}")
        lines += [f"    {line}" for line in first.text.splitlines()]
    if cause is not None:
        lines += [f"  {line}" for line in cause.lines(backend)]
    error = MismatchError(
        "\n".join(lines),
        fix="ptir.compare(function, arguments) shows every instruction; GPTRS_CHECK=0 lets it be",
    )
    error.where = first.where if cause is None or first.where is not None else cause.where
    return error


def _apart(row: Row) -> str:
    errors = row.judged
    numbers = f"{errors.beyond} of {errors.size} elements, max abs {errors.max_abs:.3g}"
    return f"{row.op} ({row.type}; {numbers})"
