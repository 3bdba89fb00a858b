"""The kinds of steps of a plan: what each runs, its buffers, and how it binds its kernel.

A `PlanStep` is a fused region with a kernel of its own (`RegionStep`), a custom call (`CallStep`),
control flow as one kernel (`LoopStep`) or with a plan for each region (`ControlStep`), a check
(`CheckStep`), an effect in Python (`HostStep`), a kernel that a user registered (`KernelStep`), or
an instruction that only the NumPy reference runs (`ReferenceStep`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from gptrs.backends.base import PlanReport
from gptrs.backends.faer.calls.base import Binder, Call
from gptrs.backends.faer.calls.blocks import copy_whole
from gptrs.backends.faer.calls.forms import Form
from gptrs.backends.faer.control_source import ControlSource
from gptrs.backends.faer.matched_calls import MatchedCall
from gptrs.backends.faer.render import Rendered, as_word, render
from gptrs.backends.faer.strided_copy import copy_of
from gptrs.backends.operation_counts import operations
from gptrs.backends.region_time import RegionTime
from gptrs.backends.regions import Region
from gptrs.backends.views import Reduce
from gptrs.ir.implementation import Implementation
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Fails, Instruction, Program, Value, values_in
from gptrs.ir.types import Array
from gptrs.kernels.checks import check_kernel
from gptrs.kernels.compiler.compile import Kernel, compile_loop, compile_source
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property

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

    matched: MatchedCall

    @property
    def call(self) -> Call:
        return self.matched.call

    @property
    def operands(self) -> tuple[Value, ...]:
        """The buffers of the call, as values of its definition: parameters, then the results."""
        return self.matched.operands

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
        extent, block = b.size(rendered.extent), [*words, *sizes, *status]
        b.step(self.kernel, block, extent, self._time.at(b.size), rendered.grain)
        return True

    @cached_property
    def _time(self) -> RegionTime:
        return RegionTime(self.region, operations(self.region))


@dataclass(frozen=True, eq=False, kw_only=True)
class UpdateStep(RegionStep):
    """A fused region that writes a block of its result; the rest is what ``base`` has."""

    base: Value | None
    """None where later steps write the rest."""
    made: Value | None = None
    """What the block is, if no instruction makes the region's result."""

    @property
    def instruction(self) -> Instruction:
        if self.made is None:
            return super().instruction
        return next(i for i in self.region.members if self.made in i.results)

    @property
    def inputs(self) -> tuple[Value, ...]:
        return self._with_base(self.region.inputs)

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        return (*self._with_base(self.rendered.inputs), *self.rendered.results)

    def _with_base(self, inputs: Sequence[Value]) -> tuple[Value, ...]:
        base = () if self.base is None else (self.base,)
        return tuple(dict.fromkeys((*inputs, *base)))

    def bind(self, b: Binder) -> bool:
        """Give ``b`` a step that copies the array, unless it is overwritten, and the region's."""
        if self.base is not None and not b.in_place:
            copy_whole(b, self.base, self.region.result)
        return self._bind(b)


PlanStep = (
    RegionStep | CallStep | LoopStep | CheckStep | ControlStep | KernelStep | HostStep
) | ReferenceStep
