"""Steps of a product of arguments: operands read where they lie or packed, then tiles.

    pack A  [matrices, ⌈rows/h⌉, depth, h]       unless it is read where it lies
    pack B  [matrices, ⌈columns/w⌉, depth, w]    unless it is read where it lies
    tiled product                                `gptrs.kernels.gemm.tiled`
    mirror                                       `gptrs.kernels.gemm.mirror`, of A·Aᵀ

A product A·Aᵀ is symmetric to the bit, as both halves have one order of sums: its tiles on the
diagonal and below are computed, half of the operations.

An operand is read where it lies if its elements are those that are added up, and packing would take
longer than it saves. Operands may be permuted views: the kernels take strides. Callers:
`gptrs.backends.faer.calls.tiled_product`, and `gptrs.backends.faer.calls.product` where neither
operand is a weight.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import NamedTuple

from gptrs.backends.faer.calls.arguments import GRID, Arguments, Grid, Side, grids
from gptrs.backends.faer.calls.base import PIECES, Address, Binder, Word, kernel
from gptrs.backends.faer.calls.contraction import ProductEpilogue
from gptrs.ir.dims import same_shape
from gptrs.ir.program import Value
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import KB, Isa, host
from gptrs.kernels.gemm.bf16_pairs import multiplies_bf16
from gptrs.kernels.gemm.mirror import mirror_blocks, mirror_kernel
from gptrs.kernels.gemm.number_types import FLOATS, INTEGERS, NumberTypes
from gptrs.kernels.gemm.pack_operand import pack_operand_kernel
from gptrs.kernels.gemm.product import FIRST_BLOCK, Product
from gptrs.kernels.gemm.tiled import IN_CACHE, TILED_ARGUMENTS, tiled_product_kernel

_BYTES_PER_NS, _FLOPS_PER_NS = 10.0, 30.0
_IN_PLACE = 256 * KB
"""The size up to which B is read where it lies: each of its rows is in another page."""
_FEW_ROWS, _FEW_DEPTH = 2, 8
"""A product of few rows reads B once: so many of its rows side by side, in as many pages."""
_WIDE = 1024
"""The least columns per thread of one row times B where it lies: long reads are faster."""
_TILES_OF_A = 1024 * KB
"""The bytes of A in a cache block. B is read once for each, from beyond L2 where it is large: the
larger a block, the fewer reads, and twice as much as L2 holds is still better than a part of it."""
_OFTEN = 640
"""The columns from which A is packed beside B: each of its tiles is then read often enough."""
_ALIASING = 1024
"""Rows at multiples of so many bytes share few lines of L1: they are packed."""
_MANY_TILES = 48
"""The tiles of A from which B is packed for reads that cross cache lines, or rows that alias."""

_SYMMETRIC_FROM = 64
"""The rows of A from which A·Aᵀ is computed by halves."""


class _Operand(NamedTuple):
    """An operand as the kernel reads it: its address, the strides of a tile, of a row in it and of
    the depth, and those of the batch."""

    address: Address
    tile: int
    row: int
    depth: int
    steps: tuple[int, ...]


def compile_tiled(isa: Isa, core: Arguments, epilogue: ProductEpilogue) -> None:
    """Compile the kernels of `bind_tiled` for any size."""
    types = _grouped(core.types, isa)
    kernel(tiled_product_kernel, isa, types, Product(activation=epilogue.activation))
    if _is_symmetric(core, epilogue):
        _mirror_kernel(isa, types)
    _pack_kernel(isa, types, left=True)
    _pack_kernel(isa, types, left=False)


def _is_symmetric(core: Arguments, epilogue: ProductEpilogue) -> bool:
    """Whether a product is A·Aᵀ, of real numbers."""
    a, b = core.a, core.b
    strides = ((a.offset, a.outer, a.depth, *a.batch), (b.offset, b.outer, b.depth, *b.batch))
    is_transposed = a.value is b.value and same_shape(*strides)
    return is_transposed and core.types.parts == 1 and epilogue == ProductEpilogue()


def _mirror_kernel(isa: Isa, types: NumberTypes) -> Kernel:
    return kernel(mirror_kernel, isa, max(8, (FLOATS | INTEGERS)[types.result]))


def bind_tiled(b: Binder, core: Arguments, epilogue: ProductEpilogue, result: Value) -> None:
    """Add the steps of a product."""
    if all(map(b.size, (core.rows, core.columns))):
        for grid in grids(b, core):
            _bind_grid(b, core, epilogue, result, grid)


def _bind_grid(
    b: Binder, core: Arguments, epilogue: ProductEpilogue, result: Value, grid: Grid
) -> None:
    rows, columns, depth = map(b.size, (core.rows, core.columns, core.depth))
    count = grid.matrices
    types = _grouped(core.types, b.isa)
    held = -(-depth // types.group)
    left, right = _operands(b, core, types, grid)
    lies = types.has_rows and right.tile == types.width(b.isa)
    blocks = _blocks(b, types, (rows, held, columns), count, is_row=rows == 1 and lies)
    words: dict[str, Word] = {"a": left.address, "b": right.address}
    first_row, row = grid.first * rows, columns * types.parts
    out = b.address(result, first_row * columns)
    words |= _results(b, out, types, count * rows * row, depth) | epilogue.words(b, first_row)
    words |= {"rows": rows, "depth": held, "columns": row}
    words |= {"a_tile": left.tile, "a_row": left.row, "a_depth": left.depth}
    words |= {"b_panel": right.tile, "b_depth": right.depth}
    words |= grid.words() | blocks
    halves = _is_symmetric(core, epilogue) and rows >= _SYMMETRIC_FROM
    words["triangle"] = int(halves)
    for axis in range(GRID):
        words |= {f"a_step{axis}": left.steps[axis], f"b_step{axis}": right.steps[axis]}
    extent = count * blocks["row_blocks"] * blocks["column_blocks"]
    time = 2 * count * rows * columns * depth * types.parts**2 / _FLOPS_PER_NS
    block = [words.get(name, 0) for name in TILED_ARGUMENTS]
    product = Product(activation=epilogue.activation)
    time = time / 2 if halves else time
    b.step(kernel(tiled_product_kernel, b.isa, types, product), block, extent, time)
    if halves:
        extent, time = count * mirror_blocks(rows), count * rows**2 / _BYTES_PER_NS
        b.step(_mirror_kernel(b.isa, types), [out, rows, mirror_blocks(rows)], extent, time)


def _operands(
    b: Binder, core: Arguments, types: NumberTypes, grid: Grid
) -> tuple[_Operand, _Operand]:
    rows, columns, depth = map(b.size, (core.rows, core.columns, core.depth))
    element, height = types.parts * types.bytes, types.rows(b.isa)
    steps = [axis.a for axis in grid.axes], [axis.b for axis in grid.axes]
    small = depth * columns * element <= _IN_PLACE or rows <= 2 * height
    along = columns == 1 or b.size(core.b.outer) == 1
    stride = b.size(core.b.depth) * element
    splits = stride % (b.isa.vector_bits // 8) != 0 or stride % _ALIASING == 0
    place = b.address(core.b.value, grid.b)
    if types.reads and along and small and not (splits and rows >= _MANY_TILES * height):
        right = _in_place(b, core.b, place, types, steps[1], left=False)
    else:
        right = _packed(b, core.b, place, types, (columns, depth), grid, steps[1], left=False)
    few = columns * types.parts <= types.width(b.isa)
    aliases = b.size(core.a.outer) * element % _ALIASING == 0 and rows > 1
    often = columns * types.parts >= _OFTEN and not small
    along = b.size(core.a.depth) == 1 or depth * rows * element <= _IN_PLACE
    place = b.address(core.a.value, grid.a)
    if types.reads and (few or (along and not aliases and not often)):
        left = _in_place(b, core.a, place, types, steps[0], left=True)
    else:
        left = _packed(b, core.a, place, types, (rows, depth), grid, steps[0], left=True)
    return left, right


def _results(
    b: Binder, out: Address, types: NumberTypes, count: int, depth: int
) -> dict[str, Word]:
    """The memory of so many sums, of the result, and of totals in f64."""
    words: dict[str, Word] = {"c": out}
    if not types.copies:
        words = {"c": b.scratch(count * types.bytes), "out": out}
    if not types.is_integer and depth > FIRST_BLOCK:
        words["totals"] = b.scratch(8 * count)
    return words


def _grouped(types: NumberTypes, isa: Isa) -> NumberTypes:
    """With narrow integers, or bf16, in groups that one instruction multiplies and adds up, on
    x86."""
    if types.stored == "bf16" and types.sums == "f32":
        return replace(types, group=2) if multiplies_bf16(isa) else types
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


def _in_place(
    b: Binder, side: Side, place: Address, types: NumberTypes, steps: list[int], *, left: bool
) -> _Operand:
    """An operand that is read where it lies."""
    outer, depth = b.size(side.outer) * types.parts, b.size(side.depth) * types.parts
    tile = outer * _pack_tile(b.isa, types, left=left)
    return _Operand(place, tile, outer, depth, tuple(s * types.parts for s in steps))


def _packed(
    b: Binder,
    side: Side,
    place: Address,
    types: NumberTypes,
    sizes: tuple[int, int],
    grid: Grid,
    steps: list[int],
    *,
    left: bool,
) -> _Operand:
    """An operand that is packed first: once for all matrices, if they are one."""
    outer, depth = sizes
    tile = _pack_tile(b.isa, types, left=left)
    tiles, held = -(-outer // tile), -(-depth // types.group)
    shared = not any(steps)
    extents = [1] * GRID if shared else [axis.extent for axis in grid.axes]
    whole = held * tile * types.parts + types.tail  # numbers of a tile
    size = tiles * whole  # of a matrix
    room = b.scratch(max(1, prod(extents) * size * types.bytes))
    words = [place, room, outer, depth]
    words += [b.size(side.outer), b.size(side.depth), tiles, *extents[1:], *steps]
    moved = prod(extents) * outer * depth * types.parts * types.bytes
    code = _pack_kernel(b.isa, types, left=left)
    b.step(code, words, tiles * prod(extents), 2 * moved / _BYTES_PER_NS)
    apart = (extents[1] * extents[2] * size, extents[2] * size, size)
    stride = tile * types.parts
    row = types.parts if left else 1
    return _Operand(room, whole, row, stride, (0, 0, 0) if shared else apart)


def _blocks(
    b: Binder, types: NumberTypes, sizes: tuple[int, int, int], count: int, *, is_row: bool
) -> dict[str, int]:
    """Blocks that suit the caches, and are enough for all threads; of one row times rows of B where
    they lie, the columns of a thread."""
    isa, (rows, depth, columns) = b.isa, sizes
    most = isa.panel_bytes // (types.width(isa) * types.bytes)
    several = columns * types.parts > types.width(isa)
    most = _FEW_DEPTH if rows <= _FEW_ROWS and several else most
    depth = min(depth, FIRST_BLOCK // types.group)
    depth_block = -(-depth // max(1, -(-depth // most)))
    tiles, panels = -(-rows // types.rows(isa)), -(-columns * types.parts // types.width(isa))
    fitting = max(
        1, _TILES_OF_A // max(1, depth_block * types.rows(isa) * types.parts * types.bytes)
    )
    row_blocks = -(-tiles // fitting)
    wanted = b.threads * PIECES if b.threads > 1 else 1
    if depth_block * columns * types.parts * types.bytes <= IN_CACHE:  # C is written by rows
        row_blocks = min(tiles, max(row_blocks, -(-wanted // count)))
    column_blocks = max(1, min(panels, -(-wanted // (count * row_blocks))))
    if is_row:
        depth_block = FIRST_BLOCK
        column_blocks = min(column_blocks, max(b.threads, columns // _WIDE))
    return {
        "depth_block": max(1, depth_block),
        "row_blocks": row_blocks,
        "column_blocks": column_blocks,
    }
