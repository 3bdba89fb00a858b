"""Candidates of idiom recognition: a possible root, and a spelling proposed there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from gptrs.ir.program import Attrs, Instruction, Operand, Operation, Value, values_in
from gptrs.ir.types import Type
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.idioms.bindings import Moved
from gptrs.passes.idioms.products import Makers

_NEAR = 64  # instructions looked at before an op counts as far away

Bound: TypeAlias = Sequence[Moved | None]
"""The bindings of a spelling's operands, None for absent ones."""
Finish: TypeAlias = Callable[[Bound, Attrs], "tuple[Bound, Attrs] | None"]
"""The operands and attributes of the composite, from those of the spelling; None if it has none."""


@dataclass(frozen=True)
class Proposal:
    """A spelling that may end at a root. Holes among ``attrs`` are solved from the program's
    numbers."""

    function: Callable[..., Any]
    operands: tuple[Type | None, ...]
    attrs: Attrs
    exact: bool = False
    """Whether it rounds as the definition does, bit for bit."""
    finish: Finish | None = None


@dataclass(frozen=True)
class Site:
    """An instruction that may be the root (the last instruction) of a spelling."""

    root: Instruction
    makers: Makers

    @property
    def type(self) -> Type:
        return self.root.results[0].type

    def nearest(self, op: Operation, start: Operand = None) -> Instruction | None:
        """The nearest instruction of this op, in breadth-first order, that ``start`` (by default
        the root's result) depends on."""
        first = self.root.results[0] if start is None else start
        left = deque[Value](values_in((first,)))
        seen: set[Value] = set()
        while left and len(seen) < _NEAR:
            value = left.popleft()
            maker = self.makers.get(value)
            if value in seen or maker is None:
                continue
            if maker.op is op:
                return maker
            seen.add(value)
            left.extend(maker.values())
        return None
