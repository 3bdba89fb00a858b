"""The schedule of a program: its steps in order, from fusion and from custom calls.

Steps keep the program's order of effects. A program with too many distinct kernels is fused again
with one op per region. The kinds of steps are in `gptrs.backends.faer.steps`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from gptrs.backends.faer import scalars
from gptrs.backends.faer.element_types import HALVES
from gptrs.backends.faer.joint_regions import MOST_RESULTS, join
from gptrs.backends.faer.matched_calls import CallMatcher
from gptrs.backends.faer.overwritten_operands import in_place
from gptrs.backends.faer.region_concats import BlockOfConcat, RestOfConcat, fold_concats
from gptrs.backends.faer.region_updates import RegionUpdate, fold_updates
from gptrs.backends.faer.steps import (
    CallStep,
    CheckStep,
    ControlStep,
    HostStep,
    KernelStep,
    LoopStep,
    PlanStep,
    ReferenceStep,
    RegionPlan,
    RegionStep,
    UpdateStep,
)
from gptrs.backends.fusible import DTYPES, can_fuse
from gptrs.backends.fusion import fuse
from gptrs.backends.partial_reductions import stages
from gptrs.backends.regions import Region
from gptrs.ir.implementation import Implementation
from gptrs.ir.implementations.kernels import kernel_for
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.custom import custom_call
from gptrs.ir.ops.effects import check
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Fails, Instruction, Program, Value
from gptrs.kernels.compiler.isa import Isa
from gptrs.locks import late_import

# A kernel takes some 50 ms to compile. Where a program would need more of them than this, its loops
# do one op each: such kernels are few, and the time to compile grows with instructions alone.
_FEW_KERNELS, _INSTRUCTIONS_A_KERNEL = 64, 16


def schedule_of(
    program: Program,
    isa: Isa,
    plan: Callable[[Program], RegionPlan],
    *,
    precise: bool = False,
) -> list[PlanStep]:
    """The steps of ``program``; ``plan`` makes the plans of branches and loops."""
    work: list[PlanStep] = []
    # A CPU that has no instructions for f16 would need a library that is not there.
    dtypes = DTYPES if isa.half else DTYPES - HALVES

    def own_kernel(instruction: Instruction) -> Implementation | None:
        return None if precise else kernel_for(instruction)

    def fusible(instruction: Instruction) -> bool:
        exact = not precise or not scalars.is_approximate(instruction)
        if not exact or own_kernel(instruction) is not None:
            return False
        known = instruction.fails is not Fails.AT_ELEMENTS or scalars.can_report(instruction.op)
        return known and scalars.has_form(instruction) and can_fuse(instruction, dtypes)

    fused = fuse(program, fusible)
    steps = {region: [RegionStep(s, precise) for s in stages(region)] for region in fused.regions}
    matcher = CallMatcher()
    folded = fold_concats(fused, fold_updates(fused, matcher), matcher)
    kernels = Counter(step.rendered.name for several in steps.values() for step in several)
    if len(kernels) > max(_FEW_KERNELS, len(program.body) // _INSTRUCTIONS_A_KERNEL):
        fused = fuse(program, fusible, alone=True)
        steps = {region: [RegionStep(region, precise, shared=True)] for region in fused.regions}
        folded = fused.steps
    for step in folded:
        if isinstance(step, RegionUpdate):
            work.append(UpdateStep(step.region, precise, base=step.base))
        elif isinstance(step, BlockOfConcat):
            work.append(UpdateStep(step.region, precise, base=step.base, made=step.made))
        elif isinstance(step, RestOfConcat):
            work.append(CallStep(step.instruction, step.matched))
        elif isinstance(step, Region):
            work += steps[step]
        elif (kernel := own_kernel(step)) is not None:
            work.append(KernelStep(step, kernel))
        elif step.op is custom_call:
            work.append(CallStep(step, matcher.of(step)))
        elif step.op.control:
            writer = late_import("gptrs.backends.faer.control_kernels")
            if (written := writer.kernel_of(step, fusible, isa, precise)) is not None:
                work.append(LoopStep(step, written))
                continue
            regions = {n: plan(a) for n, a in step.attrs.items() if isinstance(a, Program)}
            work.append(ControlStep(step, regions))
        elif step.op is check:
            work.append(CheckStep(step))
        elif step.op.kind is OpKind.EFFECT:
            work.append(HostStep(step))
        elif step.op is not constant:
            work.append(ReferenceStep(step))

    def joinable(step: PlanStep) -> Region | None:
        """The region of a step, unless its kernel serves more steps than could be joined."""
        if type(step) is not RegionStep or step.shared:
            return None
        return step.region if kernels[step.rendered.name] <= MOST_RESULTS else None

    work = join(work, program.results, joinable, partial(RegionStep, precise=precise))

    def overwriting(region: Region, operand: Value) -> RegionStep:
        return RegionStep(region, precise, overwritten=operand)

    return in_place(work, program.results, _alone, _owns_results, overwriting)


def _alone(step: PlanStep) -> Region | None:
    """The region of a step that computes a whole array by a kernel of its own."""
    return step.region if type(step) is RegionStep and not step.shared else None


def _owns_results(step: PlanStep) -> bool:
    """Whether results are in no memory of operands."""
    if isinstance(step, CallStep):
        return step.call.overwrites is None
    return type(step) is RegionStep and step.region.copies is None
