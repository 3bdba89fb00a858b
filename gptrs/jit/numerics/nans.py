"""``ptir.debug_nans``: the instruction that made a NaN, named when it reaches a result.

After the run of a compiled call its results are looked at. Where one has NaN, the traced program
runs again by NumPy's meaning, on the same arguments, and the NaN is followed back to the
instruction that made it (`gptrs.debug.numeric_diff.nan_origin`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Token

from gptrs.debug.numeric_diff.nan_origin import Origin, evaluated, origin
from gptrs.errors import NanError
from gptrs.ir.effect_tape import Tape, replayed
from gptrs.ir.nan_watch import (
    Action,
    NanMode,
    mode_here,
    mode_of,
    nan_error,
    restore_everywhere,
    tell,
    watch_everywhere,
)
from gptrs.ir.program import Value
from gptrs.ir.types import Array
from gptrs.jit.numerics.traced_call import TracedCall, with_all_results
from gptrs.jit.numerics.ways import compiled_way


class debug_nans:  # noqa: N801 - used like a function
    """Find the instruction that makes a NaN, as soon as one is in a result and in no argument.

    ``ptir.debug_nans("raise")`` applies to the process from then on, as GPTRS_DEBUG_NANS does;
    ``with ptir.debug_nans("raise"):`` to the block, in this context. ``action`` is ``"raise"`` (a
    `NanError`), ``"log"`` (a `NanWarning`) or ``"off"``; with ``infinities`` infinite elements
    count as well. The error names the instruction, your line, and statistics of its operands;
    inside of loops the iteration.

    Compiled functions are looked at when they return: NaN that they mask is none. Donated
    arguments are copied before each call. In eager mode every op is looked at, and every function
    of ``ptir``. Raises `ArgumentError` for another action.
    """

    def __init__(self, action: Action, *, infinities: bool = False) -> None:
        self._mode = mode_of(action, infinities)
        self._before = watch_everywhere(self._mode)
        self._token: Token[NanMode | None] | None = None

    def __enter__(self) -> None:
        restore_everywhere(self._before)
        self._token = mode_here.set(self._mode)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            mode_here.reset(self._token)


def diagnose(call: TracedCall, results: Sequence[Array], mode: NanMode, tape: Tape) -> None:
    """Tell where the NaN among ``results`` come from, unless arguments have them. ``call`` is the
    call as it was before it ran; effects come from ``tape``."""
    if not any(map(mode.has_bad, results)):
        return
    concrete = call.live().concrete()
    with replayed(tape):
        values = evaluated(concrete.program, concrete.arrays())
    found = origin(concrete.program, values, mode.is_bad)
    reproduced = any(mode.has_bad(values[result]) for result in concrete.program.results)
    if found is None and not reproduced:
        found = _of_backend(concrete, mode, tape)
        if found is None:
            tell(_of_whole(call, results, mode), mode)
            return
    if found is not None:
        tell(_told(call, found, mode, reproduced=reproduced), mode)


def _of_backend(call: TracedCall, mode: NanMode, tape: Tape) -> Origin | None:
    """Where the backend makes NaN, and NumPy does not."""
    way = compiled_way("jit", call.backend, call.options, call.overrides)
    with replayed(tape):
        found = way.run(with_all_results(call.program), call.given)
    values: dict[Value, Array] = dict(zip(call.program.params, call.arrays(), strict=True))
    names = (result for instruction in call.program.body for result in instruction.results)
    values.update(zip(names, found, strict=True))
    return origin(call.program, values, mode.is_bad, inside=False)


def _told(call: TracedCall, found: Origin, mode: NanMode, *, reproduced: bool) -> NanError:
    head = f"{call.name}: " + "".join(f"{label}: " for label in found.path)
    error = nan_error(
        f"ptir.{found.instruction.op.name}", found.operands, found.results, mode, head
    )
    if not reproduced:
        error.problem += f"\n  by {call.backend.name} alone: NumPy's meaning of the op gives none"
    error.where = found.where
    return error


def _of_whole(call: TracedCall, results: Sequence[Array], mode: NanMode) -> NanError:
    number = next(n for n, array in enumerate(results) if mode.has_bad(array))
    return NanError(
        f"{call.name}: result {number} has {mode.word} by {call.backend.name} alone, and no"
        " instruction by itself has",
        fix="report it: ptir.compare shows which part of the program differs",
    )
