"""The IR's data structures: `Value`, `Param`, `Instruction`, `Program`; and the verifier.

A program is a pure function in SSA form. Instructions are immutable: a pass returns a new program
that shares the unchanged instructions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from gptrs.errors import Location, PtirError, VerifyError
from gptrs.ir.boxes import Box
from gptrs.ir.dims import Dim
from gptrs.ir.implementation import Implementation
from gptrs.ir.kinds import OpKind
from gptrs.ir.program_html import program_html
from gptrs.ir.scalar_rules import ScalarRule
from gptrs.ir.types import Array, Type
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property

VERSION = "ptir.v0.4"

Scalar: TypeAlias = bool | int | float | complex | Dim
Role = Literal["input", "parameter"]
Attrs: TypeAlias = dict[str, Any]


class Value:
    """A result of an instruction or a parameter of a program; two are equal when identical."""

    __slots__ = ("origin", "type")

    def __init__(self, type: Type, origin: str = "") -> None:
        self.type = type
        self.origin = origin  # where it comes from, in the user's words, for messages

    def __repr__(self) -> str:
        return f"<{self.origin or 'value'}: {self.type}>"


class Param(Value):
    """A parameter of a program: an argument, or the slot of a model's parameter."""

    __slots__ = ("donated", "name", "role")

    def __init__(
        self,
        type: Type,
        name: str,
        *,
        role: Role = "input",
        donated: bool = False,
        origin: str = "",
    ) -> None:
        word = "parameter" if role == "parameter" else "argument"
        super().__init__(type, f"{word} {origin or name}")
        self.name = name
        self.role: Role = role
        self.donated = donated


class DerivedParam(Param):
    """A parameter that ``definition`` computes from other parameters of the program,
    ``sources``."""

    __slots__ = ("definition", "sources")

    def __init__(
        self, type: Type, name: str, definition: Program, sources: tuple[Param, ...]
    ) -> None:
        super().__init__(type, name, role="parameter")
        self.definition = definition
        self.sources = sources


Operand: TypeAlias = Value | Scalar | tuple["Operand", ...] | None


class Fails(IntEnum):
    """When the evaluation of an op raises `ElementError`."""

    NEVER = 0
    AT_SIZES = 1
    """At some sizes of the symbols, whatever the elements are."""
    AT_ELEMENTS = 2


RowRule: TypeAlias = "Callable[[Instruction, Box], dict[Value, Box | None] | None]"
"""See `gptrs.ir.row_rules`."""


class Operation(ABC):
    """The interface of an op to programs, passes and backends. Only printed text uses its name."""

    name: str
    kind: OpKind = OpKind.OTHER
    """How elements of the result depend on elements of the operands."""
    commutative: bool = False
    """Whether its two operands may be exchanged."""
    cost: int = 1
    """About how many additions it takes for an element; 0 where that is less than to store it."""
    scalar_rule: ScalarRule | None = None
    """What it computes of one element of each operand, for backends that write loops."""
    kernels: tuple[Implementation, ...] = ()
    """Those that users registered: see `gptrs.ir.implementations.kernels`."""
    harmless: Mapping[str, int] = MappingProxyType({})
    """Values of operands for which it does not fail at elements, whatever the others are."""
    rows: RowRule | None = None
    """How rows of the result depend on rows of the operands; None where that is not known."""

    @property
    def elementwise(self) -> bool:
        """Whether it is a primitive that broadcasts its operands and works element by element."""
        return self.kind is OpKind.ELEMENTWISE

    @property
    def control(self) -> bool:
        """Whether it runs programs that it has as attributes."""
        return self.kind is OpKind.CONTROL

    @abstractmethod
    def infer(self, operands: Sequence[Any], attrs: Attrs) -> tuple[Type, ...]:
        """The result types for operands of these types. Raises `PtirError` when none fit."""

    @abstractmethod
    def prepare(self, operands: Sequence[Any], attrs: Attrs) -> tuple[tuple[Any, ...], Attrs]:
        """Operands and attributes in the normal form of programs (broadcast, axes counted from the
        front)."""

    @abstractmethod
    def evaluate(
        self, operands: Sequence[Any], attrs: Attrs, types: tuple[Type, ...]
    ) -> tuple[Array, ...]:
        """The NumPy meaning of the op: results of ``types`` for NumPy operands."""

    def has_effects(self, operands: Sequence[Any], attrs: Attrs) -> bool:
        """Whether it acts besides computing results: such an instruction is neither removed nor
        repeated, merged, moved or evaluated ahead. A region acts only if it runs."""
        acts = self.kind is OpKind.EFFECT
        return acts or any(a.has_effects for a in attrs.values() if isinstance(a, Program))

    def fails(self, operands: Sequence[Any], attrs: Attrs) -> Fails:
        """When operands of these types may have no result. A region fails only if it runs."""
        regions = (a.fails for a in attrs.values() if isinstance(a, Program))
        return max(regions, default=Fails.NEVER)


@dataclass(frozen=True, eq=False, slots=True)
class Instruction:
    """One op applied to operands. An operand is a value, a scalar, absent, or a tuple of these."""

    op: Operation
    operands: tuple[Operand, ...]
    attrs: Attrs
    results: tuple[Value, ...]
    where: Location | None = None
    memo: dict[object, Any] = field(default_factory=dict[object, Any], init=False, repr=False)
    """What was found of it, by who found it. It holds as long as the instruction, which is
    immutable, and is no part of it."""

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result

    def values(self) -> Iterator[Value]:
        """The values among the operands, from left to right."""
        found = self.memo.get(values_in)
        if found is None:
            found = self.memo[values_in] = tuple(values_in(self.operands))
        return iter(found)

    def regions(self) -> Iterator[Program]:
        """The programs among the attributes (branches and loop bodies)."""
        return (a for a in self.attrs.values() if isinstance(a, Program))

    @property
    def has_effects(self) -> bool:
        """See `Operation.has_effects`."""
        return self.op.has_effects(self.operands, self.attrs)

    @property
    def fails(self) -> Fails:
        """When elements have no result, judged by the types alone."""
        found = self.memo.get(Fails)
        if found is None:
            found = self.memo[Fails] = self.op.fails(self.operands, self.attrs)
        return found

    @property
    def attrs_key(self) -> tuple[object, ...]:
        """`attrs_key` of its attributes."""
        found = self.memo.get(attrs_key)
        if found is None:
            found = self.memo[attrs_key] = attrs_key(self.attrs)
        return found

    def reading(self, replace: Mapping[Value, Value]) -> Instruction:
        """This instruction with its operands substituted by ``replace``."""
        if not replace or replace.keys().isdisjoint(self.values()):
            return self
        operands = map_values(self.operands, lambda v: replace.get(v, v))
        if operands == self.operands:
            return self
        return Instruction(self.op, operands, self.attrs, self.results, self.where)


_printers: list[Callable[[Program], str]] = []


def printer(print_program: Callable[[Program], str]) -> Callable[[Program], str]:
    """Decorate the function that gives the text of programs (`gptrs.ir.printing`)."""
    _printers.append(print_program)
    return print_program


@dataclass(frozen=True, eq=False)
class Program:
    """A pure function in SSA form: parameters, instructions in order, results.

    A region (the branch of a conditional, the body of a loop) is a program too, and closed: its
    operands are its own parameters and values.
    """

    name: str
    params: tuple[Param, ...]
    body: tuple[Instruction, ...]
    results: tuple[Value, ...]
    _text: list[str] = field(default_factory=list[str], repr=False)

    def with_body(self, body: Sequence[Instruction], results: Sequence[Value]) -> Program:
        """The same parameters with other instructions; this program itself if nothing differs."""
        if tuple(body) == self.body and tuple(results) == self.results:
            return self
        return Program(self.name, self.params, tuple(body), tuple(results))

    @cached_property
    def has_control(self) -> bool:
        """Whether an instruction runs programs that it has as attributes."""
        return any(i.op.control for i in self.body)

    @property
    def has_effects(self) -> bool:
        """Whether an instruction has."""
        return any(i.has_effects for i in self.body)

    @cached_property
    def fails(self) -> Fails:
        """The failure rule of the whole program: the maximum over its instructions."""
        return max((i.fails for i in self.body), default=Fails.NEVER)

    def symbols(self) -> set[str]:
        """The symbolic dimensions in the parameters' types."""
        dims = (d for p in self.params for d in p.type.shape if isinstance(d, Dim))
        return {name for d in dims for name in d.symbols()}

    def __str__(self) -> str:
        if not self._text:
            self._text.append(_printers[-1](self))
        return self._text[0]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The text for notebooks; the users' lines are tooltips."""
        return program_html(str(self), (str(i.where or "") for i in _as_printed(self)))


def _as_printed(program: Program) -> Iterator[Instruction]:
    """The instructions in the order of the text: those of a region before the one that runs it."""
    for instruction in program.body:
        for region in instruction.regions():
            yield from _as_printed(region)
        yield instruction


def values_in(operands: Sequence[Operand]) -> Iterator[Value]:
    """The values in a list of operands, tuples opened."""
    for operand in operands:
        if isinstance(operand, Value):
            yield operand
        elif isinstance(operand, tuple):
            yield from values_in(operand)


def map_values(
    operands: tuple[Operand, ...], change: Callable[[Value], Operand]
) -> tuple[Operand, ...]:
    """The operands with each value changed, tuples opened."""
    return tuple(
        change(o) if isinstance(o, Value) else map_values(o, change) if isinstance(o, tuple) else o
        for o in operands
    )


def key_of(thing: object) -> object:
    """A hashable key by which literals, attributes and types are compared.

    Unlike ``==`` it tells 1 from 1.0 and True, 0.0 from -0.0, NaN from -NaN, and finds each equal
    to itself.
    """
    kind = type(thing)
    if kind is int or kind is str:  # most of them
        return kind, thing
    if isinstance(thing, tuple):
        return tuple([key_of(each) for each in cast("tuple[object, ...]", thing)])
    if isinstance(thing, Dim):
        return Dim, thing.terms
    if isinstance(thing, float):
        return kind, float_text(thing)
    if isinstance(thing, complex):
        return kind, float_text(thing.real), float_text(thing.imag)
    if isinstance(thing, np.ndarray):
        array = cast("Array", thing)
        return array.dtype.str, array.dtype.name, array.shape, array.tobytes()
    return kind, thing


def float_text(value: float) -> str:
    """A float as text that `float` reads; with the sign of NaN, which ``repr`` leaves out."""
    return "-nan" if value != value and math.copysign(1.0, value) < 0 else repr(value)


def attrs_key(attrs: Mapping[str, object]) -> tuple[object, ...]:
    """`key_of` for all attributes of an instruction."""
    return tuple((name, key_of(attrs[name])) for name in sorted(attrs))


def verify(program: Program, known: set[Instruction] | None = None) -> None:
    """Check that every value is defined once, before its use, and has the type that its op infers.

    The types of the instructions in ``known`` are not checked again; the others join them. Raises
    `VerifyError` naming the instruction.
    """
    known = set() if known is None else known
    defined: set[Value] = set()
    for param in program.params:
        if param in defined:
            raise VerifyError(f"{program.name}: parameter {param.name!r} is defined twice")
        defined.add(param)
    if len({param.name for param in program.params}) != len(program.params):
        raise VerifyError(f"{program.name}: two parameters have one name")
    for number, instruction in enumerate(program.body):
        for value in instruction.values():
            if value not in defined:
                label = _label(program, number)
                raise VerifyError(f"{label} reads a value that is not defined before it: {value}")
        if instruction not in known:
            _verify_types(program, number, known)
        for result in instruction.results:
            if result in defined:
                what = f"a result of instruction {number} ({instruction.op.name})"
                raise VerifyError(f"{program.name}: {what} is defined twice")
            defined.add(result)
    for result in program.results:
        if result not in defined:
            raise VerifyError(f"{program.name} returns a value that is not defined: {result}")


def _label(program: Program, number: int) -> str:
    return f"{program.name}, instruction {number} ({program.body[number].op.name})"


def _verify_types(program: Program, number: int, known: set[Instruction]) -> None:
    instruction = program.body[number]
    try:
        expected = instruction.op.infer(instruction.operands, instruction.attrs)
    except (PtirError, IndexError, KeyError, TypeError, ValueError) as error:
        label = _label(program, number)
        raise VerifyError(f"{label}: its operands do not fit: {error}") from error
    found = tuple([result.type for result in instruction.results])
    if found != expected:
        label = _label(program, number)
        raise VerifyError(f"{label} has results {found}, its type rule says {expected}")
    for region in instruction.regions():
        verify(region, known)
    known.add(instruction)
