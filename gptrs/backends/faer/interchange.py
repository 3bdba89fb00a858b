"""Loop interchange: the loops whose iterations go element by element.

    for n in iterations:                      for e in elements:          parallel, in blocks
        for e in elements:             →          for n in iterations:    the state in registers
            state[e] = f(state[e], n)                 state[e] = f(state[e], n)

Input: a scan or while_loop; output: an `ElementLoop`, whose source
`gptrs.backends.faer.interchange_writer` writes, or None. The interchange is legal if

- each part of the state, and each y of a scan, has one shape, or is a single number;
- the next value of an element depends on the state at that element alone, on numbers of the state,
  on elements of xs, and on anything that is captured;
- numbers and the condition depend on numbers alone, so that the count of iterations is known
  before the elements are;
- nothing in the body fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from gptrs.backends.inlining import Inliner
from gptrs.backends.regions import Region, region_of
from gptrs.backends.views import Apply, Expression, Iota, Load, View, walk
from gptrs.ir.dims import DimLike, Shape, same, same_shape
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.control import scan, while_loop
from gptrs.ir.ops.elementwise import select
from gptrs.ir.program import Fails, Instruction, Program, Value
from gptrs.ir.types import Type
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property

MOST_OPERATIONS = 256  # of a body: a longer one takes a second to compile
_FEW = 64  # elements of a state that loops over regions keep in registers as well
_SHORT = 16  # elements of a row that are too few for a block
_KINDS = frozenset([OpKind.ELEMENTWISE, OpKind.VIEW, OpKind.FILL])


@dataclass(frozen=True)
class Role:
    """What a parameter of a region is: a number in its group of operands, and the operand."""

    group: str
    number: int
    operand: Value


@dataclass(frozen=True, eq=False)
class ElementLoop:
    """A loop that runs element by element."""

    instruction: Instruction
    nest: Region
    """The loops over elements. Its expression has no meaning."""
    roles: Mapping[Value, Role]
    """Of the parameters of the body and of the condition: state, xs or captured."""
    elements: Mapping[Value, Expression]
    """The results that have elements, and what else is computed for several uses."""
    numbers: Mapping[Value, Expression]
    """The same for single numbers."""

    @property
    def body(self) -> Program:
        return cast("Program", self.instruction.attrs["body"])

    @property
    def condition(self) -> Program | None:
        """Of a while_loop."""
        return self.instruction.attrs.get("condition")

    @property
    def length(self) -> DimLike | None:
        """The iterations of a scan."""
        return self.instruction.attrs.get("length")

    @property
    def state_count(self) -> int:
        return len(cast("tuple[Any, ...]", self.instruction.operands[0]))

    @cached_property
    def streams(self) -> bool:
        """Whether iterations read xs or write ys element by element."""
        several = [r for r in self.body.results[self.state_count :] if not is_number(r.type)]
        read = (p for e in self.elements.values() for p in walk(e) if isinstance(p, Load))
        roles = [self.roles.get(load.value) for load in read if not _is_fixed(load.view)]
        return bool(several) or any(role and role.group == "xs" for role in roles)

    @cached_property
    def varying(self) -> frozenset[int]:
        """The numbers of the state that elements depend on, directly or by other numbers."""
        found = self._numbers_in(*self.elements.values())
        while True:
            results = [self.body.results[k] for k in found]
            more = found | self._numbers_in(*[self.numbers[r] for r in results])
            if more == found:
                return found
            found = more

    def _numbers_in(self, *expressions: Expression) -> frozenset[int]:
        found, seen, pending = set[int](), set[Value](), [*expressions]
        while pending:
            for part in walk(pending.pop()):
                if not isinstance(part, Load) or part.value in seen:
                    continue
                seen.add(part.value)
                role = self.roles.get(part.value)
                if role and role.group == "state" and is_number(part.value.type):
                    found.add(role.number)
                elif part.value in self.numbers:
                    pending.append(self.numbers[part.value])
        return frozenset(found)

    @property
    def repeats(self) -> bool:
        """Whether each iteration computes the same function of the state at an element: equal
        states have equal successors."""
        read = (p for e in self.elements.values() for p in walk(e) if isinstance(p, Load))
        roles = [self.roles.get(load.value) for load in read]
        moving = any(role and role.group == "xs" for role in roles)
        params = self.body.params
        stays = all(self.body.results[k] is params[k] for k in self.varying)
        return not moving and not self.streams and stays


def is_number(type: Type) -> bool:
    """Whether a value is a single element."""
    return same(type.size, 1)


def element_loop(
    instruction: Instruction, fusible: Callable[[Instruction], bool]
) -> ElementLoop | None:
    """The loop of ``instruction``, if it may run element by element."""
    if instruction.op is not scan and instruction.op is not while_loop:
        return None
    roles = _roles(instruction)
    body: Program = instruction.attrs["body"]
    results = [*body.results]
    shaped = [value for value in results if not is_number(value.type)]
    if roles is None or not shaped or not _pays(shaped[0].type):
        return None
    shape = shaped[0].type.shape
    made = _inlined(body, fusible)
    condition = instruction.attrs.get("condition")
    asked = {} if condition is None else _inlined(condition, fusible)
    if made is None or asked is None:
        return None
    values = {**made, **asked}
    for value in (*results, *(() if condition is None else condition.results)):
        values.setdefault(value, Load(value, View.contiguous(value.type.shape)))
    elements = {v: e for v, e in values.items() if not is_number(v.type)}
    if not all(same_shape(value.type.shape, shape) for value in elements):
        return None
    numbers = {v: _alone(v, e) for v, e in values.items() if is_number(v.type)}
    nest = _nest(elements)
    merged = dict(zip(elements, cast("Apply", nest.expression).operands, strict=True))
    loop = ElementLoop(instruction, nest, roles, merged, numbers)
    return loop if _is_legal(loop) else None


def _roles(instruction: Instruction) -> dict[Value, Role] | None:
    names = ("state", "xs", "captured") if instruction.op is scan else ("state", "captured")
    groups = cast("Sequence[tuple[Any, ...]]", instruction.operands)
    given = [
        (name, number, operand)
        for name, group in zip(names, groups, strict=False)
        for number, operand in enumerate(group)
    ]
    if not all(isinstance(operand, Value) for _, _, operand in given):
        return None
    return {
        param: Role(*role)
        for region in instruction.regions()
        for param, role in zip(region.params, given, strict=True)
    }


def _pays(type: Type) -> bool:
    """Whether there are more elements than a loop over regions has in registers."""
    return not isinstance(type.size, int) or type.size > _FEW


def _inlined(
    program: Program, fusible: Callable[[Instruction], bool]
) -> dict[Value, Expression] | None:
    """The values of a region that are computed once, as expressions of each other and of the
    parameters."""
    if len(program.body) > MOST_OPERATIONS:
        return None
    for instruction in program.body:
        if instruction.op.kind not in _KINDS or not fusible(instruction):
            return None
        if instruction.fails is not Fails.NEVER:
            return None
    fused = {i.result: i for i in program.body}
    stored = {result for result in program.results if result in fused}
    inliner = Inliner(fused, stored)
    while wanted := inliner.build():
        stored |= wanted
    return {value: inliner.made[value].expression for value in fused if value in stored}


def _alone(value: Value, expression: Expression) -> Expression:
    return region_of(value, expression, frozenset()).expression


def _nest(elements: Mapping[Value, Expression]) -> Region:
    """Loops over the axes of all ``elements``, which are the operands of its expression."""
    value = next(iter(elements))
    together = Apply(select, value.type.dtype, tuple(elements.values()), value)
    return region_of(value, together, frozenset())


def _is_legal(loop: ElementLoop) -> bool:
    inner = loop.nest.inner
    if loop.nest.rows and isinstance(inner[-1], int) and inner[-1] < _SHORT:
        return False
    for expression in loop.elements.values():
        for part in walk(expression):
            if not isinstance(part, Load) or is_number(part.value.type):
                continue
            role = loop.roles.get(part.value)
            if (role is None or role.group == "state") and not _is_whole(
                part.view, loop.nest.output
            ):
                return False
    for expression in loop.numbers.values():
        for part in walk(expression):
            if isinstance(part, Load) and not is_number(part.value.type):
                role = loop.roles.get(part.value)
                if role is None or role.group == "state":
                    return False
            if isinstance(part, Iota) and part.view.shape:
                return False
    return True


def _is_whole(view: View, whole: View) -> bool:
    """Whether a view has each element in its place."""
    return same(view.offset, 0) and _same_strides(view.strides, whole.strides)


def _same_strides(strides: Shape, others: Shape) -> bool:
    return all(same(a, b) for a, b in zip(strides, others, strict=True))


def _is_fixed(view: View) -> bool:
    return all(same(stride, 0) for stride in view.strides)
