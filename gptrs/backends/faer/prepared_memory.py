"""Scratch memory of native steps: rows that several products pack are packed once.

    q = x·Wq        pack x, multiply
    k = x·Wk   ──▶          multiply        x packed is still there
    v = x·Wv                multiply

A step that only fills scratch memory, from operands (`Binder.step`, ``prepares``), is left out
where the call before has filled memory with the same. That memory is freed when a call follows that
does not want it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from gptrs.backends.faer.arena import OffsetAllocator
from gptrs.backends.faer.buffer_assignment import AssignedStep
from gptrs.backends.faer.step_templates import StepTemplate, TemplateStep
from gptrs.backends.faer.steps import CallStep

Contents = Mapping[int, Hashable]
"""By slot of scratch memory that a step prepares: what it holds, equal where it is the same."""


class PreparedMemory:
    """The scratch memory of one call after the other, in the arena of a plan."""

    def __init__(self, offsets: OffsetAllocator) -> None:
        self._offsets = offsets
        self._held: dict[Hashable, tuple[int, int]] = {}  # offset and size, by what it holds

    def keep(self, contents: Contents) -> None:
        """Free the memory of the calls before that does not hold one of these."""
        for content in self._held.keys() - set(contents.values()):
            self._offsets.free(*self._held.pop(content))

    def allocate(
        self, template: StepTemplate, contents: Contents
    ) -> tuple[list[int], list[TemplateStep]]:
        """The offsets of the scratch memory of a call, and the steps that it takes."""
        known = set(self._held)
        steps = [
            step
            for step in template.steps or ()
            if step.prepares is None or contents.get(step.prepares) not in known
        ]
        scratch: list[int] = []
        for number, size in enumerate(template.scratch, 1):
            content = contents.get(-number)
            if content in known:
                scratch.append(self._held[content][0])
                continue
            scratch.append(self._offsets.allocate(size))
            if content is not None:
                self._held[content] = scratch[-1], size
        return scratch, steps

    def free(self, template: StepTemplate, contents: Contents, scratch: list[int]) -> None:
        """Free what the next call cannot use."""
        for number, (offset, size) in enumerate(zip(scratch, template.scratch, strict=True), 1):
            if -number not in contents:
                self._offsets.free(offset, size)


def prepared_contents(template: StepTemplate | None, assigned: AssignedStep) -> Contents:
    """What the steps of a call prepare."""
    contents: dict[int, Hashable] = {}
    if template is None or not isinstance(assigned.step, CallStep):
        return contents
    arrays = assigned.step.arrays
    for step in template.steps or ():
        if step.prepares is None:
            continue
        read: list[Hashable] = []
        for place, slot, displacement in step.relocations:
            source: Hashable = None
            if slot >= 0:
                operand, form = template.forms[slot]
                source = arrays[operand], form
            elif slot != step.prepares:
                source = contents[slot]
            read.append((place, source, displacement))
        size = template.scratch[-1 - step.prepares]
        block = tuple(step.argument_block)
        contents[step.prepares] = step.kernel.address, block, tuple(read), size
    return contents
