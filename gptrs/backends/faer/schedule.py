"""The schedule of a program: its steps in order, from fusion and from custom calls.

A `PlanStep` is a fused region with a kernel of its own (`RegionStep`), a custom call (`CallStep`),
control flow as one kernel (`LoopStep`) or with a plan for each region (`ControlStep`), a check
(`CheckStep`), an effect in Python (`HostStep`), or an instruction that only the NumPy reference
runs (`ReferenceStep`). Steps keep the program's order of effects. A program with too many distinct
kernels is fused again with one op per region.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from gptrs.backends.base import PlanReport
from gptrs.backends.faer import scalars
from gptrs.backends.faer.calls.base import Binder, Call, Form
from gptrs.backends.faer.calls.blocks import copy_whole
from gptrs.backends.faer.control_lines import UnwritableError
from gptrs.backends.faer.control_source import ControlSource
from gptrs.backends.faer.control_writer import ControlWriter
from gptrs.backends.faer.custom_calls import call_of
from gptrs.backends.faer.element_types import HALVES
from gptrs.backends.faer.interchange import element_loop
from gptrs.backends.faer.interchange_writer import InterchangeWriter
from gptrs.backends.faer.joint_regions import MOST_RESULTS, join
from gptrs.backends.faer.overwritten_operands import in_place
from gptrs.backends.faer.region_updates import RegionUpdate, fold_updates
from gptrs.backends.faer.render import Rendered, as_word, render
from gptrs.backends.faer.strided_copy import copy_of
from gptrs.backends.fusible import DTYPES, can_fuse
from gptrs.backends.fusion import fuse
from gptrs.backends.partial_reductions import stages
from gptrs.backends.regions import Region
from gptrs.backends.views import Reduce
from gptrs.ir.dims import product
from gptrs.ir.implementation import Implementation
from gptrs.ir.implementations.kernels import kernel_for
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.custom import custom_call
from gptrs.ir.ops.effects import check
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Fails, Instruction, Program, Value, values_in
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.kernels.checks import check_kernel
from gptrs.kernels.compiler.compile import Kernel, compile_loop, compile_source
from gptrs.kernels.compiler.isa import Isa
from gptrs.locks import cached_property

# A kernel takes some 50 ms to compile. Where a program would need more of them than this, its loops
# do one op each: such kernels are few, and the time to compile grows with instructions alone.
_FEW_KERNELS, _INSTRUCTIONS_A_KERNEL = 64, 16
_VECTOR_NS = 0.05  # an operation on an element in registers


@dataclass(frozen=True, eq=False)
class Single:
    """A step of one instruction."""

    instruction: Instruction

    @property
    def inputs(self) -> tuple[Value, ...]:
        return tuple(dict.fromkeys(self.instruction.values()))

    @property
    def results(self) -> tuple[Value, ...]:
        return self.instruction.results


class ReferenceStep(Single):
    """An instruction run by its NumPy meaning."""


class HostStep(Single):
    """An effect that Python has: it prints, or calls a function of the user."""


@dataclass(frozen=True, eq=False)
class CheckStep(Single):
    """A check, which a kernel tests. Its values are read where it fails."""

    @property
    def operands(self) -> tuple[Value, ...]:
        """The buffers of the kernel, and those that the message is made of."""
        return (*self.inputs, *self.results)

    @property
    def arrays(self) -> tuple[Value, ...]:
        """The program's values for `operands`."""
        return self.operands

    @cached_property
    def kernel(self) -> Kernel:
        """Its kernel, the same for all of them."""
        return check_kernel()

    def bind(self, b: Binder) -> bool:
        """Give ``b`` its step."""
        holds, token = self.instruction.operands[0], self.instruction.result
        assert isinstance(holds, Value)
        b.step(self.kernel, [b.address(holds), b.address(token), b.status], 1, 1.0)
        return True


@dataclass(frozen=True, eq=False)
class KernelStep(Single):
    """One instruction done by a kernel that a user registered."""

    kernel: Implementation


@dataclass(frozen=True)
class Iterations:
    """The iterations of a scan or while_loop: what its body is given, and where results go."""

    state: Sequence[Array]
    """Of the first iteration, which reads a copy."""
    xs: Sequence[Array]
    """Read one after the other along the first axis."""
    fixed: Sequence[Array | Parameter]
    ys: Sequence[Array]
    """Written along the first axis."""
    reverse: bool = False
    length: int | None = None
    """Of a scan."""
    condition: RegionPlan | None = None
    asked: Sequence[Array | Parameter] = ()
    """What the condition of a while_loop is given after the state."""


class RegionPlan(Protocol):
    """The plan of a branch, or of the condition or the body of a loop."""

    program: Program

    @property
    def packed(self) -> Mapping[Value, Set[Form]]:
        """The packed forms in which the plan reads parameters and constants."""
        ...

    def run(
        self, arguments: Sequence[Array | Parameter], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]: ...

    def repeat(self, iterations: Iterations, sizes: Mapping[str, int]) -> tuple[Array, ...] | None:
        """The last state of ``iterations``, which the driver runs; None where Python has a part in
        them."""
        ...

    def report(self, sizes: Mapping[str, int]) -> PlanReport: ...


@dataclass(frozen=True, eq=False)
class ControlStep(Single):
    """A branch or a loop, with the plans of its regions."""

    plans: Mapping[str, RegionPlan]
    """By attribute name."""

    @property
    def given(self) -> tuple[Value, ...]:
        """The values for the parameters of each region; for the sliced operands of a scan, the
        whole arrays."""
        grouped = [o for o in self.instruction.operands if isinstance(o, tuple)]
        return tuple([value for group in grouped for value in values_in(group)])

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        """The buffers of a native loop (`gptrs.backends.faer.native_loops`)."""
        return (*dict.fromkeys(self.given), *self.results)

    @property
    def arrays(self) -> tuple[Value, ...]:
        """The program's values for `operands`."""
        return self.operands


@dataclass(frozen=True, eq=False)
class LoopStep(Single):
    """A branch or a loop as one kernel, with its regions inlined."""

    written: ControlSource

    @property
    def operands(self) -> tuple[Value, ...]:
        """The buffers of the kernel: what it reads, then the results."""
        return (*self.written.inputs, *self.results)

    @property
    def arrays(self) -> tuple[Value, ...]:
        """The program's values for `operands`."""
        return self.operands

    @cached_property
    def kernel(self) -> Kernel:
        """Its kernel, compiled on the first access."""
        return compile_source(self.written.source, self.written.name)

    def bind(self, b: Binder) -> bool:
        """Give ``b`` its step."""
        addresses = [b.address(value) for value in self.operands]
        addresses += [b.scratch(size) for size in self.written.scratch]
        words = [b.size(as_word(word)) for word in self.written.words]
        time = _VECTOR_NS * b.size(self.written.operations)
        b.step(self.kernel, [*addresses, *words, b.status], b.size(self.written.extent), time)
        return True


@dataclass(frozen=True, eq=False)
class CallStep(Single):
    """A custom call, run by its kernels."""

    call: Call

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        """The buffers of the call, as values of its definition: parameters, then the results."""
        definition: Program = self.instruction.attrs["definition"]
        return (*definition.params, *self.call.results)

    @cached_property
    def arrays(self) -> tuple[Value, ...]:
        """The program's values for `operands`."""
        return (*self.instruction.values(), *self.instruction.results)

    def outer(self, value: Value) -> Value:
        """The program's value for a value of the definition."""
        return self.arrays[self.operands.index(value)]


@dataclass(frozen=True, eq=False)
class RegionStep:
    """A fused region, run by a kernel of its own."""

    region: Region
    precise: bool = False
    shared: bool = False
    """Whether its kernel is shared by all loops that differ in their numbers only."""
    overwritten: Value | None = None
    """The operand whose memory the result takes (`gptrs.backends.faer.overwritten_operands`)."""

    @property
    def instruction(self) -> Instruction:
        """The instruction that defines the result, or what it is a part of."""
        region = self.region
        value = region.expression.value if isinstance(region.expression, Reduce) else region.result
        return next(i for i in region.members if value in i.results)

    @cached_property
    def rendered(self) -> Rendered:
        """Its source."""
        return render(
            self.region,
            precise=self.precise,
            shared=self.shared,
            overwritten=self.overwritten,
        )

    @cached_property
    def kernel(self) -> Kernel:
        """Its kernel, compiled on the first access."""
        made = self.rendered
        return compile_loop(lambda: made.source, made.name, made.canonical)

    @property
    def fails(self) -> Fails:
        """When it fails."""
        return max(member.fails for member in self.region.members)

    @property
    def inputs(self) -> tuple[Value, ...]:
        return self.region.inputs

    @property
    def results(self) -> tuple[Value, ...]:
        return self.region.results

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        """The buffers of the loop: inputs, then the results."""
        return (*self.rendered.inputs, *self.rendered.results)

    @property
    def arrays(self) -> tuple[Value, ...]:
        """The program's values for `operands`."""
        return self.operands

    def bind(self, b: Binder) -> bool:
        """Give ``b`` its step."""
        copied = copy_of(self.region)
        if copied is not None and copied.bind(b):
            return True
        return self._bind(b)

    def _bind(self, b: Binder) -> bool:
        rendered = self.rendered
        words = [b.address(value) for value in (*rendered.inputs, *rendered.results)]
        sizes = [b.size(as_word(word)) for word in rendered.words]
        status = [b.status] if rendered.fails else []
        b.step(self.kernel, [*words, *sizes, *status], b.size(rendered.extent), self._time(b))
        return True

    def _time(self, b: Binder) -> float:
        reductions = [p for p in self.region.parts if isinstance(p, Reduce)]
        rows = b.size(product(self.region.rows))
        elements = b.size(product(self.region.inner))
        elements += sum(b.size(product(r.extents)) for r in reductions)
        return rows * elements * (0.5 + 0.2 * len(self.region.members))


@dataclass(frozen=True, eq=False, kw_only=True)
class UpdateStep(RegionStep):
    """A fused region that writes a block of its result; the rest is what ``base`` has."""

    base: Value

    @property
    def inputs(self) -> tuple[Value, ...]:
        return tuple(dict.fromkeys((*self.region.inputs, self.base)))

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        inputs = dict.fromkeys((*self.rendered.inputs, self.base))
        return (*inputs, *self.rendered.results)

    def bind(self, b: Binder) -> bool:
        """Give ``b`` a step that copies the array, unless it is overwritten, and the region's."""
        if not b.in_place:
            copy_whole(b, self.base, self.region.result)
        return self._bind(b)


PlanStep = (
    RegionStep | CallStep | LoopStep | CheckStep | ControlStep | KernelStep | HostStep
) | ReferenceStep


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
    folded = fold_updates(fused)
    kernels = Counter(step.rendered.name for several in steps.values() for step in several)
    if len(kernels) > max(_FEW_KERNELS, len(program.body) // _INSTRUCTIONS_A_KERNEL):
        fused = fuse(program, fusible, alone=True)
        steps = {region: [RegionStep(region, precise, shared=True)] for region in fused.regions}
        folded = fused.steps
    for step in folded:
        if isinstance(step, RegionUpdate):
            work.append(UpdateStep(step.region, precise, base=step.base))
        elif isinstance(step, Region):
            work += steps[step]
        elif (kernel := own_kernel(step)) is not None:
            work.append(KernelStep(step, kernel))
        elif step.op is custom_call:
            work.append(CallStep(step, call_of(step)))
        elif step.op.control and (written := _written(step, fusible, isa, precise)):
            work.append(LoopStep(step, written))
        elif step.op.control:
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


def _written(
    instruction: Instruction, fusible: Callable[[Instruction], bool], isa: Isa, precise: bool
) -> ControlSource | None:
    """The kernel of a loop that goes element by element, or of a branch or loop whose regions
    compute few elements; None for others."""
    if (loop := element_loop(instruction, fusible)) is not None:
        return InterchangeWriter(loop, isa.vector_bits, precise=precise).write()
    with suppress(UnwritableError):
        return ControlWriter(fusible, isa.vector_bits, precise=precise).write(instruction)
    return None
