"""Transpose pushdown: networks whose channels come first are computed with channels last.

Convolutions, pooling and batch norm have their channels last; a function in torch's layout moves
them there and back around each, and what lies between (activations, sums of branches, borders,
joins) would see the layout in which nothing fuses with the kernels. One walk moves the transposes
that put channels first behind what works on each element at its own place; the next convolution's
transpose then undoes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.composite import mean, var
from gptrs.ir.ops.shape import broadcast_to, concat, pad, transpose
from gptrs.ir.ops.vision import batch_norm
from gptrs.ir.program import Instruction, Program, Value, map_values
from gptrs.ir.tensor import Tensor
from gptrs.ir.use_def import UseDef
from gptrs.passes.base import Context

_AT_ITS_PLACE = frozenset([OpKind.ELEMENTWISE, OpKind.ACTIVATION])


def push_transposes(program: Program, context: Context) -> Program:
    """Move transposes from channels last to channels first behind what may come before them."""
    walk = _Walk(program, context)
    for instruction in program.body:
        walk.visit(instruction)
    return walk.result() if walk.has_moved else program


class _Walk:
    """One walk through a program, which writes the new one."""

    def __init__(self, program: Program, context: Context) -> None:
        self._program = program
        self._context = context
        self._facts = UseDef(program)
        self._body: list[Instruction] = []
        self._renamed: dict[Value, Value] = {}
        self._last: dict[Value, Value] = {}
        """What has its channels first → the same with channels last."""
        self._native: set[Value] = set()
        """What has its channels last: results of kernels, and what was moved behind them."""
        self.has_moved = False

    def result(self) -> Program:
        """The new program."""
        results = [self._renamed.get(r, r) for r in self._program.results]
        return self._program.with_body(self._body, results)

    def visit(self, instruction: Instruction) -> None:
        """Write an instruction, or the same on operands that have their channels last."""
        self._facts.add(instruction)
        if instruction.op.kind is OpKind.WINDOW or instruction.op is batch_norm:
            self._native.update(instruction.results)
        elif instruction.op is transpose:
            (value,) = instruction.values()
            value = self._renamed.get(value, value)
            rank = value.type.rank
            if rank > 3 and instruction.attrs["perm"] == _first(rank) and value in self._native:
                self._last[instruction.result] = value
        elif (attrs := self._attrs(instruction)) is not None:
            spend = self._context.fuel.spend
            if spend(f"move a transpose behind {instruction.op.name}"):
                return self._move(instruction, attrs)
        self._body.append(instruction.reading(self._renamed))
        return None

    def _attrs(self, instruction: Instruction) -> dict[str, Any] | None:
        """The attributes on operands with channels last; None where it stays as it is."""
        if not any(value in self._last for value in instruction.values()):
            return None
        attrs, op = dict(instruction.attrs), instruction.op
        rank = instruction.results[0].type.rank
        if op.kind in _AT_ITS_PLACE:
            if len(instruction.results) == 1 and all(
                self._fits(v, rank) for v in instruction.values()
            ):
                return attrs
            return None
        if not all(value in self._last for value in instruction.values()):
            return None
        if op is broadcast_to:
            (value,) = instruction.values()
            attrs["shape"] = _to_last(attrs["shape"])
            return attrs if value.type.rank == rank else None
        if op is pad:
            for name in ("low", "high", "interior"):
                if attrs.get(name) is not None:
                    attrs[name] = _to_last(attrs[name])
            return attrs
        if op is concat:
            (value, *_) = instruction.values()
            attrs["axis"] = _first(rank)[attrs["axis"] % value.type.rank]
            return attrs
        return self._of_reduction(instruction, attrs)

    def _of_reduction(
        self, instruction: Instruction, attrs: dict[str, Any]
    ) -> dict[str, Any] | None:
        """The axes with channels last, where the others keep their order."""
        if not _reduces(instruction) or self._context.precise:
            return None
        (value, *_) = instruction.values()
        rank = value.type.rank
        axes: tuple[int, ...] | None = attrs.get("axes")
        if axes is None or len(instruction.results) != 1:
            return None
        over = {axis % rank for axis in axes}
        if not attrs.get("keepdims") and 1 not in over and over != set(range(2, rank)):
            return None
        attrs["axes"] = tuple(sorted(_first(rank)[axis] for axis in over))
        return attrs

    def _fits(self, value: Value, rank: int) -> bool:
        """Whether an operand has a form with channels last: it was transposed, is one number, or
        is computed from parameters, once."""
        if value in self._last:
            return value.type.rank == rank
        if all(isinstance(n, int) and n == 1 for n in value.type.shape):
            return True
        return value.type.rank == rank and (self._facts.is_stable(value) or self._is_of_few(value))

    def _is_of_few(self, value: Value) -> bool:
        """Whether it repeats elements that have one order only: moving their axes moves nothing."""
        maker = self._facts.made_by(value, broadcast_to)
        if maker is None:
            return False
        (operand,) = maker.values()
        extents = operand.type.shape[1 - value.type.rank :]
        return sum(not (isinstance(n, int) and n == 1) for n in extents) < 2

    def _move(self, instruction: Instruction, attrs: Mapping[str, Any]) -> None:
        recorder = Recorder(instruction.op.name, where=instruction.where)
        with interpreter(recorder):

            def given(value: Value) -> Any:
                if value in self._last:
                    return Tensor.of_value(self._last[value], recorder)
                known = Tensor.of_value(self._renamed.get(value, value), recorder)
                rank = value.type.rank
                return transpose(known, perm=_last(rank)) if rank > 3 else known

            op: Any = instruction.op
            made = op(*map_values(instruction.operands, given), **attrs)
            back = value = cast("Value", recorder.lift(made))
            if not _reduces(instruction) or attrs.get("keepdims"):
                back = cast("Value", recorder.lift(transpose(made, perm=_first(value.type.rank))))
                self._last[instruction.result] = value
                self._native.add(value)
        self._body += recorder.body
        self._renamed[instruction.result] = back
        self.has_moved = True


def _reduces(instruction: Instruction) -> bool:
    """Whether an instruction combines elements along ``axes``."""
    return instruction.op.kind is OpKind.REDUCTION or instruction.op in (mean, var)


def _first(rank: int) -> tuple[int, ...]:
    """The permutation from [N, spatial..., C] to [N, C, spatial...]: where each axis was."""
    return (0, rank - 1, *range(1, rank - 1))


def _last(rank: int) -> tuple[int, ...]:
    """The permutation from [N, C, spatial...] to [N, spatial..., C]."""
    return (0, *range(2, rank), 1)


def _to_last(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """What belongs to axes, in their order with channels last."""
    return tuple(values[axis] for axis in _last(len(values)))
