"""What a program says of its values: who makes each, what it consists of, who else reads it."""

from __future__ import annotations

from typing import cast

import numpy as np

from gptrs.ir.dispatch import OPS
from gptrs.ir.program import Instruction, Operation, Program, Value
from gptrs.ir.tensor import Tensor


class UseDef:
    """The instructions of ``program`` that were passed so far, as rules and passes ask for them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._maker: dict[Value, Instruction] = {}
        self._stable: set[Value] = {p for p in program.params if p.role == "parameter"}
        self._readers: dict[Value, int] | None = None
        self._broadcast: Operation = OPS["broadcast_to"]

    def add(self, instruction: Instruction) -> None:
        """Take in the next instruction."""
        for result in instruction.results:
            self._maker[result] = instruction
        if self._stable.issuperset(instruction.values()):
            self._stable.update(instruction.results)

    def rename(self, old: Value, new: Value) -> None:
        """Note that the readers of ``old`` read ``new``."""
        if self._readers is not None:
            self._readers[new] = self._readers.get(new, 0) + self._readers.get(old, 0)

    def maker(self, thing: object) -> Instruction | None:
        """The instruction that makes a value."""
        if isinstance(thing, Tensor):
            thing = thing.value
        return self._maker.get(thing) if isinstance(thing, Value) else None

    def made_by(self, thing: object, op: object) -> Instruction | None:
        """The instruction that makes a value, if it applies ``op``."""
        maker = self.maker(thing)
        return maker if maker is not None and maker.op is op else None

    def unbroadcast(self, thing: object) -> object:
        """What a broadcast_to repeats; another thing as it is."""
        maker = self.made_by(thing, self._broadcast)
        return thing if maker is None else maker.operands[0]

    def is_stable(self, *things: object) -> bool:
        """Whether all of it is the same in call after call: it depends on parameters, constants
        and numbers only."""
        values = [thing.value if isinstance(thing, Tensor) else thing for thing in things]
        return self._stable.issuperset(value for value in values if isinstance(value, Value))

    def is_alone(self, value: Value) -> bool:
        """Whether one instruction reads a value and the program does not return it."""
        if self._readers is None:
            self._readers = _count_readers(self._program)
        return self._readers.get(value, 2) < 2

    def number(self, thing: object) -> bool | int | float | complex | None:
        """The number that a value consists of: a constant of one element or a `full`, perhaps
        broadcast."""
        maker = self.maker(self.unbroadcast(thing))
        if maker is None or maker.operands:
            return None
        if maker.op is OPS["constant"]:
            array = maker.attrs["value"]
        elif maker.op is OPS["full"]:
            with np.errstate(all="ignore"):
                array = np.asarray(maker.attrs["value"]).astype(maker.result.type.dtype.numpy)
        else:
            return None
        return cast("float", array.item()) if array.size == 1 else None


def _count_readers(program: Program) -> dict[Value, int]:
    """How many operands each value is of instructions that matter; a result counts twice."""
    readers: dict[Value, int] = dict.fromkeys(program.results, 2)
    for instruction in reversed(program.body):
        if any(result in readers for result in instruction.results):
            for value in instruction.values():
                readers[value] = readers.get(value, 0) + 1
    return readers
