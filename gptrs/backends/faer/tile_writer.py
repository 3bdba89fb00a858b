"""Code generation of fused loops over tiles of rows, for regions whose rows are adjacent in memory.

    tile = first                               # tiles of 128 rows: parallel
    while tile < last:
        live = rows here                       # of as many tiles as fit into the caches
        for t < live: total[t] = 0             # variables of a row are arrays on the stack
        for begin in 0, 64, … of the reduced axis:
            for t < live: part[t] = 0
            for k in begin, begin + 4, … end:
                for t < live: part[t] += ((x[k, row + t] + x[k + 1, row + t]) + …) + …
            for t < live: total[t] += part[t]  # in f64
        for j in the axes of a row:
            for t < live: out[j, row + t] = …
        tile += tiles here

`gptrs.backends.faer.loop_writer` computes one row after the other, with vectors along the row. Here
vectors go across rows: a sum over the first axis reads memory in order, and a short row has no
overhead of its own. A sum that reads along the row joins lanes, in memory, as it does there:

        for begin in 0, 512, … of the reduced axis:
            lanes[32, TILE] = 0
            for k in begin … end:
                for t < live: lanes[k mod 32, t] += x[row + t, k]
            join the lanes by halves
            for t < live: total[t] += lanes[0, t]

An array in memory whose rows are short is read from front to back, the elements of a group one
after the other:

            for k in begin, begin + 4, … end:
                for t < live: group[t] = x[k, row + t]
                for t < live: group[t] += x[k + 1, row + t]
                …
                for t < live: part[t] += group[t] + x[k + 3, row + t]

Short rows that lie one behind the other are copied first, so that vectors across them are adjacent,
and what is stored in such rows is copied last:

        for t < live: for k in a row: near[k, t] = x[row + t, k]

Each row gets the bits that it gets there: its elements are joined in the same order.
`gptrs.backends.vectorization` chooses between the two.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from gptrs.backends.faer import scalars
from gptrs.backends.faer.expression_writer import Scope
from gptrs.backends.faer.loop_writer import LoopWriter
from gptrs.backends.machine import MACHINE
from gptrs.backends.regions import Region
from gptrs.backends.vectorization import (
    VECTOR,
    crosses_rows,
    has_one_pass,
    has_short_rows,
    usual_product,
)
from gptrs.backends.views import Load, Reduce, View, walk
from gptrs.ir.dims import DimLike, Shape, product, same
from gptrs.ir.ops.reduce import reduce_prod, reduce_sum
from gptrs.ir.program import Operation
from gptrs.ir.types import DType
from gptrs.kernels.rowwise.reduce import LANES, TILE

_JOIN: dict[Operation, str] = {reduce_sum: "join_sums", reduce_prod: "join_products"}


_FEW = 32
"""The rows up to which their number, if it is known, is in the text of a loop: LLVM writes out the
loops over them, and keeps in registers what lies on the stack."""
_MOST = 8
"""The most tiles that are computed together: 1024 rows, whose lines of memory are prefetched. With
one tile at a time sums of columns take up to 2.5 times as long."""


class TileWriter(LoopWriter):
    """Writes the loops of a region whose parallel unit is a tile of `TILE` adjacent rows."""

    ROWS = ("for t in range(live):",)

    def __init__(self, region: Region, *, precise: bool = False, shared: bool = False) -> None:
        super().__init__(region, precise=precise, shared=shared)
        self._few = 0 if shared else _FEW
        self._nests: list[str] = []  # what comes before the lines of `_row`, which loop over `t`
        self._elements_of: dict[str, str] = {}  # where a value lies, by the words that read it
        self._arrays: dict[str, DType] = {}  # on the stack, an element for each row
        self._near: dict[object, str] = {}  # copies of the rows of a tile, by what they are of
        self._copies: list[str] = []
        self._stores: list[str] = []
        self._row.depth = 3

    def write(self) -> None:
        super().write()
        self.grain = together = self._together()
        for name, dtype in self._arrays.items():
            pointer = scalars.local_pointer(dtype)
            self.head.append(f"    {name} = local_{pointer}({together * TILE})")
        most = f"{together * TILE}"
        if together > 1 and not has_one_pass(self.region):
            most = self._within_cache(together)
        count = self.region.rows[-1]
        if isinstance(count, int) and count <= self._few:
            live = str(count)
        else:
            live = f"min({most}, (last - tile) * {TILE}, {self.words.size(count, 'n')} - row)"
        self.rows.append(f"        live = {live}")
        self.rows += self._copies
        self.lines += self._stores
        self.lines.append(f"        tile += (live + {TILE - 1}) // {TILE}")
        self.head.append("    tile = first")

    def _together(self) -> int:
        """The tiles that are computed together: as many as have their variables in the first cache;
        one where lanes of each row lie in memory."""
        size = sum(max(dtype.bits, 8) // 8 for dtype in self._arrays.values()) * TILE
        alone = bool(self._scratches or self._near)
        return 1 if alone else max(1, min(_MOST, MACHINE.l1_bytes // max(1, size)))

    def _load(self, part: Load, scope: Scope) -> str:
        dtype = part.dtype
        if scope is self._row or dtype.is_bool or not self._is_short(part.view):
            return super()._load(part, scope)
        key = part.value, part.bits, str((part.view.offset, part.view.strides))
        if key not in self._near:
            array = self._input(part)
            at, near = self._copy(key, array, part.view, dtype.compute)
            self._copies[-1] += f"{near} = {scalars.loaded(dtype, at)}"
        return self._name(scope, "a", self._near_at(key, scope), dtype.compute)

    def _result_at(self, name: str, region: Region, scope: Scope) -> str:
        view, dtype = region.output, region.result.type.dtype
        if scope is self._row or dtype.bits < 32 or not self._is_short(view):
            return super()._result_at(name, region, scope)
        if name not in self._near:
            before, self._copies = self._copies, []
            at, near = self._copy(name, name, view, dtype)
            self._copies[-1] += f"{at} = {near}"
            self._stores, self._copies = self._copies, before
        return self._near_at(name, scope)

    def _near_at(self, key: object, scope: Scope) -> str:
        return f"{self._near[key]}[{scope.indices[-1]} * {TILE} + t]"

    def _is_short(self, view: View) -> bool:
        return has_short_rows(view, self._row_count)

    def _copy(self, key: object, array: str, view: View, dtype: DType) -> tuple[str, str]:
        """Begin the loops of a copy; an element in memory and its copy."""
        near, (length,) = self._fresh("near"), view.shape[self._row_count :]
        self._near[key] = near
        room = 1 << (int(length) - 1).bit_length()  # so that few lengths have texts of their own
        self.head.append(f"    {near} = local_{scalars.local_pointer(dtype)}({room * TILE})")
        inner = Scope(("k",), 4)
        self._copies += [
            f"        for k in range({self.words.size(length, 'n')}):",
            f"            {self.ROWS[0]}",
            "                ",
        ]
        return f"{array}[{self._at(array, view, inner)}]", f"{near}[k * {TILE} + t]"

    def _within_cache(self, together: int) -> str:
        """The rows that are computed together if they are read several times: those whose elements
        stay in the second cache, unless not even a tile does."""
        reductions = [p for p in walk(self.region.expression) if isinstance(p, Reduce)]
        longest = max((r.extents for r in reductions), key=len, default=())
        size = self.words.size(product(longest), "n")
        arrays = [*self.inputs, *([self.region.result] if self.region.inner else [])]
        fit = MACHINE.l2_bytes // (TILE * sum(max(v.type.dtype.bits, 8) // 8 for v in arrays))
        self.head.append(f"    most = min({together}, {fit} // max({size}, 1)) * {TILE}")
        self.head.append(f"    most = most if most > 0 else {together * TILE}")
        return "most"

    @property
    def loop(self) -> str:
        return "while tile < last:"

    @property
    def extent(self) -> DimLike:
        return product((*self.region.rows[:-1], self._tiles))

    @property
    def _tiles(self) -> DimLike:
        """The tiles along the last axis of rows."""
        return (self.region.rows[-1] + (TILE - 1)) // TILE

    def _split_rows(self) -> None:
        place = "tile"
        if self._row_count > 1:
            tiles = self.words.size(self._tiles, "n")
            self.rows.append(f"        rest = tile // {tiles}")
            place = f"tile % {tiles}"
        self.rows.append(f"        row = {place} * {TILE}")
        *outer, _ = self._row.indices
        self._row.indices = (*outer, "row")
        if self._row_count == 2:
            self.rows.append("        i0 = rest")
        else:
            self.rows += [f"        {line}" for line in self._split("rest", self._row_count - 2)]

    def _terms_in_tile(self, strides: Shape, key: object) -> list[str]:
        stride = strides[-1]
        if same(stride, 0):
            return []
        if same(stride, 1):
            return ["t"]
        return [f"t * {self.words.size(stride, 'step', shared=(key, 't', str(stride)))}"]

    def _nest(self, lines: list[str]) -> None:
        self._nests = [*self._row_lines(), *lines]
        self._row.lines = []

    def _row_lines(self) -> list[str]:
        rows = [f"        {self.ROWS[0]}", *self._row.lines] if self._row.lines else []
        return [*self._nests, *rows]

    def _start(self, word: str, text: str, dtype: DType) -> str:
        name = self._array(word, dtype)
        self._set(self._row, name, text, dtype)
        return name

    def _set(self, scope: Scope, name: str, text: str, dtype: DType) -> None:
        stored = f"uint8({text})" if dtype.is_bool else text
        scope.add(f"{self._elements_of[name]} = {stored}")

    def _name(self, scope: Scope, word: str, text: str, dtype: DType) -> str:
        if scope is self._row and not text.isidentifier():
            return text if text in self._elements_of else self._start(word, text, dtype)
        return super()._name(scope, word, text, dtype)

    def _array(self, word: str, dtype: DType) -> str:
        """An element for each row of a tile, on the stack; the words that read it."""
        name = self._fresh(word)
        self._arrays[name] = dtype
        text = f"({name}[t] != 0)" if dtype.is_bool else f"{name}[t]"
        self._elements_of[text] = f"{name}[t]"
        return text

    def _in_blocks(self, part: Reduce) -> bool:
        return part.op in _JOIN and super()._in_blocks(part)

    def _fold(self, part: Reduce, word: str) -> str:
        if self._in_blocks(part) or not crosses_rows(self.region, part):
            return super()._fold(part, word)
        total = self._start(word, scalars.start(part.op, part.accumulator), part.accumulator)
        *outer, last = self._sizes(part)
        indices = [f"m{axis}" for axis in range(len(outer))]
        heads = self._heads(indices, outer)
        nest = Scope((*indices, "k"), self._depth + len(heads))
        self._join_groups(part, nest, "0", last, total)
        self._nest([*self._indented(heads), *nest.lines])
        return total

    def _join_group(self, part: Reduce, block: Scope, head: str, copies: int, total: str) -> None:
        if copies == 1 or not self._reads_in_order(part):
            super()._join_group(part, block, head, copies, total)
            return
        dtype, group = part.accumulator, self._array("group", part.accumulator)
        block.add(head)
        for copy in range(copies):
            rows = Scope(block.indices, block.depth + 2)
            x = self._body(part, self._copy_of(rows, copy))
            x = scalars.joined(part.op, dtype, group, x) if copy else x
            if copy < copies - 1:
                self._set(rows, group, x, dtype)
            else:
                x = self._name(rows, "joined", x, dtype)
                self._set(rows, total, scalars.joined(part.op, dtype, total, x), dtype)
            block.lines += [f"    {line}" for line in self._over_rows(block)] + rows.lines

    def _reads_in_order(self, part: Reduce) -> bool:
        """Whether a reduction reads one array that no cache holds, and from front to
        back if it reads one row after the other: prefetching follows one stream further than four
        that lie in a page."""
        row = self._row_count - 1
        innermost, width = row + len(part.extents), self.region.rows[row]
        loads = [load for load in walk(part.body, into=False) if isinstance(load, Load)]
        views = [load.view for load in loads if load.view.depends(innermost)]
        if len(views) != 1 or not isinstance(width, int) or not VECTOR <= width <= _MOST * TILE:
            return False
        strides = views[0].strides
        size = usual_product((*self.region.rows, *part.extents)) * max(loads[0].dtype.bits, 8) // 8
        return same(strides[row], 1) and same(strides[innermost], width) and size > MACHINE.l3_bytes

    @contextmanager
    def _groups(self, part: Reduce, block: Scope) -> Generator[tuple[Scope, str]]:
        total = self._array("part", part.accumulator)
        rows = Scope((), block.depth + 1)
        self._set(rows, total, scalars.start(part.op, part.accumulator), part.accumulator)
        block.lines += [*self._over_rows(block), *rows.lines]
        self._join_groups(part, block, "begin", "end", total)
        rows = Scope((), block.depth + 1)
        yield rows, total
        block.lines += [*self._over_rows(block), *rows.lines]

    def _over_rows(self, scope: Scope) -> list[str]:
        return ["    " * scope.depth + head for head in self.ROWS]

    @contextmanager
    def _block(self, part: Reduce, block: Scope) -> Generator[tuple[Scope, str]]:
        dtype = part.accumulator
        lanes = self._lanes(dtype)
        x = f"{lanes}[lane + t]"
        inner = Scope(block.indices, block.depth + 2)
        inner.add(f"{x} = {scalars.joined(part.op, dtype, x, self._body(part, inner))}")
        start = scalars.start(part.op, dtype)
        block.add(f"used = min(end - begin, {LANES})")
        block.add(f"for t in range(used * {TILE}):")
        block.add(f"    {lanes}[t] = {start}")
        block.add("for k in range(begin, end):")
        block.add(f"    lane = (k - begin) % {LANES} * {TILE}")
        block.add(f"    {self.ROWS[0]}")
        block.lines += inner.lines
        block.add(f"{_JOIN[part.op]}({lanes}, used)")
        block.add(self.ROWS[0])
        rows = Scope((), block.depth + 1)
        yield rows, f"{lanes}[t]"
        block.lines += rows.lines

    def _lanes(self, dtype: DType) -> str:
        """Memory on the stack for the lanes of a block of each row."""
        name = f"lanes{dtype.bits}"
        if name not in self._scratches:
            self._scratches.add(name)
            count = LANES * TILE
            self.head.append(f"    {name} = local_{scalars.local_pointer(dtype)}({count})")
        return name
