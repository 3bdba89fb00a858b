"""The steps of a program: kernel calls of fused regions and of other ops, and what has none.

Input: a program after all passes. Output: a `Schedule`. An operand that only moves elements of a
stored value is read through strides, so that nothing is stored for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from gptrs.backends.c_family import scalars
from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.backends.c_family.kernel import KernelCall
from gptrs.backends.c_family.kernels import IN_F64, KERNELS, Maker, kernel_calls
from gptrs.backends.c_family.kernels.attention import has_attention
from gptrs.backends.c_family.loops import region_kernels
from gptrs.backends.expansion import expandable, with_expansions
from gptrs.backends.fusible import can_fuse
from gptrs.backends.fusion import fuse
from gptrs.backends.index_expansions import NARROW_SUMS
from gptrs.backends.memory_operands import Graph
from gptrs.backends.regions import Region
from gptrs.ir.implementations.kernels import kernel_for
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.composite import attention
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Instruction, Operation, Program, Value
from gptrs.ir.types import f64
from gptrs.lazy_dataclass import dataclass

DTYPES = frozenset(IN_MEMORY)


@dataclass(frozen=True, eq=False)
class KernelStep:
    """Kernel calls, in order."""

    calls: tuple[KernelCall, ...]
    result: Value
    members: frozenset[Instruction]
    name: str
    """The op, or the words of a loop."""
    is_region: bool = False
    copied: Value | None = None
    """The operand that the first call copies to the result, which may take its memory instead."""
    others: tuple[Value, ...] = ()
    """The results after the first."""


@dataclass(frozen=True, eq=False)
class AliasStep:
    """A result that has the elements of ``source`` in the same order."""

    source: Value
    result: Value
    members: frozenset[Instruction]


@dataclass(frozen=True, eq=False)
class OtherStep:
    """An instruction that no kernel computes."""

    instruction: Instruction


Step: TypeAlias = KernelStep | AliasStep | OtherStep


@dataclass(frozen=True)
class Schedule:
    """The steps of a program in order."""

    program: Program
    steps: tuple[Step, ...]

    @property
    def others(self) -> tuple[Instruction, ...]:
        """The instructions that no kernel computes."""
        return tuple(s.instruction for s in self.steps if isinstance(s, OtherStep))

    @property
    def read_in_place(self) -> tuple[Instruction, ...]:
        """The instructions that no step has: kernels read their results where the elements are."""
        done = {i for s in self.steps if not isinstance(s, OtherStep) for i in s.members}
        done.update(self.others)
        views = (i for i in self.program.body if i.op.kind is OpKind.VIEW)
        return tuple(i for i in views if i not in done)


def claims(instruction: Instruction) -> bool:
    """Whether a composite stays whole for a kernel."""
    if instruction.op is not attention or kernel_for(instruction) is not None:
        return False
    values = (*instruction.values(), *instruction.results)
    return all(v.type.dtype.name in DTYPES for v in values) and has_attention(instruction)


def has_loop(instruction: Instruction, dtypes: frozenset[str] = DTYPES) -> bool:
    """Whether a fused loop can compute an instruction."""
    if kernel_for(instruction) is not None or not can_fuse(instruction, dtypes):
        return False
    if instruction.op.kind is OpKind.REDUCTION:
        return instruction.op in scalars.REDUCTIONS
    return scalars.has_rule(instruction)


def schedule_of(
    program: Program,
    dtypes: frozenset[str] = DTYPES,
    makers: Mapping[Operation, Maker] = KERNELS,
    most_arrays: int | None = None,
    *,
    grouped: bool = False,
) -> Schedule:
    """The steps of ``program``, in which kernels have these dtypes.

    The program of the schedule has sums at indices of narrow floats as those of f32, rounded.
    ``makers`` has the kernels of ops that no loop computes. Where a fused loop would have more than
    ``most_arrays``, nothing is fused. On a ``grouped`` device work items share memory.
    """
    program = with_expansions(program, NARROW_SUMS, expandable(program, NARROW_SUMS))
    made = _schedule(program, dtypes, makers, alone=False, grouped=grouped)
    if most_arrays is not None and any(
        len(call.values) > most_arrays
        for step in made.steps
        if isinstance(step, KernelStep)
        for call in step.calls
    ):
        made = _schedule(program, dtypes, makers, alone=True, grouped=grouped)
    return made


def _schedule(
    program: Program,
    dtypes: frozenset[str],
    makers: Mapping[Operation, Maker],
    *,
    alone: bool,
    grouped: bool,
) -> Schedule:
    graph = Graph(program)
    calls: dict[Instruction, Sequence[KernelCall]] = {}
    original: dict[Instruction, Instruction] = {}
    loops: set[Instruction] = set()
    body: list[Instruction] = []
    for instruction in program.body:
        if has_loop(instruction, dtypes):
            loops.add(instruction)
        elif (found := _calls(instruction, graph, dtypes, makers)) is not None:
            read = dict.fromkeys(v for c in found for v in c.read if v not in instruction.results)
            stub = replace(instruction, operands=tuple(read))
            calls[stub], original[stub] = found, instruction
            instruction = stub
        body.append(instruction)
    fused = fuse(replace(program, body=tuple(body), _text=[]), loops.__contains__, alone=alone)
    make = partial(_step, calls=calls, original=original, grouped=grouped)
    steps = [make(step) for step in fused.steps]
    return Schedule(program, tuple(step for step in steps if step is not None))


def _calls(
    instruction: Instruction,
    graph: Graph,
    dtypes: frozenset[str],
    makers: Mapping[Operation, Maker],
) -> list[KernelCall] | None:
    values = (*instruction.values(), *instruction.results)
    if kernel_for(instruction) is not None or any(v.type.dtype.name not in dtypes for v in values):
        return None
    if instruction.op in IN_F64 and f64.name not in dtypes:
        return None
    return kernel_calls(instruction, graph, makers)


def _step(
    step: Region | Instruction,
    calls: dict[Instruction, Sequence[KernelCall]],
    original: dict[Instruction, Instruction],
    *,
    grouped: bool,
) -> Step | None:
    if isinstance(step, Region):
        if step.copies is not None:
            return AliasStep(step.copies, step.result, step.members)
        found = region_kernels(step, grouped=grouped)
        title = found[0].kernel.title
        return KernelStep(found, step.result, step.members, title, is_region=True)
    if step.op is constant:
        return None
    if (made := calls.get(step)) is None:
        return OtherStep(step)
    instruction = original[step]
    first = instruction.operands[0]
    copies = made[0].kernel.title == "copy" and len(made) > 1 and isinstance(first, Value)
    return KernelStep(
        tuple(made),
        instruction.results[0],
        frozenset([instruction]),
        instruction.op.name,
        copied=first if copies and isinstance(first, Value) else None,
        others=instruction.results[1:],
    )
