"""Analysis of a `dot_general`: memory layout of its operands, and the epilogue that its kernel
fuses.

Output: a `Contraction` (batched A·B with leading strides) and a `ProductEpilogue` (bias,
activation, factor, residual). Used by `product` and `unpacked_product`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeAlias

from gptrs.backends.faer.calls.base import Address, Binder, activation_of, is_stable
from gptrs.backends.memory_operands import Graph, Matrix, Members, Source, rows_of
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, Shape, product, same
from gptrs.ir.ops.elementwise import add, cast, mul
from gptrs.ir.program import Instruction, Operation, Value
from gptrs.ir.types import f32
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.lazy_dataclass import dataclass

_NARROW: dict[str, WeightType] = {"f16": "f16", "bf16": "bf16"}


@dataclass(frozen=True)
class Operand:
    """One operand of a product: a matrix for each position of the batch axes."""

    value: Value
    batch: Shape  # strides
    matrix: Matrix
    transposed: bool  # stored as [depth, rows or columns], not with the depth last


@dataclass(frozen=True)
class Contraction:
    """A batched matrix product A·B."""

    a: Operand
    b: Operand
    weights: WeightType
    stable: bool  # B is a parameter or a constant as a whole, so that it is packed once
    batch: Shape
    rows: DimLike
    depth: DimLike
    columns: DimLike

    @property
    def is_column(self) -> bool:
        """Whether B is known to have one column: neither operand is packed then."""
        return same(self.columns, 1)


Axes: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class OperandAxes:
    """The axes of one operand of a `dot_general`."""

    batch: Axes
    rest: Axes
    contracted: Axes

    @classmethod
    def of(cls, core: Instruction, name: str, rank: int) -> OperandAxes:
        batch: Axes = core.attrs[f"batch_{name}"]
        contracted: Axes = core.attrs[f"contract_{name}"]
        rest = tuple(i for i in range(rank) if i not in batch + contracted)
        return cls(batch, rest, contracted)

    def matrix(self, view: View, inner: Axes) -> Matrix | None:
        """The operand as a matrix whose rows run over the axes ``inner``."""
        outer = self.rest if inner is self.contracted else self.contracted
        axes = view.permuted([*outer, *inner])
        return rows_of(axes, len(inner))

    def strides(self, view: View) -> Shape:
        return tuple(view.strides[i] for i in self.batch)

    def count(self, shape: Shape, axes: Axes) -> DimLike:
        return product(tuple(shape[i] for i in axes))


def contraction(core: Instruction, graph: Graph, members: Members) -> Contraction | None:
    """The product alone, if kernels can read its operands in their layout. With one column, A may
    have either layout, and the column is contiguous."""
    lhs, rhs = core.operands
    if not isinstance(lhs, Value) or not isinstance(rhs, Value) or lhs.type.dtype is not f32:
        return None
    left, right = (
        OperandAxes.of(core, n, len(v.type.shape)) for n, v in (("lhs", lhs), ("rhs", rhs))
    )
    rows = left.count(lhs.type.shape, left.rest)
    columns = right.count(rhs.type.shape, right.rest)
    column = same(columns, 1)
    either_way = column and not same(rows, 1)
    a = _found(graph, lhs, left, (left.contracted, left.rest) if either_way else (left.contracted,))
    b = _found(graph, rhs, right, (right.contracted,) if column else (right.contracted, right.rest))
    if a is None or b is None:
        return None
    members.read(a.source)
    row = right.count(rhs.type.shape, right.rest if b.transposed else right.contracted)
    whole = same(product(b.source.view.shape), b.source.value.type.size)
    whole = whole and not right.batch and not column
    whole = whole and same(b.matrix.offset, 0) and same(b.matrix.stride, row)
    value, weights = widened_weight(b.source, graph, members) if whole else (b.source.value, "f32")
    members.read(b.source)
    return Contraction(
        a=Operand(a.source.value, left.strides(a.source.view), a.matrix, a.transposed),
        b=Operand(value, right.strides(b.source.view), b.matrix, b.transposed),
        weights=weights,
        stable=whole and is_stable(value, graph),
        batch=tuple(lhs.type.shape[i] for i in left.batch),
        rows=rows,
        depth=left.count(lhs.type.shape, left.contracted),
        columns=columns,
    )


class _Found(NamedTuple):
    """The stored value behind an operand, and its layout."""

    source: Source
    matrix: Matrix
    transposed: bool


def _found(graph: Graph, value: Value, side: OperandAxes, ways: tuple[Axes, ...]) -> _Found | None:
    """The stored value behind an operand, with rows along one of these axes."""

    def lies(view: View) -> tuple[Matrix, bool] | None:
        for inner in ways:
            if (matrix := side.matrix(view, inner)) is not None:
                return matrix, inner is not side.contracted
        return None

    source = graph.source(value, lambda view: lies(view) is not None)
    found = source and lies(source.view)
    return _Found(source, *found) if source and found else None


def widened_weight(b: Source, graph: Graph, members: Members) -> tuple[Value, WeightType]:
    """The 16-bit weight behind a cast to f32: the kernels widen it themselves."""
    narrow = widened(b.value, graph)
    if narrow is None or not is_stable(narrow, graph):
        return b.value, "f32"
    members.add(graph.maker[b.value])
    return narrow, _NARROW[narrow.type.dtype.name]


def widened(value: Value, graph: Graph) -> Value | None:
    """The value of f16 or bf16 that is cast to this one of f32."""
    maker = graph.maker.get(value)
    if maker is None or maker.op is not cast:
        return None
    (narrow,) = maker.values()
    return narrow if narrow.type.dtype.name in _NARROW else None


@dataclass(frozen=True)
class ProductEpilogue:
    """The epilogue act(y + bias) · factor + residual, each part optional."""

    bias: tuple[Value, DimLike] | None = None  # and the offset of its first element
    activation: str | None = None
    factor: tuple[Value, Matrix] | None = None
    residual: tuple[Value, Matrix] | None = None

    def words(self, b: Binder, first_row: int) -> dict[str, int | Address]:
        """The argument words of bias and residual, of a product whose rows begin with
        ``first_row``; and of the factor, if there is one, which only some kernels take."""
        words: dict[str, int | Address] = {"bias": 0, "residual": 0, "ldr": 0}
        if self.bias is not None:
            words["bias"] = b.address(*self.bias)
        matrices = ("factor", "ldf", self.factor), ("residual", "ldr", self.residual)
        for name, leading, given in matrices:
            if given is not None:
                value, matrix = given
                words[leading] = stride = b.size(matrix.stride)
                words[name] = b.address(value, b.size(matrix.offset) + first_row * stride)
        return words


def match_epilogue(
    core: Instruction,
    columns: DimLike,
    graph: Graph,
    members: Members,
    *,
    multiplies: bool = False,
) -> tuple[Value, ProductEpilogue]:
    """The instructions after a product, each the only use of the value before it, that the kernel
    fuses as its epilogue; and the value of the last one.

    ``multiplies``: whether the kernel takes a factor.
    """
    result, found = core.result, ProductEpilogue()
    axes = _column_axes(result, columns)
    factor = (_with_factor,) if multiplies else ()
    for extend in (_with_bias, _with_activation, *factor, _with_residual):
        reader = graph.only_reader(result)
        if reader is None or (more := extend(found, result, reader, axes, graph)) is None:
            continue
        found, source = more
        members.read(source)
        members.add(reader)
        result = reader.result
    return result, found


_More = tuple[ProductEpilogue, Source | None] | None
"""The epilogue with one part more, and the source of its operand."""


def _with_bias(
    found: ProductEpilogue, result: Value, reader: Instruction, columns: int, graph: Graph
) -> _More:
    other = _other_operand(result, reader, add)
    if other is None:
        return None

    def along_columns(view: View) -> bool:
        inner = len(view.shape) - columns
        still = all(same(s, 0) for s in view.strides[:inner])
        row = View(view.shape[inner:], view.strides[inner:])
        return still and rows_of(row, columns) is not None

    bias = graph.source(other, along_columns)
    if bias is None or not columns:  # of one column it is one number, and kernels read a row
        return None
    return replace(found, bias=(bias.value, bias.view.offset)), bias


def _with_activation(
    found: ProductEpilogue, result: Value, reader: Instruction, columns: int, graph: Graph
) -> _More:
    activation = activation_of(reader)
    if activation is None:
        return None
    return replace(found, activation=activation), None


def _with_factor(
    found: ProductEpilogue, result: Value, reader: Instruction, columns: int, graph: Graph
) -> _More:
    source = _matrix_beside(result, reader, mul, columns, graph)
    return None if source is None else (replace(found, factor=_stored(source, columns)), source)


def _with_residual(
    found: ProductEpilogue, result: Value, reader: Instruction, columns: int, graph: Graph
) -> _More:
    source = _matrix_beside(result, reader, add, columns, graph)
    return None if source is None else (replace(found, residual=_stored(source, columns)), source)


def _matrix_beside(
    value: Value, reader: Instruction, op: Operation, columns: int, graph: Graph
) -> Source | None:
    """The matrix that ``reader`` combines with ``value`` by ``op``, if kernels can read it."""
    other = _other_operand(value, reader, op)
    if other is None:
        return None
    return graph.source(other, lambda view: rows_of(view, columns) is not None)


def _stored(source: Source, columns: int) -> tuple[Value, Matrix]:
    matrix = rows_of(source.view, columns)
    assert matrix is not None
    return source.value, matrix


def _column_axes(result: Value, columns: DimLike) -> int:
    """The number of the result's last axes that form its columns."""
    count, total = 0, 1
    shape = result.type.shape
    while not same(total, columns):
        count += 1
        total = product(shape[len(shape) - count :])
    return count


def _other_operand(value: Value, reader: Instruction, op: Operation) -> Value | None:
    """The other operand, if ``reader`` combines an array with ``value`` by ``op``."""
    if reader.op is not op:
        return None
    others = [o for o in reader.operands if o is not value]
    return others[0] if len(others) == 1 and isinstance(others[0], Value) else None
