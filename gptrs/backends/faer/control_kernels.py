"""Branches and loops as one kernel each, where they are of that kind: `schedule` asks for it.

A program without any does not import what writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from gptrs.backends.faer.control_lines import UnwritableError
from gptrs.backends.faer.control_source import ControlSource
from gptrs.backends.faer.control_writer import ControlWriter
from gptrs.backends.faer.interchange import element_loop
from gptrs.backends.faer.interchange_writer import InterchangeWriter
from gptrs.ir.program import Instruction
from gptrs.kernels.compiler.isa import Isa


def kernel_of(
    instruction: Instruction, fusible: Callable[[Instruction], bool], isa: Isa, precise: bool
) -> ControlSource | None:
    """The kernel of a loop that goes element by element, or of a branch or loop whose regions
    compute few elements; None for others."""
    if (loop := element_loop(instruction, fusible)) is not None:
        return InterchangeWriter(loop, isa.vector_bits, precise=precise).write()
    with suppress(UnwritableError):
        return ControlWriter(fusible, isa.vector_bits, precise=precise).write(instruction)
    return None
