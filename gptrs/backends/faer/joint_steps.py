"""Joint steps: consecutive products of the same few rows become one native step of a plan.

    q = x·Wq                    one step over the panels of all weights:
    k = x·Wk            ──▶     | Wq ........ | Wk ... | Wv ... |
    v = x·Wv

    u = x·Wu                    one step: panels of Wu, and then the same ones of Wg
    y = act(x·Wg) · u   ──▶     | Wu, Wg .................. |

Products of one token are short: in a step of its own, each wakes the threads, cuts few panels into
uneven chunks and ends with a barrier. Weights stay apart, packed under their own ids, and a product
has the bits that it has alone. A factor or residual that another part of the step computes has the
same columns, so that the chunk that reads a part of it has written that part before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, cast

from gptrs.backends.faer.buffer_assignment import Allocation, AssignedStep
from gptrs.backends.faer.calls.base import kernel
from gptrs.backends.faer.calls.forms import Panels
from gptrs.backends.faer.step_templates import StepTemplate, TemplateStep
from gptrs.backends.faer.steps import CallStep
from gptrs.ir.dims import DimLike, same
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.joint import HEAD, joint_kernel
from gptrs.lazy_dataclass import dataclass

if TYPE_CHECKING:  # they are there where a program has products
    from gptrs.backends.faer.calls.contraction import Contraction
    from gptrs.backends.faer.calls.product import MatrixProduct


@dataclass(frozen=True)
class Part:
    """A product of a joint step, and the first of its panels among those of the step."""

    step: CallStep
    call: MatrixProduct
    native: TemplateStep
    result: Allocation
    first: int

    @property
    def end(self) -> int:
        """The end of its panels."""
        return self.first + self.native.extent


@dataclass
class JointStep:
    """Products that become one native step, and the buffers of their argument blocks."""

    size: Callable[[DimLike], int]
    """Evaluates a dimension at the sizes of the call."""
    parts: list[Part] = field(default_factory=list[Part])
    slots: list[list[tuple[int, int]]] = field(default_factory=list[list[tuple[int, int]]])
    """By part: buffer and offset of each slot of its template."""
    freed: list[Allocation] = field(default_factory=list[Allocation])
    """What may be reused once the step has ended."""

    def joined(self, assigned: AssignedStep, template: StepTemplate | None) -> Part | None:
        """A step as the next part; None where it cannot be one."""
        step, native = assigned.step, _packed_product(template)
        if native is None or not isinstance(step, CallStep):
            return None
        if not step.call.joins or assigned.in_place:
            return None
        call = cast("MatrixProduct", step.call)
        made = assigned.allocations[-1]
        if not self.parts:
            return Part(step, call, native, made, 0)
        first = self._place(assigned, step, call, native)
        return None if first is None else Part(step, call, native, made, first)

    def _place(
        self, assigned: AssignedStep, step: CallStep, call: MatrixProduct, native: TemplateStep
    ) -> int | None:
        """Where the panels of a product begin in this step; None where they cannot be in it."""
        leader = self.parts[0]
        if len(native.argument_block) != len(leader.native.argument_block):
            return None
        if step.outer(call.core.a.value) is not leader.step.outer(leader.call.core.a.value):
            return None
        if not self._same_rows(call.core, leader.call.core):
            return None
        read = assigned.allocations[:-1]
        beside = {part.first for part in self.parts if part.result in read}
        if not beside:
            return max(part.end for part in self.parts)
        if len(beside) > 1 or not all(
            _reads_columns(assigned, step, call, native, part)
            for part in self.parts
            if part.result in read
        ):
            return None
        return beside.pop()

    def _same_rows(self, a: Contraction, b: Contraction) -> bool:
        """Whether two products of one array read the same rows of it, so that their panels take
        equally long. The last token's row is the only one of a decode step."""
        return all(
            self.size(mine) == self.size(theirs)
            for mine, theirs in zip(_row_words(a), _row_words(b), strict=True)
        )

    def words(self, isa: Isa) -> tuple[Kernel, list[int], Iterator[tuple[int, int, int]]]:
        """The kernel of several parts, its argument block, and the relocations of that: place,
        buffer, offset."""
        blocks, relocations = [len(self.parts)], list[tuple[int, int, int]]()
        for part, slots in zip(self.parts, self.slots, strict=True):
            native = part.native
            start = len(blocks) + HEAD
            blocks += [native.kernel.address, part.first, native.extent, *native.argument_block]
            for place, slot, displacement in native.relocations:
                buffer, offset = slots[slot]
                relocations.append((start + place, buffer, offset + displacement))
        words = len(self.parts[0].native.argument_block)
        return kernel(joint_kernel, isa, words), blocks, iter(relocations)


def _row_words(core: Contraction) -> tuple[DimLike, ...]:
    matrix = core.a.matrix
    return matrix.offset, matrix.rows, matrix.stride, core.rows, core.depth


def _packed_product(template: StepTemplate | None) -> TemplateStep | None:
    """The step of a product of few rows with a packed weight: its items are panels."""
    if template is None or template.steps is None or len(template.steps) != 1 or template.scratch:
        return None
    packed = any(isinstance(form, Panels) for _, form in template.forms)
    return template.steps[0] if packed else None


def _reads_columns(
    assigned: AssignedStep, step: CallStep, call: MatrixProduct, native: TemplateStep, part: Part
) -> bool:
    """Whether a product reads the result of ``part`` as its factor or residual alone, each panel
    the columns of the same one."""
    beside = [call.epilogue.factor, call.epilogue.residual]
    whole = [
        given is not None
        and assigned.allocations[step.operands.index(given[0])] is part.result
        and same(given[1].offset, 0)
        and same(given[1].stride, call.core.columns)
        for given in beside
    ]
    reads = sum(allocation is part.result for allocation in assigned.allocations[:-1])
    covers = native.extent == part.native.extent
    return covers and same(call.core.columns, part.call.core.columns) and sum(whole) == reads
