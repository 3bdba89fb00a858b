"""Rewrite rules: declaration by a pattern and a replacement, and the driver that applies them.

    @rewrite(lambda x, p, q: transpose(transpose(x, perm=p), perm=q), samples=[...])
    def merge_transposes(x: Tensor, p: Perm, q: Perm) -> Tensor:
        \"\"\"Two permutations are one.\"\"\"
        return transpose(x, perm=tuple(p[i] for i in q))

Pattern and replacement are written with the ops themselves. The parameters of the pattern are
holes, for operands and for the attributes that it names. The replacement takes some of them and
returns None where the rule does not apply after all. Its annotation of a hole restricts the match:
a ``Tensor`` matches a value, ``Tensor | None`` an operand that may be absent, ``float`` or ``int``
a number and ``bool`` a truth value (also as a constant value), anything else matches anything. A
parameter ``facts`` that is no hole receives the `UseDef`.

`apply_rules` sweeps over a program until no rule matches; `gptrs.passes.simplify` calls it with the
rules of `gptrs.passes.rules`. `Fuel` limits the number of rewrites, to bisect a miscompile.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache, partial
from typing import Any, TypeAlias, cast

from gptrs.errors import ArgumentError, PtirError, VerifyError
from gptrs.ir.dims import same_shape
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.pattern import Found, Hole, Kind, Node, Quote, heads
from gptrs.ir.program import Instruction, Operation, Program, Value
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType
from gptrs.ir.use_def import UseDef
from gptrs.lazy_dataclass import dataclass

_Value: TypeAlias = complex | str | tuple[Any, ...] | DType | Array | None
Sample: TypeAlias = Mapping[str, _Value | Callable[[Any], Any] | Callable[[Any, Any], Any]]
# One alternative for each number of holes: type checkers then take the holes of a lambda as Any.
Pattern: TypeAlias = (
    Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any], Any]
)
_SWEEPS = 16  # a set of rules that has not settled by then goes round in circles
_KINDS: dict[str, Kind] = {
    "Tensor": "value",
    "Tensor | None": "optional",
    "float": "number",
    "int": "integer",
    "bool": "flag",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Traits:
    """Properties of a rule. The rule's docstring gives the reason."""

    rounds: bool = False
    """It changes how results are rounded, so it is not applied to precise programs."""
    ulps: int = 0
    """The largest change of a result of its samples by a rule that rounds, in units in the last
    place..."""
    magnitude: float = 0.0
    """...of results of at least this magnitude; smaller results count as this."""
    finite: bool = False
    """Its effect on NaN, infinities and numbers near the limits of the dtype is unspecified."""
    alone: bool = False
    """It applies only where the values inside the pattern have no other use."""
    larger: str = ""
    """Why the replacement may have more instructions than the pattern."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Rule(Traits):
    """A named rewrite.

    ``samples`` give each hole a type as text, or a value. Every rule is tested on them: in a type,
    F, I, W or T stands for any float, integer, f32 or f64, or any number, a lower-case name for an
    extent, ``*`` for a whole shape; dimensions in attributes refer to the same names.
    """

    name: str
    pattern: Node
    source: Callable[..., Any]
    build: Callable[..., Any]
    samples: tuple[Sample, ...]
    doc: str
    holes: frozenset[str]
    """The holes that ``build`` takes."""
    asks: bool
    """Whether ``build`` takes the facts."""

    @property
    def flat(self) -> bool:
        """Whether it depends on the instruction alone: where it does not apply now, it never
        will."""
        return self.pattern.is_flat() and not (self.asks or self.alone)

    def match(self, root: Instruction, facts: UseDef) -> Found | None:
        """The bindings of the holes when ``root`` computes the pattern, else None."""
        found = self.pattern.match(root, facts)
        if found is None or not self.alone:
            return found
        inner = (value for part, value in found.items() if not isinstance(part, str))
        return found if all(map(facts.is_alone, inner)) else None


def rewrite(
    pattern: Pattern, *, samples: Sequence[Sample], **traits: Any
) -> Callable[[Callable[..., Any]], Rule]:
    """Declare a rule; see the head of this file, and `Traits`."""
    return lambda build: _proven(build.__name__, pattern, build, build, samples, Traits(**traits))


def rewrite_each(
    ops: Sequence[Any],
    pattern: Callable[[Any], Pattern],
    *,
    samples: Sequence[Sample],
    **traits: Any,
) -> Callable[[Callable[..., Any]], tuple[Rule, ...]]:
    """Declare a rule for each of ``ops`` (ops, or tuples of them), which the pattern and the
    replacement take first."""

    def decorate(build: Callable[..., Any]) -> tuple[Rule, ...]:
        said = Traits(**traits)
        return tuple(
            _proven(
                f"{build.__name__}_{_label(op)}",
                pattern(op),
                partial(build, op),
                build,
                samples,
                said,
            )
            for op in ops
        )

    return decorate


def _label(op: Any) -> str:
    return "_".join(map(_label, op)) if isinstance(op, tuple) else op.name  # pyright: ignore[reportUnknownArgumentType]


def _proven(
    name: str,
    pattern: Callable[..., Any],
    build: Callable[..., Any],
    written: Callable[..., Any],
    samples: Sequence[Sample],
    traits: Traits,
) -> Rule:
    """A rule of this package, which has samples."""
    if not samples:
        raise ValueError(f"{name}: no sample")
    return new_rule(name, pattern, build, written, samples, traits)


def new_rule(
    name: str,
    pattern: Callable[..., Any],
    build: Callable[..., Any],
    written: Callable[..., Any],
    samples: Sequence[Sample],
    traits: Traits,
) -> Rule:
    """The rule called ``name``. ``written`` is the function as its author wrote it, ``build`` takes
    holes alone. Raises `ArgumentError` for a parameter that is no hole."""
    names, asked = _parameters(pattern), _parameters(build)
    taken = set(asked) - {"facts"}
    unknown = taken - set(names)
    if unknown:
        raise ArgumentError(
            f"rule {name} takes {', '.join(sorted(unknown))}, of which its pattern says nothing",
            fix=f"the holes of the pattern are: {', '.join(names)}",
        )
    hints = written.__annotations__  # as text, in a twentieth of the time of reading it
    holes = [Hole(n, _kind_of(hints.get(n)) if n in taken else "any") for n in names]
    with interpreter(Quote()):
        quoted = pattern(*holes)
    return Rule(
        name=name,
        pattern=quoted,
        source=pattern,
        build=build,
        samples=tuple(samples),
        doc=inspect.getdoc(written) or "",
        holes=frozenset(taken),
        asks="facts" in asked,
        **{field.name: getattr(traits, field.name) for field in fields(Traits)},
    )


def _kind_of(hint: object) -> Kind:
    """What a hole matches, by its annotation: a type, or a text as in this package."""
    if hint is None:
        return "any"
    text = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    return _KINDS.get(text.replace("gptrs.ir.tensor.", "").replace("ptir.", ""), "any")


def _parameters(function: Callable[..., Any]) -> Sequence[str]:
    """The names of the parameters that a function, or a partial one, still takes. Hundreds of rules
    are declared at import, and `inspect` is slow."""
    bound = len(function.args) if isinstance(function, partial) else 0
    code = (function.func if isinstance(function, partial) else function).__code__
    return code.co_varnames[bound : code.co_argcount + code.co_kwonlyargcount]


class Fuel:
    """A budget of rewrites, and the log of those applied. Bisecting it finds the rule that
    miscompiles."""

    def __init__(self, left: float = float("inf")) -> None:
        self.left = left
        self.log: list[str] = []

    @property
    def empty(self) -> bool:
        """Whether no rewrite may be applied any more."""
        return self.left <= 0

    def spend(self, what: str) -> bool:
        """Whether one more rewrite, called ``what``, may be applied."""
        if self.empty:
            return False
        self.left -= 1
        self.log.append(what)
        return True


class _Rules:
    """Rules indexed by the op of the root and the ops of its operands."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._by_op: dict[Operation, list[tuple[frozenset[object], Rule]]] = {}
        for rule in rules:
            entry = (rule.pattern.needs(), rule)
            self._by_op.setdefault(rule.pattern.op, []).append(entry)
        self._flat = frozenset(rule for rule in rules if rule.flat)
        self._found: dict[object, tuple[Rule, ...]] = {}

    def that_may_match(self, instruction: Instruction, facts: UseDef) -> tuple[Rule, ...]:
        entries = self._by_op.get(instruction.op)
        if entries is None:
            return ()
        at, settled = heads(instruction, facts), self in instruction.memo
        key = (instruction.op, at, settled)
        found = self._found.get(key)
        if found is None:
            left = [(n, rule) for n, rule in entries if not (settled and rule in self._flat)]
            found = self._found[key] = tuple(rule for needs, rule in left if needs <= at)
        return found

    def settle(self, instruction: Instruction) -> None:
        """Note that none of the rules applies that depend on the instruction alone."""
        instruction.memo[self] = True


@lru_cache(maxsize=16)
def _sorted_rules(rules: tuple[Rule, ...]) -> _Rules:
    return _Rules(rules)


def apply_rules(program: Program, rules: Sequence[Rule], fuel: Fuel | None = None) -> Program:
    """Rewrite until no rule matches. Unused instructions are left to `eliminate_dead_code`."""
    fuel = fuel or Fuel()
    table = _sorted_rules(tuple(rules))
    for _ in range(_SWEEPS):
        before = program
        program = _sweep(program, table, fuel)
        if program is before:
            break
    return program


def _sweep(program: Program, rules: _Rules, fuel: Fuel) -> Program:
    facts = UseDef(program)
    renamed: dict[Value, Value] = {}
    body: list[Instruction] = []
    for instruction in program.body:
        current = instruction.reading(renamed) if renamed else instruction
        made: list[Instruction] = [current]
        for rule in () if fuel.empty else rules.that_may_match(current, facts):
            try:
                replaced = _try(rule, current, facts)
            except VerifyError:
                fuel.spend(rule.name)  # so that it is found by its number
                raise
            if replaced is not None:
                if fuel.spend(rule.name):
                    made, result = replaced
                    renamed[current.result] = result
                    facts.rename(current.result, result)
                break
        else:
            if not fuel.empty:
                rules.settle(current)
        body += made
        for each in made:
            facts.add(each)
    return program.with_body(body, [renamed.get(r, r) for r in program.results])


def _try(rule: Rule, root: Instruction, facts: UseDef) -> tuple[list[Instruction], Value] | None:
    """The instructions that replace ``root``, and the value that replaces its result."""
    if (found := rule.match(root, facts)) is None:
        return None
    recorder = Recorder(rule.name, where=root.where)
    holes = {name: _as_operand(found[name], recorder) for name in rule.holes}
    target = root.result.type
    with interpreter(recorder):
        try:
            result = rule.build(**holes, facts=facts) if rule.asks else rule.build(**holes)
        except PtirError as error:
            error.context.append(f"rule {rule.name}")
            raise
        if not isinstance(result, Tensor):  # the rule does not apply, or a hole is a number
            return None
        if not same_shape(result.shape, target.shape):
            result = OPS["broadcast_to"](result, shape=target.shape)
    if result.type != target:
        raise VerifyError(f"rule {rule.name} replaces {target} by {result.type}")
    return recorder.body, cast("Value", recorder.lift(result))


def _as_operand(thing: Any, recorder: Recorder) -> Any:
    """A binding as an operand of the replacement: values as tensors."""
    if isinstance(thing, Value):
        return Tensor.of_value(thing, recorder)
    if isinstance(thing, tuple):
        return tuple(_as_operand(part, recorder) for part in cast("tuple[Any, ...]", thing))
    return thing
