"""Hoisting of parameter-only computations: they become derived parameters, computed once per model.

The last pass. A `DerivedParam` carries its definition, a small program over parameter slots;
`gptrs.jit.derived` evaluates it once and caches the result with its parameters. Regions are left
alone: their parameters must stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gptrs.ir.dims import Dim
from gptrs.ir.ops.elementwise import cast, stop_gradient
from gptrs.ir.ops.index import take
from gptrs.ir.ops.shape import broadcast_to, concat, pad, reshape, tile
from gptrs.ir.program import (
    DerivedParam,
    Instruction,
    Param,
    Program,
    Value,
    map_values,
)
from gptrs.ir.sizes import is_symbolic
from gptrs.passes.base import Context
from gptrs.passes.dce import eliminate_dead_code

# Ops whose result is larger than the operand: they stay, and the operand is derived.
_EXPANDING = frozenset({broadcast_to, cast, tile, pad, concat, take})
_VIEWS = frozenset({reshape, stop_gradient})
_SMALL = 2**20  # bytes


def hoist_parameters(program: Program, context: Context) -> Program:
    """Replace values that depend on parameters alone by derived parameters.

    The bytes held do not grow: a derived parameter must be no larger than the parameters that only
    it still reads, whose elements can then be released. Small vectors are widened nevertheless: a
    step for each bias in each call takes longer than reading a wider bias.
    """
    if context.in_region:
        return program
    slices = _Slices(program)
    derived: dict[Value, DerivedParam] = {}
    taken = {param.name for param in program.params}
    for group in slices.groups():
        if slices.fits(group) and context.fuel.spend(f"hoist {slices.maker[group[0]].op.name}"):
            derived |= {value: slices.derive(value, taken) for value in group}
    if not derived:
        return program
    params = (*program.params, *derived.values())
    body = tuple(_reading(instruction, derived) for instruction in program.body)
    results = tuple(derived.get(result, result) for result in program.results)
    return eliminate_dead_code(Program(program.name, params, body, results), context)


def _reading(instruction: Instruction, derived: Mapping[Value, DerivedParam]) -> Instruction:
    """The instruction with derived operands, which are parameters in its definition too."""
    definition: Program | None = instruction.attrs.get("definition")
    if definition is None or derived.keys().isdisjoint(instruction.values()):
        return instruction.reading(derived)
    roles: dict[Value, Param] = {}
    for param, value in zip(definition.params, instruction.values(), strict=True):
        if value in derived:
            roles[param] = Param(param.type, param.name, role="parameter")
    params = tuple(roles.get(param, param) for param in definition.params)
    body = tuple(inner.reading(roles) for inner in definition.body)
    results = tuple(roles.get(result, result) for result in definition.results)
    attrs = {**instruction.attrs, "definition": Program(definition.name, params, body, results)}
    return replace(instruction.reading(derived), attrs=attrs)


class _Slices:
    """The parts of a program that depend on parameters alone."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.maker: dict[Value, Instruction] = {}
        self._fixed: dict[Value, frozenset[Param]] = {}  # the parameters that a value depends on
        for param in program.params:
            if param.role == "parameter":
                self._fixed[param] = frozenset((param,))
        for instruction in program.body:
            sources = self._sources(instruction)
            for result in instruction.results:
                self.maker[result] = instruction
                if sources is not None:
                    self._fixed[result] = sources
        self._readers = self._count_readers()

    def _count_readers(self) -> Counter[Value]:
        """The number of uses of each value by live instructions and as a result."""
        readers = Counter(self._program.results)
        for instruction in reversed(self._program.body):
            live = any(readers[result] for result in instruction.results)
            if live or instruction.has_effects:
                readers.update(instruction.values())
        return readers

    def _sources(self, instruction: Instruction) -> frozenset[Param] | None:
        values = list(instruction.values())
        if not all(value in self._fixed for value in values) or is_symbolic(
            (instruction.operands, *instruction.attrs.values())
        ):
            return None
        if instruction.has_effects:
            return None
        return frozenset[Param]().union(*(self._fixed[value] for value in values))

    def groups(self) -> list[list[Value]]:
        """The values to derive, in groups that share parameters."""
        groups: list[tuple[set[Param], list[Value]]] = []
        for value in self._frontier():
            sources, members = set(self._fixed[value]), [value]
            apart: list[tuple[set[Param], list[Value]]] = []
            for other in groups:
                if sources.isdisjoint(other[0]):
                    apart.append(other)
                else:
                    sources |= other[0]
                    members = other[1] + members
            groups = [*apart, (sources, members)]
        return [members for _, members in groups]

    def _frontier(self) -> list[Value]:
        """Parameter-only values with a use that depends on more than parameters."""
        found: dict[Value, None] = {}
        read = {v: None for i in self._program.body if not self._is_fixed(i) for v in i.values()}
        for value in read | dict.fromkeys(self._program.results):
            while (smaller := self._expanded(value)) is not None:
                value = smaller
            if value in self.maker and self._fixed.get(value) and not self._is_view(value):
                found[value] = None
        return list(found)

    def _expanded(self, value: Value) -> Value | None:
        """The smaller operand of ``value``, if ``value`` is a parameter-only expansion
        (`_EXPANDING`) of it."""
        maker = self.maker.get(value) if value in self._fixed else None
        if maker is None or maker.op not in _EXPANDING or self._is_cast_vector(value):
            return None
        operands = list(maker.values())
        return operands[0] if len(operands) == 1 and _bytes((value,)) > _bytes(operands) else None

    def _is_cast_vector(self, value: Value) -> bool:
        """Whether ``value`` is a small vector cast to another dtype, such as a bias of 16 bits."""
        maker, is_vector = self.maker.get(value), len(value.type.shape) == 1
        is_cast = maker is not None and maker.op is cast
        return is_cast and is_vector and _bytes((value,)) <= _SMALL

    def _is_fixed(self, instruction: Instruction) -> bool:
        return instruction.results[0] in self._fixed

    def _is_view(self, value: Value) -> bool:
        while (maker := self.maker.get(value)) is not None and maker.op in _VIEWS:
            (value,) = maker.values()
        return value not in self.maker

    def fits(self, group: Sequence[Value]) -> bool:
        """Whether deriving these values needs no more bytes than before, small vectors not
        counted."""
        counted = [value for value in group if not self._is_cast_vector(value)]
        return _bytes(counted) <= _bytes(self._released(group))

    def _released(self, group: Sequence[Value]) -> list[Value]:
        """The parameters without a use once these values are parameters."""
        left, given = Counter[Value](), set(group)  # readers that a value has no more
        gone: set[Instruction] = set()
        found: list[Value] = []
        waiting = [self.maker[value] for value in group]
        while waiting:
            instruction = waiting.pop()
            needed = (r not in given and left[r] < self._readers[r] for r in instruction.results)
            if instruction in gone or any(needed):
                continue
            gone.add(instruction)
            for value in instruction.values():
                left[value] += 1
                if left[value] == self._readers[value] and value not in given:
                    if value in self.maker:
                        waiting.append(self.maker[value])
                    else:
                        found.append(value)
        return found

    def derive(self, value: Value, taken: set[str]) -> DerivedParam:
        """The derived parameter that replaces ``value``."""
        needed: set[Instruction] = set()
        waiting = [value]
        while waiting:
            maker = self.maker.get(waiting.pop())
            if maker is not None and maker not in needed:
                needed.add(maker)
                waiting += maker.values()
        sources = sorted(self._fixed[value], key=lambda param: param.name)
        values: dict[Value, Value] = {p: Param(p.type, p.name, role="parameter") for p in sources}
        params = tuple(v for v in values.values() if isinstance(v, Param))
        body: list[Instruction] = []
        for instruction in self._program.body:
            if instruction in needed:
                results = tuple(Value(r.type, r.origin) for r in instruction.results)
                operands = map_values(instruction.operands, lambda v: values[v])
                body.append(replace(instruction, operands=operands, results=results))
                values.update(zip(instruction.results, results, strict=True))
        largest = max(sources, key=lambda source: _bytes((source,)))
        name = next(n for n in _names(f"{largest.name}_derived") if n not in taken)
        taken.add(name)
        definition = Program(name, params, tuple(body), (values[value],))
        return DerivedParam(value.type, name, definition, tuple(sources))


def _names(base: str) -> Iterable[str]:
    yield base
    number = 1
    while True:
        yield f"{base}_{number}"
        number += 1


def _bytes(values: Iterable[Value]) -> int:
    total = 0
    for value in values:
        size = value.type.size
        assert not isinstance(size, Dim)
        total += size * value.type.dtype.numpy.itemsize
    return total
