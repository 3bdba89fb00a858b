"""Matrix products of floats in tiles, for devices whose groups of work items share memory.

    group: a batch, TILE rows, TILE columns; LANES work items, of 4 × 4 results each
        for each DEPTH of k:
            copy A[rows, k] and B[k, columns] to shared memory, zeros beyond the ends
            for k: c[i][j] += A[i, k] · B[k, j]

Each result is the sum over k in order. Of few rows a work item makes one result
(`gptrs.backends.c_family.kernels.contraction`): there B is read once in any case.
"""

from __future__ import annotations

from dataclasses import replace

from gptrs.backends.c_family.element_types import loaded, stored
from gptrs.backends.c_family.index_text import dim_text
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.contraction import each_result
from gptrs.backends.c_family.kernels.operands import Axes, Operand, terms
from gptrs.backends.c_family.kernels.product import Product
from gptrs.backends.memory_operands import Graph
from gptrs.ir.program import Instruction

TILE = 64
DEPTH = 16
LANES = 256
SIDE = 4
_FEW_ROWS = 8
MOST = 2**62


def tiled_dot_general_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """The kernel of a ``dot_general``."""
    made = Product.of(instruction, graph)
    alone = each_result(made, instruction)
    rows = made.rows.size
    if not made.is_float or (isinstance(rows, int) and rows < _FEW_ROWS):
        return [alone]
    tiles = _tiles(made, instruction)
    if isinstance(rows, int):
        return [tiles]
    return [
        replace(alone, when=(rows, 0, _FEW_ROWS - 1)),
        replace(tiles, when=(rows, _FEW_ROWS, MOST)),
    ]


def plain_dot_general_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """A kernel that makes each result by itself, of any number of rows."""
    return [each_result(Product.of(instruction, graph), instruction)]


def _tiles(made: Product, instruction: Instruction) -> KernelCall:
    builder = KernelBuilder()
    height, columns = made.rows.size, made.columns.size
    across, down = (columns + TILE - 1) // TILE, (height + TILE - 1) // TILE
    split, (a_batch, b_batch) = made.batch.place(builder, "batch", "b")
    m, n, depth = (builder.dim(size) for size in (height, columns, made.depth.size))
    lines = [
        f"const isize across = item % {builder.dim(across)}, outer = item / {dim_text(across)};",
        f"const isize down = outer % {builder.dim(down)}, batch = outer / {dim_text(down)};",
        *split,
        f"const isize a_at = {terms(made.a.offset(builder), a_batch)};",
        f"const isize b_at = {terms(made.b.offset(builder), b_batch)};",
        f"const isize first_row = down * {TILE}, first_column = across * {TILE};",
        f"const int lane_row = lane / {TILE // SIDE}, lane_column = lane % {TILE // SIDE};",
        f"f32 {', '.join(f'c{i}_{j} = 0' for i in range(SIDE) for j in range(SIDE))};",
        f"for (isize first = 0; first < {depth}; first += {DEPTH}) {{",
        *(f"  {line}" for line in [*_copy(made, builder, m, n, depth), *_multiply()]),
        "}",
        *_store(made, builder, m, n),
    ]
    shared = [("f32", "a_tile", TILE * DEPTH), ("f32", "b_tile", TILE * DEPTH)]
    extent = made.batch.size * down * across
    work = made.depth.size * SIDE * SIDE
    return builder.call(
        "matmul_tiles", "item", extent, lines, [instruction], work=work, group=LANES, shared=shared
    )


def _copy(made: Product, builder: KernelBuilder, m: str, n: str, depth: str) -> list[str]:
    """Lines that copy a part of A and of B to shared memory. Neighbours read neighbours."""
    b_is_by_depth = made.depth.is_unit(1)
    lines = [f"for (int part = 0; part < {TILE * DEPTH // LANES}; part++) {{"]
    for x, operand, axes, extent, first in (
        (0, made.a, made.rows, m, "first_row"),
        (1, made.b, made.columns, n, "first_column"),
    ):
        name = "ab"[x]
        by_depth = b_is_by_depth if x else not made.rows.is_unit(0)
        here, along = (f"% {DEPTH}", f"/ {DEPTH}") if by_depth else (f"/ {TILE}", f"% {TILE}")
        read = _read(made, builder, operand, axes, x)
        lines += [
            "  {",
            f"    const int at = part * {LANES} + lane;",
            f"    const int k_in = at {here}, side_in = at {along};",
            f"    const isize k = first + k_in, side = {first} + side_in;",
            "    f32 value = 0;",
            f"    if (k < {depth} && side < {extent}) {{",
            *(f"      {line}" for line in read),
            "    }",
            f"    {name}_tile[k_in * {TILE} + side_in] = value;",
            "  }",
        ]
    return [*lines, "}", "BARRIER();"]


def _read(
    made: Product, builder: KernelBuilder, operand: Operand, axes: Axes, number: int
) -> list[str]:
    """Lines that set ``value`` to the element at ``side`` and ``k``."""
    array, name = builder.read(operand.value), "ab"[number]
    split, (at,) = axes.place(builder, "side", "s")
    depth, places = made.depth.place(builder, "k", "k")
    element = loaded(operand.dtype, f"{array}[{terms(f'{name}_at', at, places[number])}]")
    return [*split, *depth, f"value = {element};"]


def _multiply() -> list[str]:
    """Lines that add the products of the tiles."""
    sides = range(SIDE)
    rows = [f"a{i} = a_tile[k * {TILE} + lane_row * {SIDE} + {i}]" for i in sides]
    columns = [f"b{j} = b_tile[k * {TILE} + lane_column * {SIDE} + {j}]" for j in sides]
    return [
        f"for (int k = 0; k < {DEPTH}; k++) {{",
        f"  const f32 {', '.join([*rows, *columns])};",
        *(f"  c{i}_{j} = f32_multiply_add(c{i}_{j}, a{i}, b{j});" for i in sides for j in sides),
        "}",
        "BARRIER();",
    ]


def _store(made: Product, builder: KernelBuilder, m: str, n: str) -> list[str]:
    out, dtype = builder.write(made.result), made.result.type.dtype
    lines = [
        f"const isize row = first_row + lane_row * {SIDE};",
        f"const isize column = first_column + lane_column * {SIDE};",
    ]
    for i in range(SIDE):
        for j in range(SIDE):
            at = f"(batch * {m} + row + {i}) * {n} + column + {j}"
            inside = f"row + {i} < {m} && column + {j} < {n}"
            lines.append(f"if ({inside}) {out}[{at}] = {stored(dtype, f'c{i}_{j}')};")
    return lines
