"""Matrix products of any dtype but f32, of which `product` has more forms: f64, f16, bf16, integers
and complex numbers, with operands of any strides, in batches.

    pack A  [matrices, ⌈rows/h⌉, depth, h]       unless it is read where it lies
    pack B  [matrices, ⌈columns/w⌉, depth, w]    unless it is read where it lies
    tiled product                                `gptrs.kernels.gemm.tiled`

An operand is read where it lies if its elements are those that are added up, and packing would take
longer than it saves. Operands may be permuted views: the kernels take strides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

from gptrs.backends.faer.calls.base import PIECES, Address, Binder, Call, kernel
from gptrs.backends.faer.calls.contraction import OperandAxes
from gptrs.backends.faer.graph import Graph, Members, Source
from gptrs.backends.views import View, evenly_spaced
from gptrs.ir.dims import DimLike, Shape, same
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import DType, f32
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import KB, Isa, host
from gptrs.kernels.gemm.number_types import INTEGERS, NumberTypes, number_types
from gptrs.kernels.gemm.pack_operand import pack_operand_kernel
from gptrs.kernels.gemm.product import FIRST_BLOCK, Product
from gptrs.kernels.gemm.tiled import TILED_ARGUMENTS, tiled_product_kernel

_BYTES_PER_NS, _FLOPS_PER_NS = 10.0, 30.0
_IN_CACHE = 256 * KB
"""The size up to which B is read where it lies: each of its rows is in another page."""
_FEW_ROWS, _FEW_DEPTH = 2, 8
"""A product of few rows reads B once: so many of its rows side by side, in as many pages."""
_GRID = 3
"""The axes of a batch that kernels take, after those that are evenly spaced have become one."""
_ALIASING = 1024
"""Rows at multiples of so many bytes share few lines of L1: they are packed."""


@dataclass(frozen=True)
class Side:
    """A stored operand, with its strides in elements: from one row of A, or column of B, to the
    next, along the depth, and along the batch."""

    value: Value
    offset: DimLike
    outer: DimLike
    depth: DimLike
    batch: Shape


class _Operand(NamedTuple):
    """An operand as the kernel reads it: its address, the strides of a tile, of a row in it and of
    the depth, and those of the batch."""

    address: Address
    tile: int
    row: int
    depth: int
    steps: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TiledProduct(Call):
    """A·B for each position of batch axes."""

    target = "gpt_rs.faer.matmul.typed.v1"

    a: Side
    b: Side
    types: NumberTypes
    batch: Shape
    rows: DimLike
    depth: DimLike
    columns: DimLike

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> TiledProduct | None:
        members = Members()
        found = cls._of(core, graph, members)
        members.add(core)
        return found and replace(found, members=tuple(members.found))

    @classmethod
    def reads(cls, core: Instruction, graph: Graph) -> bool:
        """Whether kernels can read the operands of a product in their layout."""
        return cls._of(core, graph, Members()) is not None

    @classmethod
    def supports(cls, core: Instruction) -> bool:
        """Whether kernels can compute a product of these dtypes."""
        return core.op is dot_general and _types_of(core) is not None

    @classmethod
    def _of(cls, core: Instruction, graph: Graph, members: Members) -> TiledProduct | None:
        types = _types_of(core) if core.op is dot_general else None
        lhs, rhs = core.operands
        if types is None or not isinstance(lhs, Value) or not isinstance(rhs, Value):
            return None
        left, right = (
            OperandAxes.of(core, name, v.type.rank) for name, v in (("lhs", lhs), ("rhs", rhs))
        )
        a, b = _operand(graph, lhs, left), _operand(graph, rhs, right)
        if a is None or b is None:
            return None
        members.read(a[0])
        members.read(b[0])
        return cls(
            core.result,
            (),
            a=a[1],
            b=b[1],
            types=types,
            batch=tuple(lhs.type.shape[i] for i in left.batch),
            rows=left.count(lhs.type.shape, left.rest),
            depth=left.count(lhs.type.shape, left.contracted),
            columns=right.count(rhs.type.shape, right.rest),
        )

    def compile(self, isa: Isa) -> None:
        if not self._rounds_on(isa):
            return
        types = _grouped(self.types, isa)
        kernel(tiled_product_kernel, isa, types, Product())
        _pack_kernel(isa, types, left=True)
        _pack_kernel(isa, types, left=False)

    def _rounds_on(self, isa: Isa) -> bool:
        """Whether there is an instruction that rounds to the result's dtype."""
        return isa.half or self.types.result != "f16"

    def bind(self, b: Binder) -> bool:
        rows, columns, depth = map(b.size, (self.rows, self.columns, self.depth))
        grid = _grid(
            [*map(b.size, self.batch)], *([*map(b.size, s.batch)] for s in (self.a, self.b))
        )
        if grid is None or not self._rounds_on(b.isa):
            return False
        extents, *strides = grid
        if not rows or not columns or not prod(extents):
            return True
        if self._is_for_blas(prod(extents), rows, columns):
            return False
        types = _grouped(self.types, b.isa)
        held = -(-depth // types.group)
        left, right = self._operands(b, types, extents, strides)
        blocks = _blocks(b, types, (rows, held, columns), prod(extents))
        words = self._results(b, types, prod(extents) * rows * columns * types.parts, held)
        words |= {"a": left.address, "b": right.address}
        words |= {"rows": rows, "depth": held, "columns": columns * types.parts}
        words |= {"a_tile": left.tile, "a_row": left.row, "a_depth": left.depth}
        words |= {"b_panel": right.tile, "b_depth": right.depth}
        words |= {"batch1": extents[1], "batch2": extents[2]} | blocks
        for axis in range(_GRID):
            words |= {f"a_step{axis}": left.steps[axis], f"b_step{axis}": right.steps[axis]}
        extent = prod(extents) * blocks["row_blocks"] * blocks["column_blocks"]
        time = 2 * prod(extents) * rows * columns * depth * types.parts**2 / _FLOPS_PER_NS
        block = [words.get(name, 0) for name in TILED_ARGUMENTS]
        b.step(kernel(tiled_product_kernel, b.isa, types, Product()), block, extent, time)
        return True

    def _is_for_blas(self, count: int, rows: int, columns: int) -> bool:
        """Whether NumPy's BLAS, which the reference calls, is faster: a matrix by a vector 2.2
        times, a batch of matrices of f64 from 32 x 32 on 2.3 times."""
        if self.types.sums != "f64" or self.types.stored != "f64":
            return False
        return columns == 1 or (count > 1 and self.types.parts == 1 and rows * columns >= 1024)

    def _operands(
        self, b: Binder, types: NumberTypes, extents: list[int], strides: list[list[int]]
    ) -> tuple[_Operand, _Operand]:
        rows, columns, depth = map(b.size, (self.rows, self.columns, self.depth))
        element = types.parts * types.bytes
        small = depth * columns * element <= _IN_CACHE or rows <= types.rows(b.isa)
        along = columns == 1 or b.size(self.b.outer) == 1
        if types.reads and along and small:
            width = types.width(b.isa)
            right = _in_place(b, self.b, types, width // types.parts, strides[1])
        else:
            right = _packed(b, self.b, types, (columns, depth), extents, strides[1], left=False)
        few = columns * types.parts <= types.width(b.isa)
        aliases = b.size(self.a.outer) * element % _ALIASING == 0 and rows > 1
        if types.reads and (few or (small and not aliases)):
            left = _in_place(b, self.a, types, types.rows(b.isa), strides[0])
        else:
            left = _packed(b, self.a, types, (rows, depth), extents, strides[0], left=True)
        return left, right

    def _results(
        self, b: Binder, types: NumberTypes, count: int, depth: int
    ) -> dict[str, int | Address]:
        """The memory of sums, of the result, and of totals in f64."""
        out = b.address(self.result)
        words: dict[str, int | Address] = {"c": out}
        if not types.copies:
            words = {"c": b.scratch(count * types.bytes), "out": out}
        if not types.is_integer and depth > FIRST_BLOCK:
            words["totals"] = b.scratch(8 * count)
        return words


def _types_of(core: Instruction) -> NumberTypes | None:
    """The element types of a product; None where there are no kernels for them here."""
    lhs, result = core.operands[0], core.result.type.dtype
    if not isinstance(lhs, Value):
        return None
    stored, given = lhs.type.dtype, core.attrs["accum_dtype"]
    through: DType = (given or stored).compute
    if all(dtype is f32 for dtype in (stored, through, result)):  # in `product`
        return None
    if given is not None and given.bits < 8:
        return None
    return number_types(stored.name, through.name, result.name)


def _operand(graph: Graph, value: Value, axes: OperandAxes) -> tuple[Source, Side] | None:
    """The stored value behind an operand whose strides kernels can take."""

    def strides(view: View) -> tuple[DimLike, DimLike] | None:
        found: list[DimLike] = []
        for group in (axes.rest, axes.contracted):
            spaced = [(view.shape[i], view.strides[i]) for i in group if not same(view.shape[i], 1)]
            if not evenly_spaced(spaced):
                return None
            found.append(spaced[-1][1] if spaced else 1)
        return found[0], found[1]

    source = graph.source(value, lambda view: strides(view) is not None)
    if source is None or (found := strides(source.view)) is None:
        return None
    return source, Side(source.value, source.view.offset, *found, axes.strides(source.view))


def _grouped(types: NumberTypes, isa: Isa) -> NumberTypes:
    """With narrow integers in groups that one instruction multiplies and adds up, on x86."""
    if types.sums != "i32" or isa.vector_bits < 256 or "x86_64" not in isa.architectures:
        return types
    bits = INTEGERS[types.stored]
    if types.stored == "si8" and isa.vector_bits == 512 and host()[2].get("avx512vnni", False):
        return replace(types, group=4)
    # Two unsigned numbers of 16 bits are signed ones to the instruction: right modulo 2^16 alone.
    signed = types.stored != "ui16" or INTEGERS[types.through] <= 16
    return replace(types, group=2) if bits in (8, 16) and signed else types


def _pack_tile(isa: Isa, types: NumberTypes, *, left: bool) -> int:
    return types.rows(isa) if left else types.width(isa) // types.parts


def _pack_kernel(isa: Isa, types: NumberTypes, *, left: bool) -> Kernel:
    return kernel(pack_operand_kernel, isa, types, _pack_tile(isa, types, left=left), left=left)


def _in_place(b: Binder, side: Side, types: NumberTypes, tile: int, steps: list[int]) -> _Operand:
    """An operand that is read where it lies."""
    outer, depth = b.size(side.outer) * types.parts, b.size(side.depth) * types.parts
    place = b.address(side.value, side.offset)
    return _Operand(place, tile * outer, outer, depth, tuple(s * types.parts for s in steps))


def _packed(
    b: Binder,
    side: Side,
    types: NumberTypes,
    sizes: tuple[int, int],
    extents: list[int],
    steps: list[int],
    *,
    left: bool,
) -> _Operand:
    """An operand that is packed first: once for all matrices, if they are one."""
    outer, depth = sizes
    tile = _pack_tile(b.isa, types, left=left)
    tiles, held = -(-outer // tile), -(-depth // types.group)
    shared = not any(steps)
    extents = [1] * _GRID if shared else extents
    size = tiles * held * tile * types.parts  # numbers of a matrix
    room = b.scratch(max(1, prod(extents) * size * types.bytes))
    words = [b.address(side.value, side.offset), room, outer, depth]
    words += [b.size(side.outer), b.size(side.depth), tiles, *extents[1:], *steps]
    moved = prod(extents) * outer * depth * types.parts * types.bytes
    code = _pack_kernel(b.isa, types, left=left)
    b.step(code, words, tiles * prod(extents), 2 * moved / _BYTES_PER_NS)
    apart = (extents[1] * extents[2] * size, extents[2] * size, size)
    stride = tile * types.parts
    row = types.parts if left else 1
    return _Operand(room, held * stride, row, stride, (0, 0, 0) if shared else apart)


def _grid(
    extents: list[int], left: list[int], right: list[int]
) -> tuple[list[int], list[int], list[int]] | None:
    """The axes of a batch, with both operands' strides, as `_GRID` axes; None if they are more."""
    axes: list[tuple[int, int, int]] = []
    for n, x, y in reversed([*zip(extents, left, right, strict=True)]):
        if n == 1:
            continue
        if axes and x == axes[0][0] * axes[0][1] and y == axes[0][0] * axes[0][2]:
            axes[0] = (n * axes[0][0], *axes[0][1:])
        else:
            axes.insert(0, (n, x, y))
    if len(axes) > _GRID:
        return None
    axes = [(1, 0, 0)] * (_GRID - len(axes)) + axes
    n, x, y = ([*part] for part in zip(*axes, strict=True))
    return n, x, y


def _blocks(
    b: Binder, types: NumberTypes, sizes: tuple[int, int, int], count: int
) -> dict[str, int]:
    """Blocks that suit the caches, and are enough for all threads."""
    isa, (rows, depth, columns) = b.isa, sizes
    most = isa.panel_bytes // (types.width(isa) * types.bytes)
    most = _FEW_DEPTH if rows <= _FEW_ROWS else most
    depth_block = -(-min(depth, FIRST_BLOCK) // max(1, -(-min(depth, FIRST_BLOCK) // most)))
    tiles, panels = -(-rows // types.rows(isa)), -(-columns * types.parts // types.width(isa))
    fitting = max(1, 512 * KB // max(1, depth_block * types.rows(isa) * types.parts * types.bytes))
    row_blocks = -(-tiles // fitting)
    wanted = b.threads * PIECES if b.threads > 1 else 1
    column_blocks = max(1, min(panels, -(-wanted // (count * row_blocks))))
    return {
        "depth_block": max(1, depth_block),
        "row_blocks": row_blocks,
        "column_blocks": column_blocks,
    }
