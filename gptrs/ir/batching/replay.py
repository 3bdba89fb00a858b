"""`Replay`: a program that was traced on one example, run over a batch of examples.

An operand that differs by example is `Mapped`: a tensor with the batch axis in front. An
instruction without such operands runs once, for all examples. Another one runs by its op's rule:
elementwise ops as they are (their operands have one shape, which a batch axis in front leaves
aligned), composites by a rule or their definition, primitives by their rule (`Op.batching`).

With a ``mask`` the results of some examples are not used (a branch not taken, a loop that is done).
These must not fail: operands that an op may fail at are replaced there (`Operation.harmless`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gptrs.errors import ArgumentError, PtirError
from gptrs.ir.batching.axes import spread
from gptrs.ir.composites import Composite
from gptrs.ir.dims import DimLike, same
from gptrs.ir.dispatch import current
from gptrs.ir.interpreters import EAGER, Recorder
from gptrs.ir.kinds import OpKind
from gptrs.ir.op import Op
from gptrs.ir.operands import map_operand, several
from gptrs.ir.ops.control import while_loop
from gptrs.ir.ops.elementwise import select
from gptrs.ir.ops.shape import reshape
from gptrs.ir.program import Attrs, Fails, Instruction, Operation, Program, Value
from gptrs.ir.tensor import Tensor
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Mapped:
    """A value that differs by example: a tensor with the batch axis in front."""

    tensor: Tensor


Result = Mapped | Tensor


@dataclass(frozen=True)
class Replay:
    """A batch of ``size`` examples; ``mask`` (i1 [size]) says whose results are used, None: all."""

    size: DimLike
    mask: Tensor | None = None

    def run(self, program: Program, arguments: Sequence[Result]) -> list[Result]:
        """The results of ``program``; those that are the same for all examples are not `Mapped`."""
        values: dict[Value, Result] = dict(zip(program.params, arguments, strict=True))
        scope = current()
        where = scope.where if isinstance(scope, Recorder) else None
        for i in program.body:
            operands = tuple(_replaced(operand, values) for operand in i.operands)
            if isinstance(scope, Recorder):
                scope.where = i.where or where
            try:
                found = self._apply(i, operands)
            except PtirError as error:
                error.where = i.where or error.where
                raise
            finally:
                if isinstance(scope, Recorder):
                    scope.where = where
            values.update(zip(i.results, found, strict=True))
        return [values[result] for result in program.results]

    def _apply(self, i: Instruction, operands: tuple[Any, ...]) -> Sequence[Result]:
        op, masked = cast("Op[..., Any]", i.op), self.mask is not None and cares(i)
        if not masked and not _has_mapped(operands):
            return call(op, operands, i.attrs)
        if (has_regions(i) or op.kind is OpKind.EFFECT) and op.batching_rule is not None:
            return op.batching_rule(self, i, operands)
        if masked:
            operands = self._harmless(op, operands)
        plain = tuple(map_operand(_tensor, operand) for operand in operands)
        if op.elementwise or op.kind is OpKind.ACTIVATION:
            return [Mapped(tensor) for tensor in call(op, plain, i.attrs)]
        found: object = NotImplemented
        if op.batching_rule is not None and not (masked and isinstance(op, Composite)):
            mapped = tuple(map_operand(_is_mapped, operand) for operand in operands)
            found = op.batching_rule(self.size, mapped, *plain, **i.attrs)
        if found is not NotImplemented:
            return [Mapped(tensor) for tensor in several(found)]
        if isinstance(op, Composite):
            return self.run(op.definition(i.operands, i.attrs), list(results_in(operands)))
        raise ArgumentError(
            f"{op.name} has no batching rule, so that it cannot be mapped",
            fix=f"give it one: @{op.name}.batching above a def",
        )

    def _harmless(self, op: Op[..., Any], operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """The operands of a primitive that may fail, changed where an example is not active."""
        changed: list[Any] = []
        for name, operand in zip(op.operand_names, operands, strict=True):
            if isinstance(operand, Tensor | Mapped) and name in op.harmless:
                x = self.spread(operand)
                operand = Mapped(select(self.active(x), x, op.harmless[name]))
            changed.append(operand)
        return tuple(changed)

    def spread(self, x: Result) -> Tensor:
        """``x`` with the batch axis, which it gets if it has none."""
        return x.tensor if isinstance(x, Mapped) else spread(x, self.size)

    def active(self, like: Tensor) -> Tensor:
        """The mask in the rank of ``like``, a tensor with the batch axis."""
        assert self.mask is not None
        return per_example(self.mask, like)


def per_example(flags: Tensor, like: Tensor) -> Tensor:
    """One i1 for each example, in a shape that broadcasts to ``like``."""
    return (
        flags if like.ndim == 1 else reshape(flags, shape=(flags.shape[0], *[1] * (like.ndim - 1)))
    )


def call(op: Operation, operands: tuple[Any, ...], attrs: Attrs) -> tuple[Tensor, ...]:
    """The results of ``op`` by the interpreter of this context."""
    return several((current() or EAGER).apply(op, operands, attrs))


def has_regions(i: Instruction) -> bool:
    """Whether an instruction has programs among its attributes."""
    return any(True for _ in i.regions())


def cares(i: Instruction | Program) -> bool:
    """Whether it matters that it runs for an example that does not need it: it may fail, or not
    end."""
    if isinstance(i, Program):
        return any(map(cares, i.body))
    return i.fails is not Fails.NEVER or i.op is while_loop or any(map(cares, i.regions()))


def maskable(program: Program) -> bool:
    """Whether the failures of ``program`` can be masked: see `Operation.harmless`."""
    return all(map(_maskable, program.body))


def _maskable(i: Instruction) -> bool:
    if has_regions(i):
        return all(map(maskable, i.regions()))
    if i.fails is Fails.NEVER:
        return True
    op = cast("Op[..., Any]", i.op)
    if isinstance(op, Composite):
        return maskable(op.definition(i.operands, i.attrs))
    named = dict(zip(op.operand_names, i.operands, strict=True))
    types = [value.type for value in (*i.values(), *i.results)]
    empty = any(same(extent, 0) for type in types for extent in type.shape)
    known = i.fails is Fails.AT_ELEMENTS and bool(op.harmless) and not empty
    return known and all(isinstance(named[name], Value) for name in op.harmless)


def _replaced(operand: Any, values: Mapping[Value, Result]) -> Any:
    if isinstance(operand, tuple):
        return tuple([_replaced(part, values) for part in operand])  # pyright: ignore[reportUnknownVariableType]
    return values[operand] if isinstance(operand, Value) else operand


def results_in(operands: tuple[Any, ...]) -> Iterator[Result]:
    """The tensors among operands, mapped or not, tuples opened."""
    for operand in operands:
        if isinstance(operand, tuple):
            yield from results_in(cast("tuple[Any, ...]", operand))
        elif isinstance(operand, Tensor | Mapped):
            yield operand


def _has_mapped(operands: tuple[Any, ...]) -> bool:
    return any(map(_is_mapped, results_in(operands)))


def _is_mapped(operand: Any) -> bool:
    return isinstance(operand, Mapped)


def _tensor(operand: Any) -> Any:
    return operand.tensor if isinstance(operand, Mapped) else operand
