"""The matrix product, with what follows it: bias, activation, residual."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product as cartesian

from gptrs.backends.faer.calls.base import PIECES, Address, Binder, Call, Panels, is_stable, kernel
from gptrs.backends.faer.graph import Graph, Matrix, Members, Source, rows_of
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, Shape, product, same
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import f32
from gptrs.kernels.coded import CODED, DEPTH_STEP
from gptrs.kernels.compile import Kernel
from gptrs.kernels.isa import Isa
from gptrs.kernels.math import ACTIVATIONS
from gptrs.kernels.matmul import MATMUL_WORDS, Product
from gptrs.kernels.matmul_rows import row_kernel, row_kernel_limit
from gptrs.kernels.matmul_tiles import Blocking, blocking, tile_extent, tile_kernel
from gptrs.kernels.matmul_weights import WeightType, weight_bytes
from gptrs.kernels.packing import (
    pack_columns_kernel,
    pack_rows_kernel,
    panel_count,
)

_MOST_PRODUCTS = 1024  # of a batch, each a step or three
_FLOPS_PER_NS, _BYTES_PER_NS = 60.0, 10.0
_NARROW: dict[str, WeightType] = {"f16": "f16", "bf16": "bf16"}


@dataclass(frozen=True)
class Operand:
    """One side of a product: a matrix for each position of the batch axes."""

    value: Value
    batch: Shape  # strides
    matrix: Matrix


@dataclass(frozen=True, eq=False)
class MatrixProduct(Call):
    """act(A·B + bias) + residual, for each position of batch axes."""

    target = "gpt_rs.faer.matmul.f32.v1"

    a: Operand
    b: Operand
    transposed: bool  # B lies as [depth, columns] rather than [columns, depth]
    weights: WeightType
    stable: bool  # B is a parameter or a constant as a whole, so that it is packed once
    batch: Shape
    rows: DimLike
    depth: DimLike
    columns: DimLike
    bias: tuple[Value, DimLike] | None = None  # and the offset of its first element
    activation: str | None = None
    residual: tuple[Value, Matrix] | None = None

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> MatrixProduct | None:
        if core.op.name != "dot_general" or core.result.type.dtype is not f32:
            return None
        members = Members()
        plain = _plain(core, graph, members)
        members.add(core)
        return None if plain is None else _with_epilogue(plain, graph, members)

    @classmethod
    def reads(cls, core: Instruction, graph: Graph) -> bool:
        """Whether kernels can read the operands of a product where they are."""
        return _plain(core, graph, Members()) is not None

    def _product(self, coded: bool) -> Product:
        return Product(self.weights, coded, self.activation)

    @property
    def _panels(self) -> Panels | None:
        if not self.stable or not isinstance(self.depth, int) or not isinstance(self.columns, int):
            return None
        return product_panels(self.transposed, self.weights, self.depth, self.columns)

    def compile(self, isa: Isa) -> None:
        product = self._product(self._panels is not None and self._panels.coded)
        # Both forms, so that another number of rows compiles nothing.
        if not isinstance(self.rows, int) or self.rows <= row_kernel_limit(isa, product):
            kernel(row_kernel, isa, product)
        if not isinstance(self.rows, int) or self.rows > row_kernel_limit(isa, product):
            kernel(tile_kernel, isa, product)
            kernel(pack_rows_kernel, isa, isa.tile_rows)
        packing_kernel(isa, self.transposed, self.weights)

    def packed(self) -> dict[Value, Panels]:
        return {} if self._panels is None else {self.b.value: self._panels}

    def bind(self, b: Binder) -> bool:
        extents = [b.size(n) for n in self.batch]
        positions = list(cartesian(*map(range, extents)))
        if len(positions) > _MOST_PRODUCTS:
            return False
        rows, columns = b.size(self.rows), b.size(self.columns)
        if not positions or not rows or not columns:
            return True
        a_strides, b_strides = ([b.size(s) for s in o.batch] for o in (self.a, self.b))
        form = self._panels
        packed = None if form is None else b.panels(self.b.value, form)
        product = self._product(packed is not None and form is not None and form.coded)
        few = rows <= row_kernel_limit(b.isa, product)
        as_it_lies = packed is None and few and self.transposed and not columns % b.isa.tile_columns
        room = None if packed or as_it_lies else b.scratch(self._panel_bytes(b))
        tiles = None
        if not few:
            fair = -(-(b.threads * PIECES if b.threads > 1 else 1) // panel_count(b.isa, columns))
            depth = b.size(self.depth)
            blocks = blocking(b.isa, rows, depth, row_blocks=fair, coded=product.coded)
            count = -(-rows // blocks.height) * b.isa.tile_rows
            tiles = b.scratch(count * depth * 4), blocks
        width = b.isa.tile_columns
        for number, position in enumerate(positions):
            offset = _place(position, b_strides)
            if room is not None:
                self._pack_panels(b, room, offset)
            panels = packed or room or self._weight(b, offset)
            steps = (width, b.size(self.b.matrix.stride))
            if not as_it_lies:
                steps = (b.size(self.depth) * width, width)
            place = _place(position, a_strides), number * rows
            self._multiply(b, product, (panels, *steps), tiles, place)
        return True

    def _weight(self, b: Binder, offset: int) -> Address:
        """The matrix B that begins ``offset`` elements behind the first one."""
        return b.address(self.b.value, b.size(self.b.matrix.offset) + offset)

    def _panel_bytes(self, b: Binder) -> int:
        return panel_bytes(b.isa, self.weights, b.size(self.depth), b.size(self.columns))

    def _pack_panels(self, b: Binder, panels: Address, offset: int) -> None:
        depth, columns, matrix = b.size(self.depth), b.size(self.columns), self.b.matrix
        sizes = (depth, columns) if self.transposed else (columns, depth)
        words = [self._weight(b, offset), panels, *sizes, b.size(matrix.stride)]
        words.append(depth if self.transposed else b.isa.tile_columns)
        pack = packing_kernel(b.isa, self.transposed, self.weights)
        b.step(pack, words, panel_count(b.isa, columns), 8 * depth * columns / _BYTES_PER_NS)

    def _multiply(
        self,
        b: Binder,
        product: Product,
        weight: tuple[Address, int, int],
        tiles: tuple[Address, Blocking] | None,
        place: tuple[int, int],
    ) -> None:
        """One product: of the weight's address and steps, from ``place`` (element of A, row)."""
        (panels, panel_step, ldp), (offset, first_row) = weight, place
        isa, rows, depth, columns = b.isa, *map(b.size, (self.rows, self.depth, self.columns))
        a = b.address(self.a.value, b.size(self.a.matrix.offset) + offset)
        words: dict[str, int | Address] = dict.fromkeys(MATMUL_WORDS, 0)
        words.update(a=a, panels=panels, rows=rows, depth=depth, columns=columns)
        words.update(c=b.address(self.result, first_row * columns), ldc=columns)
        words.update(lda=b.size(self.a.matrix.stride), panel_step=panel_step, ldp=ldp)
        if self.bias is not None:
            words["bias"] = b.address(*self.bias)
        if self.residual is not None:
            value, matrix = self.residual
            words["ldr"] = stride = b.size(matrix.stride)
            words["residual"] = b.address(value, b.size(matrix.offset) + first_row * stride)
        time = max(2 * rows / _FLOPS_PER_NS, 4 / _BYTES_PER_NS) * depth * columns
        if tiles is None:
            extent = panel_count(isa, columns)
            b.step(kernel(row_kernel, isa, product), [*words.values()], extent, time)
            return
        packed, blocks = tiles
        words["a"] = packed
        words.update(blocks._asdict())
        pack = kernel(pack_rows_kernel, isa, isa.tile_rows)
        pack_words = [a, packed, rows, depth, b.size(self.a.matrix.stride), blocks.height]
        pack_time = 8 * rows * depth / _BYTES_PER_NS
        b.step(pack, pack_words, -(-rows // blocks.height), pack_time)
        extent = tile_extent(isa, columns, blocks)
        b.step(kernel(tile_kernel, isa, product), [*words.values()], extent, time)


def packing_kernel(isa: Isa, transposed: bool, weights: WeightType) -> Kernel:
    """The kernel that packs rows of a weight: source, panels, two sizes as it lies, stride, and how
    high a panel is where rows lie across panels, how wide otherwise."""
    if transposed:
        return kernel(pack_columns_kernel, isa, weights)
    return kernel(pack_rows_kernel, isa, isa.tile_columns, weights)


_CODED_FROM = 2**20
"""Bytes of a weight that is coded: smaller ones stay in caches, which are read as fast."""


def product_panels(transposed: bool, weights: WeightType, depth: int, columns: int) -> Panels:
    """The packed form of a weight that a product wants."""
    large = weight_bytes(weights) * depth * columns >= _CODED_FROM
    coded = weights in CODED and large and depth % DEPTH_STEP == 0
    return Panels(transposed, weights, depth, columns, coded)


def panel_bytes(isa: Isa, weights: WeightType, depth: int, columns: int) -> int:
    """The size of a packed weight."""
    return panel_count(isa, columns) * isa.tile_columns * depth * weight_bytes(weights)


def _place(position: tuple[int, ...], strides: list[int]) -> int:
    return sum(i * s for i, s in zip(position, strides, strict=True))


Axes = tuple[int, ...]


@dataclass(frozen=True)
class _Side:
    """The axes of one operand of a `dot_general`."""

    batch: Axes
    rest: Axes
    contracted: Axes

    @classmethod
    def of(cls, core: Instruction, name: str, rank: int) -> _Side:
        batch: Axes = core.attrs[f"batch_{name}"]
        contracted: Axes = core.attrs[f"contract_{name}"]
        rest = tuple(i for i in range(rank) if i not in batch + contracted)
        return cls(batch, rest, contracted)

    def matrix(self, view: View, inner: Axes) -> Matrix | None:
        """The operand as matrices whose rows run over the axes ``inner``."""
        outer = self.rest if inner is self.contracted else self.contracted
        axes = view.permuted([*outer, *inner])
        return rows_of(axes, len(inner))

    def strides(self, view: View) -> Shape:
        return tuple(view.strides[i] for i in self.batch)

    def count(self, shape: Shape, axes: Axes) -> DimLike:
        return product(tuple(shape[i] for i in axes))


def _plain(core: Instruction, graph: Graph, members: Members) -> MatrixProduct | None:
    """The product alone, of operands that kernels can read where they are."""
    lhs, rhs = core.operands
    if not isinstance(lhs, Value) or not isinstance(rhs, Value) or lhs.type.dtype is not f32:
        return None
    left, right = (_Side.of(core, n, len(v.type.shape)) for n, v in (("lhs", lhs), ("rhs", rhs)))

    def weight(view: View) -> tuple[bool, Matrix] | None:
        for transposed, inner in ((False, right.contracted), (True, right.rest)):
            if (found := right.matrix(view, inner)) is not None:
                return transposed, found
        return None

    a = graph.source(lhs, lambda view: left.matrix(view, left.contracted) is not None)
    b = graph.source(rhs, lambda view: weight(view) is not None)
    if a is None or b is None:
        return None
    members.read(a)
    matrix, lies = left.matrix(a.view, left.contracted), weight(b.view)
    assert matrix is not None
    assert lies is not None
    row = right.count(rhs.type.shape, right.rest if lies[0] else right.contracted)
    whole = same(product(b.view.shape), b.value.type.size) and not right.batch
    whole = whole and same(lies[1].offset, 0) and same(lies[1].stride, row)
    value, weights = _widened(b, graph, members) if whole else (b.value, "f32")
    members.read(b)
    return MatrixProduct(
        core.result,
        (),
        a=Operand(a.value, left.strides(a.view), matrix),
        b=Operand(value, right.strides(b.view), lies[1]),
        transposed=lies[0],
        weights=weights,
        stable=whole and is_stable(value, graph),
        batch=tuple(lhs.type.shape[i] for i in left.batch),
        rows=left.count(lhs.type.shape, left.rest),
        depth=left.count(lhs.type.shape, left.contracted),
        columns=right.count(rhs.type.shape, right.rest),
    )


def _widened(b: Source, graph: Graph, members: Members) -> tuple[Value, WeightType]:
    """The weight that a cast to f32 widens, as the kernels do that themselves."""
    maker = graph.maker.get(b.value)
    if maker is not None and maker.op.name == "cast":
        (narrow,) = maker.values()
        name = _NARROW.get(narrow.type.dtype.name)
        if name is not None and is_stable(narrow, graph):
            members.add(maker)
            return narrow, name
    return b.value, "f32"


def _with_epilogue(call: MatrixProduct, graph: Graph, members: Members) -> MatrixProduct:
    """What follows a product and nothing else reads, in the order that kernels can do."""
    for extend in (_with_bias, _with_activation, _with_residual):
        reader = graph.only_reader(call.result)
        if reader is not None and (found := extend(call, reader, graph, members)) is not None:
            members.add(reader)
            call = replace(found, result=reader.result)
    return replace(call, members=tuple(members.found))


def _with_bias(
    call: MatrixProduct, add: Instruction, graph: Graph, members: Members
) -> MatrixProduct | None:
    other = _added(call.result, add)
    if other is None:
        return None
    columns = _column_axes(call)

    def along_columns(view: View) -> bool:
        inner = len(view.shape) - columns
        still = all(same(s, 0) for s in view.strides[:inner])
        row = View(view.shape[inner:], view.strides[inner:])
        return still and rows_of(row, columns) is not None

    bias = graph.source(other, along_columns)
    if bias is None or all(same(n, 1) for n in other.type.shape):
        return None
    members.read(bias)
    return replace(call, bias=(bias.value, bias.view.offset))


def _with_activation(
    call: MatrixProduct, reader: Instruction, graph: Graph, members: Members
) -> MatrixProduct | None:
    return replace(call, activation=reader.op.name) if reader.op.name in ACTIVATIONS else None


def _with_residual(
    call: MatrixProduct, add: Instruction, graph: Graph, members: Members
) -> MatrixProduct | None:
    other = _added(call.result, add)
    if other is None:
        return None
    columns = _column_axes(call)
    source = graph.source(other, lambda view: rows_of(view, columns) is not None)
    if source is None:
        return None
    matrix = rows_of(source.view, columns)
    assert matrix is not None
    members.read(source)
    return replace(call, residual=(source.value, matrix))


def _column_axes(call: MatrixProduct) -> int:
    """How many of the result's last axes are columns."""
    count, total = 0, 1
    shape = call.result.type.shape
    while not same(total, call.columns):
        count += 1
        total = product(shape[len(shape) - count :])
    return count


def _added(value: Value, reader: Instruction) -> Value | None:
    """What ``reader`` adds to ``value``, if it is an addition of another array."""
    if reader.op.name != "add":
        return None
    others = [o for o in reader.operands if o is not value]
    return others[0] if len(others) == 1 and isinstance(others[0], Value) else None
