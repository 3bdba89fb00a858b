"""Matrix products of floats in blocks of registers.

Where rows of B are contiguous, blocks of R × 8V results stay in registers (R ≤ 6), each the sum
over k in order; where rows of A and columns of B are, each result is a dot product in 8 lanes. A
result has the same bits in every block.

    work item: a batch, PANEL columns, GROUP rows
        for each R rows of the group, each 8V columns of the panel:
            for k: c[r][v] += A[r, k] · B[k, v]

Of many rows, on a CPU, the panel is first copied DEPTH rows at a time (32 KB): rows of B often lie
a power of two apart, and would share a few sets of the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gptrs.backends.c_family.element_types import NARROW, loaded, stored
from gptrs.backends.c_family.index_text import dim_text
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.operands import Operand, terms
from gptrs.backends.c_family.kernels.product import Product
from gptrs.ir.dims import DimLike, same
from gptrs.ir.program import Instruction
from gptrs.ir.types import f32

PANEL = 64
GROUP = 96
DEPTH = 128
_TILES = ((6, 2), (3, 2), (1, 8))
"""Rows and vectors of the blocks, the largest first."""
_DOT_COLUMNS = 4
_DOT_ROWS = (2, 1)

_Blocks: TypeAlias = list[tuple[int, list[str]]]
_Block: TypeAlias = "Callable[[BlockWriter], _Blocks]"
"""Writes the body of a block for each number of rows."""


def _load(operand: Operand, array: str, at: str, count: str = "") -> str:
    """8 elements, of which only ``count`` are there."""
    narrow = NARROW.get(operand.dtype.name, "")
    name = "f32x8_load" + ("_part" if count else "") + (f"_{narrow}" if narrow else "")
    given = f"{array} + {at}"
    return f"{name}({given}, {count})" if count else f"{name}({given})"


class BlockWriter:
    """Writes a product in blocks of rows and columns."""

    def __init__(self, made: Product, instruction: Instruction, block: _Block) -> None:
        self.made, self.instruction, self._block = made, instruction, block
        self.builder = KernelBuilder()
        self.a, self.b = self.builder.read(made.a.value), self.builder.read(made.b.value)
        self.out = self.builder.write(made.result)

    def call(self, title: str) -> KernelCall:
        made, builder = self.made, self.builder
        height, columns = made.rows.size, made.columns.size
        count = (columns + PANEL - 1) // PANEL
        groups = (height + GROUP - 1) // GROUP
        extent = made.batch.size * groups * count
        m, n = builder.dim(height), builder.dim(columns)
        lines = [
            f"const isize panel = item % {builder.dim(count)}, outer = item / {dim_text(count)};",
            f"const isize group = outer % {builder.dim(groups)};",
            f"const isize batch = outer / {dim_text(groups)};",
        ]
        split, (a_batch, b_batch) = made.batch.place(builder, "batch", "b")
        first = f"panel * {PANEL}"
        lines += [
            *split,
            f"const isize a_at = {terms(made.a.offset(builder), a_batch)};",
            f"const isize b_at = {terms(made.b.offset(builder), b_batch)};",
            f"const isize out_at = batch * {m} * {n} + {first};",
            f"const isize width = least({PANEL}, {n} - {first});",
            f"const isize last = least({m}, group * {GROUP} + {GROUP});",
            f"isize row = group * {GROUP};",
        ]
        if self._block is panels:
            lines += _copied_panels(self)
        for rows, body in self._block(self):
            lines += [f"for (; row + {rows} <= last; row += {rows}) {{"]
            lines += [f"  {line}" for line in [*self.row_places(rows), *body]]
            lines += ["}"]
        work = self._work(made.depth.size)
        return builder.call(title, "item", extent, lines, [self.instruction], work=work)

    def _work(self, depth: DimLike) -> DimLike:
        return depth * PANEL

    def row_places(self, count: int) -> list[str]:
        """The index of each row of a block in A."""
        lines: list[str] = []
        for r in range(count):
            row = f"row + {r}" if r else "row"
            if len(self.made.rows.extents) == 1:
                stride = self.made.rows.strides[0][0]
                at = f"({row}) * {self.builder.dim(stride)}" if not same(stride, 0) else "0"
            else:
                split, (at,) = self.made.rows.place(self.builder, f"({row})", f"m{r}_")
                lines += split
            lines.append(f"const isize a{r} = {terms('a_at', at)};")
        return lines

    def depth_loop(self, body: list[str]) -> list[str]:
        """Loops over the contracted axes; ``k_a`` and ``k_b`` are the places in A and B."""
        axes = self.made.depth
        names = [f"k{axis}" for axis in range(len(axes.extents))]
        for strides in axes.strides:
            self.builder.uses(strides)
        places = [
            terms(
                *(
                    f"{name} * {dim_text(stride)}" if not same(stride, 1) else name
                    for name, stride in zip(names, strides, strict=True)
                    if not same(stride, 0)
                )
            )
            for strides in axes.strides
        ]
        lines = [f"const isize k_a = {places[0]}, k_b = {places[1]};", *body]
        for name, extent in zip(reversed(names), reversed(axes.extents), strict=True):
            head = f"for (isize {name} = 0; {name} < {self.builder.dim(extent)}; {name}++) {{"
            lines = [head, *(f"  {line}" for line in lines), "}"]
        return lines if names else ["{", *(f"  {line}" for line in lines), "}"]

    def store(self, at: str, vector: str, count: str = "") -> str:
        """The line that stores 8 results, or ``count`` of them."""
        dtype = self.made.result.type.dtype
        if dtype is f32 and not count:
            return f"f32x8_store({self.out} + {at}, {vector});"
        narrow = NARROW.get(dtype.name)
        name = f"f32x8_store_part{f'_{narrow}' if narrow else ''}"
        return f"{name}({self.out} + {at}, {vector}, {count or 8});"

    def element(self, row: int) -> str:
        """An element of A."""
        return loaded(self.made.a.dtype, f"{self.a}[a{row} + k_a]")


def panels(writer: BlockWriter) -> _Blocks:
    """Blocks of rows of A and contiguous columns of B."""
    return [
        (
            rows,
            [
                "isize column = 0;",
                f"for (; column + {8 * vectors} <= width; column += {8 * vectors}) {{",
                *(f"  {line}" for line in _tile(writer, rows, vectors)),
                "}",
                *_rest(
                    writer, 8 * vectors, 8, lambda r=rows: _tile(writer, r, 1, "width - column")
                ),
            ],
        )
        for rows, vectors in _TILES
    ]


def _tile(writer: BlockWriter, rows: int, vectors: int, count: str = "") -> list[str]:
    n = dim_text(writer.made.columns.size)
    sums = [f"c{r}_{v}" for r in range(rows) for v in range(vectors)]
    base = f"b_at + k_b + panel * {PANEL} + column"
    step = [
        f"const f32x8 b{v} = {_load(writer.made.b, writer.b, _plus(base, 8 * v), count)};"
        for v in range(vectors)
    ]
    for r in range(rows):
        step.append(f"const f32 e{r} = {writer.element(r)};")
        step += [f"c{r}_{v} = f32x8_add_product(c{r}_{v}, e{r}, b{v});" for v in range(vectors)]
    stores = [
        writer.store(f"out_at + (row + {r}) * {n} + {_plus('column', 8 * v)}", f"c{r}_{v}", count)
        for r in range(rows)
        for v in range(vectors)
    ]
    return [
        f"f32x8 {', '.join(f'{name} = f32x8_all(0.0f)' for name in sums)};",
        *writer.depth_loop(step),
        *stores,
    ]


def _copied_panels(writer: BlockWriter) -> list[str]:
    """Lines that do the first rows of a group, in blocks of the largest size, from copies of B."""
    made, axes = writer.made, writer.made.depth
    rows, vectors = _TILES[0]
    if made.result.type.dtype is not f32 or len(axes.extents) != 1:
        return []
    (a_stride,), (b_stride,) = axes.strides
    wide, depth = 8 * vectors, writer.builder.dim(axes.size)
    writer.builder.uses((a_stride, b_stride))
    n = dim_text(made.columns.size)
    at = f"b_at + (first_k + k) * {dim_text(b_stride)} + panel * {PANEL} + 8 * v"
    place = f"(v / {vectors} * {DEPTH} + k) * {wide} + v % {vectors} * 8"
    cells = [(r, v) for r in range(rows) for v in range(vectors)]
    sums = {
        (r, v): f"{writer.out} + out_at + (row + {r}) * {n} + {_plus('column', 8 * v)}"
        for r, v in cells
    }
    tile = [
        f"const f32x8 b{v} = f32x8_get(block + (column / {wide} * {DEPTH} + k) * {wide} + {8 * v});"
        for v in range(vectors)
    ]
    for r in range(rows):
        element = f"{writer.a}[a{r} + (first_k + k) * {dim_text(a_stride)}]"
        tile.append(f"const f32 e{r} = {loaded(made.a.dtype, element)};")
        tile += [f"c{r}_{v} = f32x8_add_product(c{r}_{v}, e{r}, b{v});" for v in range(vectors)]
    return [
        f"if (COPIES_PANELS && width == {PANEL} && last - row >= {2 * rows}) {{",
        f"  f32 block[{DEPTH * PANEL}];",
        f"  const isize first_row = row, last_row = row + (last - row) / {rows} * {rows};",
        f"  for (isize first_k = 0; first_k < {depth}; first_k += {DEPTH}) {{",
        f"    const isize count = least({DEPTH}, {depth} - first_k);",
        "    for (isize k = 0; k < count; k++)",
        f"      for (int v = 0; v < {PANEL // 8}; v++)",
        f"        f32x8_put(block + {place}, {_load(made.b, writer.b, at)});",
        f"    for (row = first_row; row < last_row; row += {rows}) {{",
        *(f"      {line}" for line in writer.row_places(rows)),
        f"      for (isize column = 0; column < {PANEL}; column += {wide}) {{",
        *(
            f"        f32x8 c{r}_{v} = first_k ? f32x8_load({sums[r, v]}) : f32x8_all(0.0f);"
            for r, v in cells
        ),
        "        for (isize k = 0; k < count; k++) {",
        *(f"          {line}" for line in tile),
        "        }",
        *(f"        f32x8_store({sums[r, v]}, c{r}_{v});" for r, v in cells),
        "      }",
        "    }",
        "  }",
        "}",
    ]


def _rest(writer: BlockWriter, block: int, step: int, body: Callable[[], list[str]]) -> list[str]:
    """The loop over the columns that are left of a panel, where there may be some."""
    columns = writer.made.columns.size
    if isinstance(columns, int) and not columns % block:
        return []
    lines = (f"  {line}" for line in body())
    return [f"for (; column < width; column += {step}) {{", *lines, "}"]


def _plus(text: str, number: int) -> str:
    return f"{text} + {number}" if number else text


def dots(writer: BlockWriter) -> _Blocks:
    """Blocks of dot products."""
    return [
        (
            rows,
            [
                "isize column = 0;",
                f"for (; column + {_DOT_COLUMNS} <= width; column += {_DOT_COLUMNS}) {{",
                *(f"  {line}" for line in _dot_block(writer, rows, _DOT_COLUMNS)),
                "}",
                *_rest(writer, _DOT_COLUMNS, 1, lambda r=rows: _dot_block(writer, r, 1)),
            ],
        )
        for rows in _DOT_ROWS
    ]


def _dot_block(writer: BlockWriter, rows: int, columns: int) -> list[str]:
    made, builder = writer.made, writer.builder
    n, depth = dim_text(made.columns.size), builder.dim(made.depth.size)
    lines: list[str] = []
    for c in range(columns):
        split, (at,) = made.columns.place(builder, f"(panel * {PANEL} + column + {c})", f"n{c}_")
        lines += [*split, f"const isize b{c} = {terms('b_at', at)};"]
    sums = [(r, c) for r in range(rows) for c in range(columns)]
    lines.append(f"f32x8 {', '.join(f'c{r}_{c} = f32x8_all(0.0f)' for r, c in sums)};")

    def step(count: str) -> list[str]:
        loads = [
            f"const f32x8 u{r} = {_load(made.a, writer.a, f'a{r} + k', count)};"
            for r in range(rows)
        ]
        loads += [
            f"const f32x8 v{c} = {_load(made.b, writer.b, f'b{c} + k', count)};"
            for c in range(columns)
        ]
        return [
            *loads,
            *(f"c{r}_{c} = f32x8_add_products(c{r}_{c}, u{r}, v{c});" for r, c in sums),
        ]

    stores: list[str] = []
    for r, c in sums:
        at = f"out_at + (row + {r}) * {n} + column + {c}"
        total = stored(made.result.type.dtype, f"f32x8_sum(c{r}_{c})")
        stores.append(f"{writer.out}[{at}] = {total};")
    return [
        *lines,
        "isize k = 0;",
        f"for (; k + 8 <= {depth}; k += 8) {{",
        *(f"  {line}" for line in step("")),
        "}",
        f"if (k < {depth}) {{",
        *(f"  {line}" for line in step(f"{depth} - k")),
        "}",
        *stores,
    ]
