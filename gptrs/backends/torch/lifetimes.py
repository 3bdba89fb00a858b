"""Lifetimes of values, and which share memory: what is freed where, and what may be overwritten.

torch's views and some of its functions return the memory of an operand. Values that may share
memory have one `_Memory`; only memory that a function of torch has made, or that was donated, is
written in place, and only when nobody reads another value in it afterwards.
"""

from __future__ import annotations

from dataclasses import field

from gptrs.backends.torch.op_table import row_of
from gptrs.ir.ops.dynamic import dynamic_update_slice
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Fails, Instruction, Program, Value
from gptrs.lazy_dataclass import dataclass


@dataclass(eq=False)
class _Memory:
    """Memory that some values may share."""

    is_writable: bool
    is_donated: bool = False
    values: list[Value] = field(default_factory=list[Value])


class Lifetimes:
    """Of the values of one program, or of one region."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._last: dict[Value, int] = dict.fromkeys(program.params, -1)
        for number, instruction in enumerate(program.body):
            for value in (*instruction.results, *instruction.values()):
                self._last[value] = number
        self._kept = frozenset(program.results)
        self._memory: dict[Value, _Memory] = {}
        self._whole: set[Value] = set()
        """Values whose elements are the memory, in row-major order."""
        self.in_place: set[Instruction] = set()
        """Updates that write into the memory of their first operand."""
        self.settles: set[Instruction] = set()
        """Those of them before which checks are read, as they overwrite an argument."""
        for param in program.params:
            self._add(param, _Memory(param.donated, param.donated))
            if param.donated:
                self._whole.add(param)
        self._follow()

    def dying(self, number: int) -> list[Value]:
        """The values that nobody reads after the instruction of this number."""
        instruction = self._program.body[number]
        values = dict.fromkeys((*instruction.values(), *instruction.results))
        return [v for v in values if self._last[v] == number and v not in self._kept]

    def unread(self) -> frozenset[Value]:
        """Parameters that nobody reads."""
        return frozenset(
            p for p in self._program.params if self._last[p] < 0 and p not in self._kept
        )

    def is_own(self, result: Value) -> bool:
        """Whether a result of the program has memory that no other result, no argument and no
        constant has."""
        memory = self._memory[result]
        others = sum(value in memory.values for value in self._program.results)
        return memory.is_writable and others == 1

    def _follow(self) -> None:
        fallible = [i.fails is Fails.AT_ELEMENTS for i in self._program.body]
        for number, instruction in enumerate(self._program.body):
            if self._overwrites(number, instruction, any(fallible[number + 1 :])):
                target = next(instruction.values())
                self.in_place.add(instruction)
                if self._memory[target].is_donated and any(fallible[:number]):
                    self.settles.add(instruction)
                self._add(instruction.result, self._memory[target])
                self._whole.add(instruction.result)
            else:
                self._follow_one(instruction)

    def _follow_one(self, instruction: Instruction) -> None:
        row = row_of(instruction)
        if instruction.op is constant:
            self._add(instruction.result, _Memory(is_writable=False))
        elif instruction.op.control or (row is not None and row.shares):
            self._join(instruction, returned=instruction.op.control)
        else:  # a function of torch, or the host, has made it
            for result in instruction.results:
                self._add(result, _Memory(is_writable=True))
                self._whole.add(result)

    def _join(self, instruction: Instruction, *, returned: bool) -> None:
        """Results in the memory of any operand; a region may return constants too."""
        joined = _Memory(is_writable=not returned)
        for memory in dict.fromkeys(self._memory[value] for value in instruction.values()):
            joined.is_writable &= memory.is_writable
            joined.is_donated |= memory.is_donated
            for value in memory.values:
                self._add(value, joined)
        for result in instruction.results:
            self._add(result, joined)

    def _overwrites(self, number: int, instruction: Instruction, may_fail: bool) -> bool:
        """Whether an update needs no copy of what it updates."""
        if instruction.op is not dynamic_update_slice:
            return False
        target, *read = instruction.values()
        memory = self._memory[target]
        if target not in self._whole or not memory.is_writable:
            return False
        if memory.is_donated and may_fail:  # a call that fails leaves its arguments
            return False
        if any(self._memory[value] is memory for value in read):
            return False
        return not any(self._last[v] > number or v in self._kept for v in memory.values)

    def _add(self, value: Value, memory: _Memory) -> None:
        self._memory[value] = memory
        memory.values.append(value)
