"""Expansion: instructions of a program replaced by ops that a backend has kernels for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.tensor import Tensor


class Expansion(NamedTuple):
    """The ops that an instruction becomes."""

    made: Callable[[Sequence[Tensor], Instruction], Tensor]
    of: Callable[[Instruction], bool] = lambda _: True
    """Whether an instruction is expanded."""


Expansions = Mapping[Any, Expansion]
"""By op."""


def expandable(program: Program, expansions: Expansions) -> set[Instruction]:
    """The instructions of ``program`` that have an expansion."""
    return {i for i in program.body if i.op in expansions and expansions[i.op].of(i)}


def with_expansions(
    program: Program, expansions: Expansions, found: Collection[Instruction]
) -> Program:
    """``program`` with the expansions of the instructions ``found``."""
    if not found:
        return program
    body: list[Instruction] = []
    renamed: dict[Value, Value] = {}
    for instruction in program.body:
        expands = instruction in found
        instruction = instruction.reading(renamed)
        if not expands:
            body.append(instruction)
            continue
        recorder = Recorder(instruction.op.name, where=instruction.where)
        operands = [Tensor.of_value(value, recorder) for value in instruction.values()]
        with interpreter(recorder):
            result = expansions[instruction.op].made(operands, instruction)
        body += recorder.body
        assert isinstance(result.value, Value)
        renamed[instruction.result] = result.value
    return program.with_body(body, [renamed.get(r, r) for r in program.results])
