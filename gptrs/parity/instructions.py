"""First deviation of a backend from the reference backend: the instruction or the pass.

The programs after each pass run on the reference backend, then every
instruction of the final program runs on both backends, as the end of a program of its own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, cast

import ml_dtypes

from gptrs.backends.base import Backend
from gptrs.backends.discovery import get_backend
from gptrs.backends.reference import ReferenceBackend
from gptrs.debug.diff import changes
from gptrs.debug.passes import Passes
from gptrs.errors import Location
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array, Type
from gptrs.jit.arguments import Options, bind, collect
from gptrs.jit.captures import Captures
from gptrs.jit.chooser import chooser
from gptrs.jit.derived import run_of
from gptrs.jit.lower import passes_over
from gptrs.jit.modes import backend_name
from gptrs.jit.overrides import in_effect
from gptrs.jit.trace import trace
from gptrs.parity.difference import Difference, difference
from gptrs.passes.base import Context
from gptrs.passes.dce import eliminate_dead_code

_INSTRUCTION = re.compile(r"    \S.*? = ptir\.")  # not one of a region, which is indented further
_UNITS = 10.0  # the magnitude that tolerances refer to

_Given = Sequence[Array | Parameter]


@dataclass(frozen=True)
class Deviation:
    """The first instruction whose result on a backend is not that of the reference backend, or the
    first pass that changed what the program computes."""

    kind: Literal["instruction", "pass"]
    name: str
    """The op (the target of a `custom_call`), or the pass."""
    text: str
    """The printed instruction, or the diff of the pass."""
    where: Location | None
    """The user's line of the instruction."""
    difference: Difference


def first_deviation(
    function: Callable[..., Any], arguments: Sequence[Any], within: float
) -> Deviation | None:
    """The first deviation of ``function`` on the backend of this context, if any; f32 numbers of
    order 10 that differ by up to ``within`` count as equal.

    Each instruction runs as the end of a program of its own, with everything that it depends on, so
    that the backend compiles it as in the whole program.
    """
    backend, reference = get_backend(backend_name()), ReferenceBackend()
    passes, given = _prepared(function, arguments, backend)
    for ran, program in zip(passes.changed, passes.programs[1:], strict=True):
        expected = _results(reference, passes.program, given)
        apart = _apart(program.results, _results(reference, program, given), expected, within)
        if apart is not None:
            (change,) = changes(ran.before, ran.after)
            return Deviation("pass", ran.name, str(change), change.where, apart)
    program = passes.programs[-1]
    values = tuple(result for instruction in program.body for result in instruction.results)
    every = _results(reference, program.with_body(program.body, values), given)
    expected = dict(zip(values, every, strict=True))
    for number, instruction in enumerate(program.body):
        part = program.with_body(program.body[: number + 1], instruction.results)
        found = _results(backend, eliminate_dead_code(part, Context(backend)), given)
        means = [expected[result] for result in instruction.results]
        if (apart := _apart(instruction.results, found, means, within)) is not None:
            text = next(islice(_lines(program), number, None))
            return Deviation("instruction", _name(instruction), text, instruction.where, apart)
    return None


def _prepared(
    function: Callable[..., Any], arguments: Sequence[Any], backend: Backend
) -> tuple[Passes, _Given]:
    """The passes over the program of a call, and the arguments of that program."""
    options, name = Options(), "layer"
    bound = bind(inspect.signature(function), name, arguments, {})
    collected = collect(bound, options, Captures(function))
    traced = trace(function, collected, name)
    parameters = collected.captures.parameters
    choose = chooser(in_effect(), backend, collected.sizes, options.is_precise)
    inputs = [leaf.tensor.numpy() for leaf in collected.inputs]
    slots = [parameters[slot] if isinstance(slot, int) else slot for slot in traced.slots]
    return passes_over(traced.program, backend, options, choose), [*inputs, *slots]


def _results(backend: Backend, program: Program, given: _Given) -> tuple[Array, ...]:
    return run_of(program, backend.plan(program))(given, {})


def _apart(
    values: Sequence[Value], found: Sequence[Array], expected: Sequence[Array], within: float
) -> Difference | None:
    """The difference of the first of ``values`` that disagrees; None if all agree."""
    for value, ours, theirs in zip(values, found, expected, strict=True):
        apart = difference(ours, theirs, _within(value.type, within))
        if not apart.agrees:
            return apart
    return None


def _within(type: Type, within: float) -> float:
    """The tolerance for elements of ``type``: at least one rounding of a narrow type."""
    if not type.dtype.is_float:
        return 0.0
    finfo = cast("Any", ml_dtypes.finfo)
    return max(within, _UNITS * float(finfo(type.dtype.numpy).eps))


def _lines(program: Program) -> Iterator[str]:
    """The text of each instruction, with its regions before it."""
    part: list[str] = []
    text = str(program)
    for line in text[text.index("):\n") + 3 :].splitlines():
        part.append(line.removeprefix("    "))
        if _INSTRUCTION.match(line):
            yield "\n".join(filter(None, part))
            part.clear()


def _name(instruction: Instruction) -> str:
    return str(instruction.attrs.get("target", instruction.op.name))
