"""Bindings of a match: the program's values for the parameters, nodes and holes of a pattern."""

from __future__ import annotations

from dataclasses import field

from gptrs.ir.dims import DimLike, Shape
from gptrs.ir.ops.shape import reshape, transpose
from gptrs.ir.program import Instruction, Operation, Param, Value, key_of
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.idioms.patterns import Hole, close

Move = tuple[Operation, Shape]
"""`transpose` with its permutation or `reshape` with its shape."""


@dataclass(frozen=True)
class Moved:
    """The binding of a parameter: a value of the program after transposes and reshapes."""

    value: Value
    moves: tuple[Move, ...] = ()
    plus: DimLike | None = None
    """A number that is added to integers, in si64."""
    rows: DimLike | None = None
    """How many rows of a batch a single integer is for."""

    def is_same(self, other: Moved) -> bool:
        return self.value is other.value and key_of(self.moves) == key_of(other.moves)


@dataclass(frozen=True)
class Match:
    """The bindings found so far (immutable: the matcher backtracks)."""

    params: dict[Param, Moved] = field(default_factory=dict[Param, Moved])
    nodes: dict[Value, Value] = field(default_factory=dict[Value, Value])
    holes: dict[str, float] = field(default_factory=dict[str, float])

    def with_param(self, param: Param, moved: Moved) -> Match | None:
        known = self.params.get(param)
        if known is not None:
            return self if known.is_same(moved) else None
        return Match({**self.params, param: moved}, self.nodes, self.holes)

    def with_node(self, node: Value, value: Value) -> Match:
        return Match(self.params, {**self.nodes, node: value}, self.holes)

    def with_hole(self, hole: Hole, found: float) -> Match | None:
        value = hole.value(found)
        if value is None:
            return None
        known = self.holes.get(hole.name)
        if known is not None:
            return self if close(known, value) else None
        return Match(self.params, self.nodes, {**self.holes, hole.name: value})


def undone(wanted: Instruction, operand: Param) -> Move:
    """The inverse of ``wanted``, a reshape or transpose of ``operand``."""
    if wanted.op is reshape:
        return reshape, operand.type.shape
    perm: tuple[int, ...] = wanted.attrs["perm"]
    return transpose, tuple(perm.index(i) for i in range(len(perm)))
