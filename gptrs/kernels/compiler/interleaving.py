"""Interleaving of loops that call inlined functions of numbers (loop metadata for LLVM).

exp, log and the like are chains of some twenty operations that wait for each other. A core runs
several elements at once, as many as fit its queue of instructions: two or three vectors. LLVM's
loop vectoriser interleaves short loops alone. Here innermost loops of one block that call functions
of `gptrs.kernels.scalar_functions.INLINED`, and none that branches, get the metadata that makes it
interleave four vectors. No bit changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gptrs.kernels.scalar_functions import INLINED

_COUNT = 4
"""Vectors at a time: what two units for multiply-adds of 4 cycles have in flight, half of it, and
what 16 registers hold."""
_LABEL = re.compile(r'("[^"]+"|[\w.$-]+):')
_CALL = re.compile(r'call [^@]*@"?scalar\.(\w+)"?\(')
_BRANCH = re.compile(r"\s+br i1 [^,]+, label %([^,]+), label %([^,\s]+)$")
_NUMBER = re.compile(r"^!(\d+) = ", re.MULTILINE)


def interleaved(text: str) -> str:
    """The LLVM IR with the metadata, before functions are inlined."""
    following = 1 + max((int(number) for number in _NUMBER.findall(text)), default=-1)
    nodes: list[str] = []
    lines = [*_lines(text.split("\n"), following, nodes)]
    if not nodes:
        return text
    count = f'!{following} = !{{!"llvm.loop.interleave.count", i32 {_COUNT}}}'
    return "\n".join([*lines, count, *nodes, ""])


def _lines(lines: list[str], count: int, nodes: list[str]) -> Iterator[str]:
    """The lines, with the metadata of loops, which is added to ``nodes``: distinct ones, that name
    themselves."""
    block = ""
    called: set[str] = set()
    for line in lines:
        if label := _LABEL.match(line):
            block = label[1]
            called.clear()
        called.update(_CALL.findall(line))
        branch = _BRANCH.match(line)
        if branch and block in branch.groups() and called and called <= INLINED:
            loop = count + 1 + len(nodes)
            nodes.append(f"!{loop} = distinct !{{!{loop}, !{count}}}")
            line = f"{line}, !llvm.loop !{loop}"
        yield line
