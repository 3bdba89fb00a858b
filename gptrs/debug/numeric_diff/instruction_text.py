"""The text of each instruction of a program, with its regions before it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gptrs.ir.program import Instruction, Program

_INSTRUCTION = re.compile(r"    \S.*? = ptir\.")  # not one of a region, which is indented further


def instruction_texts(program: Program) -> Iterator[str]:
    """The lines of each instruction, in order, as the program prints them."""
    part: list[str] = []
    text = str(program)
    for line in text[text.index("):\n") + 3 :].splitlines():
        part.append(line.removeprefix("    "))
        if _INSTRUCTION.match(line):
            yield "\n".join(filter(None, part))
            part.clear()


def op_name(instruction: Instruction) -> str:
    """The op, or the target of a `custom_call`."""
    return str(instruction.attrs.get("target", instruction.op.name))
