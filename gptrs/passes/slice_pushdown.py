"""Slice pushdown: compute only the rows that are read.

GPT-2 asked for the logits of the last token computes the last layer's projection and MLP for that
token alone. A backward pass from the results finds for each value the one box (contiguous slice)
that all its uses read. A forward pass computes that box where the op works row by row (elementwise,
norms, softmax, matmul, attention, transpose, reshape); slices move up to where rows are mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from gptrs.ir.dims import DimLike, Shape, same, same_shape
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.ops.shape import slice_
from gptrs.ir.program import Attrs, Instruction, Program, Value, map_values
from gptrs.ir.tensor import Tensor
from gptrs.passes.base import Context

_EACH = frozenset(["gelu", "gelu_tanh", "gelu_quick", "silu", "sigmoid", "relu", "relu6"])
"""Elementwise composites."""
_NORMS = frozenset(["layer_norm", "rms_norm"])
_ROUNDED = frozenset([*_NORMS, "softmax", "linear", "matmul", "dot_general", "attention"])
"""Ops with sums: a backend may round few rows differently from many."""


class Box(NamedTuple):
    """A contiguous part of an array: start and size along each axis."""

    starts: Shape
    sizes: Shape

    def equals(self, other: Box) -> bool:
        return same_shape(self.starts, other.starts) and same_shape(self.sizes, other.sizes)

    def is_whole(self, axis: int, shape: Shape) -> bool:
        """Whether the box spans all of an axis."""
        return same(self.sizes[axis], shape[axis])

    def covers(self, axes: range, shape: Shape) -> bool:
        """Whether the box spans all of some axes."""
        return all(self.is_whole(axis, shape) for axis in axes)

    def along(self, axes: Mapping[int, int], shape: Shape) -> Box | None:
        """The box of another array with this box along its ``axes``, which maps axes of the other
        array to axes of this one, and whole along its other axes; None where that is the whole
        array."""
        starts: list[DimLike] = [0] * len(shape)
        sizes: list[DimLike] = [*shape]
        for theirs, ours in axes.items():
            if same(self.sizes[ours], 0):
                sizes[theirs] = 0
            elif not same(shape[theirs], 1):  # which is broadcast, or all of it is taken
                starts[theirs], sizes[theirs] = self.starts[ours], self.sizes[ours]
        box = Box(tuple(starts), tuple(sizes))
        return None if same_shape(box.sizes, shape) else box


class _Part(NamedTuple):
    """The computation of a box of a result: boxes of the operands, and attributes."""

    operands: dict[Value, Box | None]
    attrs: Attrs


_Rule: TypeAlias = Callable[[Instruction, Box], dict[Value, Box | None] | None]


def push_slices(program: Program, context: Context) -> Program:
    """Restrict instructions to the rows that are read, where all uses read the same rows."""
    wanted, parts = _demands(program, context)
    return _narrowed(program, wanted, parts) if parts else program


def _demands(
    program: Program, context: Context
) -> tuple[dict[Value, Box | None], dict[Instruction, _Part]]:
    """The box that is read of each value (None: all of it), and the instructions that compute a
    box."""
    wanted: dict[Value, Box | None] = dict.fromkeys(program.results)
    parts: dict[Instruction, _Part] = {}

    def want(value: Value, box: Box | None) -> None:
        known = wanted.setdefault(value, box)
        if known is not None and (box is None or not known.equals(box)):
            wanted[value] = None

    for instruction in reversed(program.body):
        if not any(result in wanted for result in instruction.results):
            continue
        if (whole := _slice_of(instruction)) is not None:
            wanted[instruction.result] = None
            want(*whole)
            continue
        part = None
        if len(instruction.results) == 1 and (box := wanted[instruction.result]) is not None:
            part = _part(instruction, box, context)
        if part is None:
            wanted.update(dict.fromkeys(instruction.results))
        else:
            parts[instruction] = part
        for value in instruction.values():
            want(value, None if part is None else part.operands[value])
    return wanted, parts


def _slice_of(instruction: Instruction) -> tuple[Value, Box] | None:
    """The operand and the box of a slice of stride 1."""
    attrs = instruction.attrs
    if instruction.op is not OPS["slice"] or any(step != 1 for step in attrs["strides"]):
        return None
    (value,) = instruction.values()
    return value, Box(tuple(attrs["starts"]), tuple(attrs["sizes"]))


def _narrowed(
    program: Program, wanted: Mapping[Value, Box | None], parts: Mapping[Instruction, _Part]
) -> Program:
    body: list[Instruction] = []
    made: dict[Value, Value] = {}  # the computed box of a value
    renamed: dict[Value, Value] = {}
    for instruction in program.body:
        if not any(result in wanted for result in instruction.results):
            continue  # unused; its operands may not be computed any more
        taken = _slice_of(instruction)
        if taken is not None and taken[0] in made:
            renamed[instruction.result] = made[taken[0]]
        elif instruction in parts:
            recorder = Recorder(instruction.op.name, where=instruction.where)
            with interpreter(recorder):
                result = _compute(instruction, parts[instruction], made, renamed, recorder)
                made[instruction.result] = cast("Value", recorder.lift(result))
            body += recorder.body
        else:
            body.append(instruction.reading(renamed))
    return program.with_body(body, [renamed.get(r, r) for r in program.results])


def _compute(
    instruction: Instruction,
    part: _Part,
    made: Mapping[Value, Value],
    renamed: Mapping[Value, Value],
    recorder: Recorder,
) -> Any:
    def given(value: Value) -> Any:
        if value in made:
            return Tensor.of_value(made[value], recorder)
        known = Tensor.of_value(renamed.get(value, value), recorder)
        if (box := part.operands[value]) is None:
            return known
        return slice_(known, starts=box.starts, sizes=box.sizes, strides=(1,) * len(box.sizes))

    op: Any = instruction.op
    return op(*map_values(instruction.operands, given), **part.attrs)


def _part(instruction: Instruction, box: Box, context: Context) -> _Part | None:
    name = instruction.op.name
    if context.precise and name in _ROUNDED:
        return None
    each = name in _EACH or getattr(instruction.op, "elementwise", False)
    rule = _elementwise if each else _RULES.get(name)
    operands = None if rule is None else rule(instruction, box)
    if operands is None or not any(operands.values()):
        return None
    attrs = dict(instruction.attrs)
    if name == "reshape":
        attrs["shape"] = box.sizes
    return _Part(operands, attrs) if context.fuel.spend(f"narrow {name}") else None


def _elementwise(instruction: Instruction, box: Box) -> dict[Value, Box | None]:
    rank = len(instruction.result.type.shape)
    found: dict[Value, Box | None] = {}
    for value in instruction.values():
        missing = rank - len(value.type.shape)
        axes = {axis: axis + missing for axis in range(len(value.type.shape))}
        found[value] = box.along(axes, value.type.shape)
    return found


def _first(instruction: Instruction, box: Box | None) -> dict[Value, Box | None] | None:
    """A box of the first operand and the whole of the others; None if the first occurs twice."""
    first, *others = instruction.values()
    return None if first in others else {first: box, **dict.fromkeys(others)}


def _rows(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """Ops that mix the elements of the last axis only."""
    x, shape = next(instruction.values()), instruction.result.type.shape
    last = len(shape) - 1
    if last < 0 or not box.is_whole(last, shape):
        return None
    return _first(instruction, box.along({a: a for a in range(last)}, x.type.shape))


def _matmul(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """Rows of x give rows of the result; batch axes are those of both operands."""
    x, y = instruction.values()
    shape, depth = instruction.result.type.shape, len(x.type.shape)
    last = len(shape) - 1
    if min(depth, len(y.type.shape)) < 2 or not box.is_whole(last, shape):
        return None
    if len(y.type.shape) == 2:
        return _first(instruction, box.along({a: a for a in range(last)}, x.type.shape))
    if not box.covers(range(last - 1), shape):
        return None
    return _first(instruction, box.along({depth - 2: last - 1}, x.type.shape))


def _softmax(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    (x,) = instruction.values()
    shape = x.type.shape
    if not shape or not box.is_whole(instruction.attrs["axis"] % len(shape), shape):
        return None
    return {x: box}


def _dot_general(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """Rows of the left operand give rows of the result."""
    lhs, attrs, shape = next(instruction.values()), instruction.attrs, instruction.result.type.shape
    rank, batch = len(lhs.type.shape), len(attrs["batch_lhs"])
    mixed = {axis % rank for axis in (*attrs["batch_lhs"], *attrs["contract_lhs"])}
    rest = [axis for axis in range(rank) if axis not in mixed]
    after = range(batch + len(rest), len(shape))
    if not box.covers(range(batch), shape) or not box.covers(after, shape):
        return None
    axes = {axis: batch + number for number, axis in enumerate(rest)}
    return _first(instruction, box.along(axes, lhs.type.shape))


def _attention(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """The last query has the position of the last key, so the box of queries has to end with it."""
    shape, attrs = instruction.result.type.shape, instruction.attrs
    if not all(box.is_whole(axis, shape) for axis in (0, 1, 3)):
        return None
    placed = attrs["causal"] or attrs["window"] is not None
    if placed and not same(box.starts[2] + box.sizes[2], shape[2]):
        return None
    return _first(instruction, box)


def _transpose(instruction: Instruction, box: Box) -> dict[Value, Box | None]:
    (x,) = instruction.values()
    axes = {axis: at for at, axis in enumerate(instruction.attrs["perm"])}
    return {x: box.along(axes, x.type.shape)}


def _reshape(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """Leading axes that the reshape keeps are rows."""
    (x,) = instruction.values()
    before, after = x.type.shape, instruction.result.type.shape
    kept = 0
    while kept < min(len(before), len(after)) and same(before[kept], after[kept]):
        kept += 1
    if not box.covers(range(kept, len(after)), after):
        return None
    return {x: box.along({axis: axis for axis in range(kept)}, before)}


_RULES: dict[str, _Rule] = {
    **dict.fromkeys(_NORMS | {"linear"}, _rows),
    "matmul": _matmul,
    "softmax": _softmax,
    "dot_general": _dot_general,
    "attention": _attention,
    "transpose": _transpose,
    "reshape": _reshape,
}
