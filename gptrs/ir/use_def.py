"""Use-def chains of a program: the instruction that defines a value, its uses, constant values.

Built incrementally, in program order, by the rewrite driver (`gptrs.ir.rewrite`) and by constant
folding. Rewrite rules receive it as ``facts``.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from gptrs.ir.dispatch import OPS
from gptrs.ir.program import Instruction, Operation, Program, Value
from gptrs.ir.tensor import Tensor


class UseDef:
    """The definitions of the instructions of ``program`` that were added so far, and queries over
    them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._maker: dict[Value, Instruction] = {}
        self._stable: set[Value] = {p for p in program.params if p.role == "parameter"}
        self._readers: dict[Value, int] | None = None
        self._broadcast: Operation = OPS["broadcast_to"]

    def add(self, instruction: Instruction) -> None:
        """Add the next instruction."""
        for result in instruction.results:
            self._maker[result] = instruction
        if self._stable.issuperset(instruction.values()):
            self._stable.update(instruction.results)

    def rename(self, old: Value, new: Value) -> None:
        """Count the uses of ``old`` as uses of ``new``."""
        if self._readers is not None:
            self._readers[new] = self._readers.get(new, 0) + self._readers.get(old, 0)

    def maker(self, thing: object) -> Instruction | None:
        """The instruction that defines a value."""
        if isinstance(thing, Tensor):
            thing = thing.value
        return self._maker.get(thing) if isinstance(thing, Value) else None

    def made_by(self, thing: object, op: object) -> Instruction | None:
        """The instruction that defines a value, if it applies ``op``."""
        maker = self.maker(thing)
        return maker if maker is not None and maker.op is op else None

    def unbroadcast(self, thing: object) -> object:
        """The operand of a broadcast_to; anything else unchanged."""
        maker = self.made_by(thing, self._broadcast)
        return thing if maker is None else maker.operands[0]

    def is_stable(self, *things: object) -> bool:
        """Whether all are the same in every call: they depend on parameters, constants and numbers
        only."""
        values = [thing.value if isinstance(thing, Tensor) else thing for thing in things]
        return self._stable.issuperset(value for value in values if isinstance(value, Value))

    def is_alone(self, value: Value) -> bool:
        """Whether a value has one use and is no result of the program."""
        if self._readers is None:
            self._readers = _count_readers(self._program)
        return self._readers.get(value, 2) < 2

    def number(self, thing: object) -> bool | int | float | complex | None:
        """The scalar that all elements of a value equal: a constant of one element or a `full`,
        perhaps broadcast."""
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
    """The number of uses of each value by live instructions; a result counts twice."""
    readers: dict[Value, int] = dict.fromkeys(program.results, 2)
    for instruction in reversed(program.body):
        if any(result in readers for result in instruction.results):
            for value in instruction.values():
                readers[value] = readers.get(value, 0) + 1
    return readers
