"""Patterns of rewrite rules, and their matcher over the instructions of a program.

A pattern is a call to ops on holes, built under the interpreter `Quote`. A pattern of elementwise
ops also matches through a ``broadcast_to`` that it does not mention, and commutative ops match with
their operands in either order. A number in a pattern also matches a constant value of that number.
An attribute that a pattern omits must have its default. `gptrs.ir.rewrite` selects the rules to try
by the ops that make an instruction's operands (`heads`).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from gptrs.ir.dispatch import OPS
from gptrs.ir.op import Op
from gptrs.ir.operators import Operators
from gptrs.ir.program import Attrs, Instruction, Operation, Value, key_of
from gptrs.ir.use_def import UseDef
from gptrs.lazy_dataclass import dataclass

Kind = Literal["any", "value", "optional", "number", "integer", "flag"]
Found: TypeAlias = dict[Any, Any]
"""The bindings of a match: holes by name, values inside the pattern by other keys."""

_NUMBERS: dict[Kind, tuple[type, ...]] = {
    "number": (int, float),
    "integer": (int,),
    "flag": (bool,),
}
NUMBER = "number"
"""In `heads`: an operand is a number, or a value that may be a constant number."""


@dataclass(frozen=True, eq=False)
class Hole(Operators["Node"]):
    """A variable of a pattern: it matches any operand or attribute of its kind, the same one
    everywhere."""

    name: str
    kind: Kind = "any"


@dataclass(frozen=True, eq=False)
class Node(Operators["Node"]):
    """A call to an op in a pattern: it matches the result of that op."""

    op: Operation
    operands: tuple[Any, ...]
    attrs: Attrs

    def match(self, root: Instruction, facts: UseDef) -> Found | None:
        """The bindings of the holes when ``root`` computes the pattern, else None."""
        env: Found = {}
        return env if root.op is self.op and _match_node(self, root, facts, env) else None

    def needs(self) -> frozenset[object]:
        """A subset of `heads` that every matching instruction has."""
        return frozenset(_needs(self.operands))

    def is_flat(self) -> bool:
        """Whether a match depends on the instruction alone, not on what makes its operands."""
        inner = (part for part in self.attrs.values() if isinstance(part, Node))
        return all(map(_is_flat, self.operands)) and not any(inner)


class Quote:
    """The interpreter under which a call to an op builds a pattern."""

    def apply(self, op: Operation, operands: tuple[Any, ...], attrs: Attrs) -> Any:
        defaults = cast("Op[..., Any]", op).attr_defaults
        others = {n: d for n, d in defaults.items() if d is not inspect.Parameter.empty}
        return Node(op, operands, {**others, **attrs})


def heads(instruction: Instruction, facts: UseDef) -> frozenset[object]:
    """The ops that make the operands of ``instruction``, and `NUMBER` where one may be a number."""
    found: set[object] = set()
    _add_heads(instruction.operands, facts, found)
    return frozenset(found)


def _add_heads(operands: Iterable[Any], facts: UseDef, found: set[object]) -> None:
    for operand in operands:
        if isinstance(operand, Value):
            maker = facts.maker(operand)
            if maker is not None:
                found.add(maker.op)
                if maker.op is OPS["broadcast_to"]:
                    _add_heads(maker.operands, facts, found)
                elif not maker.operands:
                    found.add(NUMBER)
        elif isinstance(operand, tuple):
            _add_heads(cast("tuple[Any, ...]", operand), facts, found)
        elif operand is not None:
            found.add(NUMBER)


def _needs(parts: Iterable[Any]) -> Iterator[object]:
    for part in parts:
        if isinstance(part, Node):
            yield part.op
        elif isinstance(part, tuple):
            yield from _needs(cast("tuple[Any, ...]", part))
        elif isinstance(part, Hole):
            if part.kind in _NUMBERS:
                yield NUMBER
        elif part is not None:
            yield NUMBER


def _is_flat(part: Any) -> bool:
    if isinstance(part, tuple):
        return all(map(_is_flat, cast("tuple[Any, ...]", part)))
    # A number may be a value's, which its maker says.
    return part is None or (isinstance(part, Hole) and part.kind not in _NUMBERS)


def _match(pattern: Any, found: Any, facts: UseDef, env: Found) -> bool:
    """Whether ``found`` matches ``pattern``; ``env`` collects the bindings."""
    if isinstance(pattern, Hole):
        return _match_hole(pattern, found, facts, env)
    if isinstance(pattern, Node):
        maker = facts.maker(found)
        if maker is None or maker.op is not pattern.op:
            return False
        env[pattern] = found
        return _match_node(pattern, maker, facts, env)
    if isinstance(pattern, tuple):
        parts = cast("tuple[Any, ...]", pattern)
        if not isinstance(found, tuple) or len(cast("tuple[Any, ...]", found)) != len(parts):
            return False
        return all(_match(part, f, facts, env) for part, f in zip(parts, found, strict=True))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if pattern is None:
        return found is None
    return _same_number(pattern, facts.number(found) if isinstance(found, Value) else found)


def _match_hole(hole: Hole, found: Any, facts: UseDef, env: Found) -> bool:
    kind = hole.kind
    if kind == "value" or kind == "optional":
        if not isinstance(found, Value) and (found is not None or kind == "value"):
            return False
    elif kind != "any":
        found = facts.number(found) if isinstance(found, Value) else found
        if not isinstance(found, _NUMBERS[kind]) or (isinstance(found, bool) and kind != "flag"):
            return False
    if hole.name in env:
        return _same_thing(env[hole.name], found)
    env[hole.name] = found
    return True


def _match_node(pattern: Node, instruction: Instruction, facts: UseDef, env: Found) -> bool:
    op = instruction.op
    for name, part in pattern.attrs.items():
        if not _match(part, instruction.attrs[name], facts, env):
            return False
    if not op.commutative:
        return _match_operands(pattern, instruction.operands, op.elementwise, facts, env)
    before = dict(env)
    if _match_operands(pattern, instruction.operands, True, facts, env):
        return True
    env.clear()
    env.update(before)
    return _match_operands(pattern, instruction.operands[::-1], True, facts, env)


def _match_operands(
    pattern: Node, operands: tuple[Any, ...], elementwise: bool, facts: UseDef, env: Found
) -> bool:
    for part, operand in zip(pattern.operands, operands, strict=True):
        if elementwise and isinstance(part, Node):
            inner = _through_broadcast(part, operand, facts)
            if inner is not operand:
                env[(part,)] = operand
            operand = inner
        if not _match(part, operand, facts, env):
            return False
    return True


def _through_broadcast(part: Node, operand: Any, facts: UseDef) -> Any:
    """The operand of a broadcast_to that an elementwise pattern does not mention."""
    return operand if part.op is OPS["broadcast_to"] else facts.unbroadcast(operand)


def _same_number(pattern: object, found: object) -> bool:
    if isinstance(pattern, bool) or isinstance(found, bool):
        return pattern is found
    if isinstance(pattern, int | float) and isinstance(found, int | float):
        return pattern == found and bool(np.signbit(pattern)) == bool(np.signbit(found))
    return key_of(pattern) == key_of(found)


def _same_thing(a: object, b: object) -> bool:
    return a is b or (not isinstance(a, Value) and key_of(a) == key_of(b))
