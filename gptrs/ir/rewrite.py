"""Rewrite rules: a pattern and a replacement, both written with the ops themselves.

    @rewrite(lambda x, p, q: transpose(transpose(x, perm=p), perm=q), samples=[...])
    def merge_transposes(x, p, q):
        \"\"\"Two permutations are one.\"\"\"
        return transpose(x, perm=tuple(p[i] for i in q))

The parameters of the pattern are holes: for operands, and for the attributes that it names. The
replacement takes some of them and returns None where the rule does not apply after all. A pattern
of elementwise ops also matches through a ``broadcast_to`` that it does not mention.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from gptrs.errors import VerifyError
from gptrs.ir.dims import same_shape
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.operators import Operators
from gptrs.ir.program import Attrs, Instruction, Operation, Program, Value, key_of
from gptrs.ir.tensor import Tensor

Found = dict[str, Any]
Sample = Mapping[str, object]
_SWEEPS = 16  # a set of rules that has not settled by then goes round in circles


@dataclass(frozen=True, eq=False)
class Hole(Operators):
    """A part of a pattern that matches anything, the same thing wherever it occurs."""

    name: str


@dataclass(frozen=True, eq=False)
class Node(Operators):
    """A part of a pattern that matches the result of an op."""

    op: Operation
    operands: tuple[Any, ...]
    attrs: Attrs


class Quote:
    """The interpreter under which a call to an op is a pattern."""

    def apply(self, op: Operation, operands: tuple[Any, ...], attrs: Attrs) -> Any:
        return Node(op, operands, attrs)


@dataclass(frozen=True, eq=False)
class Rule:
    """A named rewrite. ``samples`` give a type (as text) or a value for each hole: every rule is
    proven on them numerically."""

    name: str
    pattern: Node
    source: Callable[..., Any]
    build: Callable[..., Any]
    samples: tuple[Sample, ...]
    doc: str

    def match(self, root: Instruction, defined: Mapping[Value, Instruction]) -> Found | None:
        """What the holes stand for when ``root`` computes the pattern, else None."""
        if root.op is not self.pattern.op:
            return None
        return _match_node(self.pattern, root, defined, {})


def rewrite(
    pattern: Callable[..., Any], *, samples: Sequence[Sample]
) -> Callable[[Callable[..., Any]], Rule]:
    """Declare a rule; see the head of this file."""

    def decorate(build: Callable[..., Any]) -> Rule:
        holes = inspect.signature(pattern).parameters
        unknown = set(inspect.signature(build).parameters) - set(holes)
        if unknown or not samples:
            raise ValueError(
                f"{build.__name__}: holes {unknown} are not in the pattern, or no sample"
            )
        with interpreter(Quote()):
            quoted = pattern(*map(Hole, holes))
        doc = inspect.getdoc(build) or ""
        return Rule(build.__name__, quoted, pattern, build, tuple(samples), doc)

    return decorate


def _match(
    pattern: Any, found: Any, defined: Mapping[Value, Instruction], env: Found
) -> Found | None:
    if isinstance(pattern, Hole):
        if pattern.name not in env:
            return {**env, pattern.name: found}
        return env if _same_thing(env[pattern.name], found) else None
    if isinstance(pattern, Node):
        instruction = defined.get(found) if isinstance(found, Value) else None
        return instruction and _match_node(pattern, instruction, defined, env)
    if isinstance(pattern, tuple):
        parts = cast("tuple[Any, ...]", pattern)
        if not isinstance(found, tuple) or len(cast("tuple[Any, ...]", found)) != len(parts):
            return None
        return _match_all(zip(parts, cast("tuple[Any, ...]", found), strict=True), defined, env)
    if isinstance(found, Value):
        found = _constant(found, defined)
    return env if _same_number(pattern, found) else None


def _match_all(pairs: Any, defined: Mapping[Value, Instruction], env: Found) -> Found | None:
    current: Found | None = env
    for pattern, found in pairs:
        if current is not None:
            current = _match(pattern, found, defined, current)
    return current


def _match_node(
    pattern: Node, instruction: Instruction, defined: Mapping[Value, Instruction], env: Found
) -> Found | None:
    if instruction.op is not pattern.op:
        return None
    orders = [instruction.operands]
    if instruction.op.commutative:
        orders.append(instruction.operands[::-1])
    for order in orders:
        pairs: list[tuple[Any, Any]] = []
        for part, operand in zip(pattern.operands, order, strict=True):
            if instruction.op.elementwise and isinstance(part, Node):
                operand = _through_broadcast(part, operand, defined)
            pairs.append((part, operand))
        pairs += [(part, instruction.attrs[name]) for name, part in pattern.attrs.items()]
        if (found := _match_all(pairs, defined, env)) is not None:
            return found
    return None


def _through_broadcast(part: Node, operand: Any, defined: Mapping[Value, Instruction]) -> Any:
    """The operand of a broadcast_to that an elementwise pattern does not mention."""
    instruction = defined.get(operand) if isinstance(operand, Value) else None
    broadcast = OPS["broadcast_to"]
    if instruction is None or instruction.op is not broadcast or part.op is broadcast:
        return operand
    return instruction.operands[0]


def _constant(value: Value, defined: Mapping[Value, Instruction]) -> object:
    """The one number that ``value`` consists of, or None."""
    instruction = defined.get(value)
    if instruction is not None and instruction.op is OPS["broadcast_to"]:
        instruction = defined.get(cast("Value", instruction.operands[0]))
    if instruction is None or instruction.op is not OPS["constant"]:
        return None
    array = instruction.attrs["value"]
    return array.item() if array.size == 1 else None


def _same_number(pattern: object, found: object) -> bool:
    if isinstance(pattern, bool) or isinstance(found, bool):
        return pattern is found
    if isinstance(pattern, int | float) and isinstance(found, int | float):
        return pattern == found and bool(np.signbit(pattern)) == bool(np.signbit(found))
    return key_of(pattern) == key_of(found)


def _same_thing(a: object, b: object) -> bool:
    return a is b or (not isinstance(a, Value) and key_of(a) == key_of(b))


class Fuel:
    """How many rewrites may still be applied; the last one applied is the one to look at."""

    def __init__(self, left: float = float("inf")) -> None:
        self.left = left
        self.log: list[str] = []

    def spend(self, what: str) -> bool:
        """Whether one more rewrite may be applied, which is called ``what``."""
        if self.left <= 0:
            return False
        self.left -= 1
        self.log.append(what)
        return True


def apply_rules(program: Program, rules: Sequence[Rule], fuel: Fuel | None = None) -> Program:
    """Rewrite until no rule matches. What became unused is left for `eliminate_dead`."""
    fuel = fuel or Fuel()
    for _ in range(_SWEEPS):
        before = len(fuel.log)
        program = _sweep(program, rules, fuel)
        if len(fuel.log) == before:
            break
    return program


def _sweep(program: Program, rules: Sequence[Rule], fuel: Fuel) -> Program:
    defined: dict[Value, Instruction] = {}
    renamed: dict[Value, Value] = {}
    body: list[Instruction] = []
    by_op: dict[Operation, list[Rule]] = {}
    for rule in rules:
        by_op.setdefault(rule.pattern.op, []).append(rule)
    for instruction in program.body:
        current = instruction.reading(renamed)
        new: list[Instruction] = [current]
        for rule in by_op.get(current.op, ()):
            if (replaced := _try(rule, current, defined)) is not None:
                if not fuel.spend(rule.name):
                    break
                new, renamed[current.result] = replaced
                break
        body += new
        for made in new:
            defined |= dict.fromkeys(made.results, made)
    return program.with_body(body, [renamed.get(r, r) for r in program.results])


def _try(
    rule: Rule, root: Instruction, defined: Mapping[Value, Instruction]
) -> tuple[list[Instruction], Value] | None:
    """The instructions that replace ``root`` and the value that stands for its result."""
    if (found := rule.match(root, defined)) is None:
        return None
    recorder = Recorder(rule.name, where=root.where)
    wanted = inspect.signature(rule.build).parameters
    holes = {
        name: Tensor.of_value(value, recorder) if isinstance(value, Value) else value
        for name, value in found.items()
        if name in wanted
    }
    target = root.result.type
    with interpreter(recorder):
        result = rule.build(**holes)
        if not isinstance(result, Tensor):  # the rule does not apply, or a hole is a number
            return None
        if not same_shape(result.shape, target.shape):
            result = OPS["broadcast_to"](result, shape=target.shape)
    if result.type != target:
        raise VerifyError(f"rule {rule.name} replaces {target} by {result.type}")
    return recorder.body, cast("Value", recorder.lift(result))
