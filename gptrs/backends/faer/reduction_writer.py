"""Code generation of reductions inside the rows of a fused loop.

A sum of floats is more exact than its dtype: blocks of elements are summed and joined in f64; sums
of f64 carry the rounding errors along (Neumaier, 1974). A block is `PART` elements that are summed
over lanes (`gptrs.kernels.rowwise.reduce`) or, where vectors go across rows
(`gptrs.backends.vectorization.crosses_rows`), `GROUPED` elements in groups of `GROUP`:

    part = 0
    for 4 elements a, b, c, d of the block: part += ((a + b) + c) + d
    for each that is left: part += a

The order of a sum depends on nothing but its extents and on which of the two it is.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from gptrs.backends.faer import scalars
from gptrs.backends.faer.expression_writer import ExpressionWriter, Scope
from gptrs.backends.kept_values import kept_value
from gptrs.backends.regions import Region
from gptrs.backends.vectorization import crosses_rows
from gptrs.backends.views import Load, Reduce
from gptrs.ir.dims import Shape, same
from gptrs.ir.ops.reduce import reduce_sum
from gptrs.ir.types import DType, cf64, f32, f64
from gptrs.kernels.rowwise.reduce import LANES, PART

GROUP, GROUPED = 4, 64
_FEW = 4  # times `LANES`


class ReductionWriter(ExpressionWriter):
    """Writes loops inside the rows of a region, and its reductions as such."""

    ROWS: tuple[str, ...] = ()
    """The innermost loop, if a parallel unit has several rows."""

    def __init__(self, region: Region, *, precise: bool = False, shared: bool = False) -> None:
        super().__init__(region, precise=precise, shared=shared)
        self._scratches: set[str] = set()
        self._depth = self._row.depth  # of the loops inside a row
        self._kept = kept_value(region, self._values)

    @contextmanager
    def _loop(self, sizes: Sequence[str], letter: str) -> Generator[Scope]:
        """Loops inside a row; with no sizes, the row itself."""
        if not sizes:
            yield self._row
            return
        several = len(sizes) > 1
        indices = [f"{letter}{k}" if several else letter for k in range(len(sizes))]
        heads = [*self._heads(indices, sizes), *self.ROWS]
        scope = Scope(tuple(indices), self._depth + len(heads))
        yield scope
        self._nest([*self._indented(heads), *scope.lines])

    def _words_of(self, extents: Shape) -> list[str]:
        return [self.words.size(extent, "n") for extent in extents]

    def _sizes(self, part: Reduce) -> list[str]:
        """The sizes of the loops of a reduction; of the axis that is cut into chunks, that of this
        chunk."""
        sizes = self._words_of(part.extents)
        if part.chunks is not None:
            axis, extent = part.chunks
            length, whole = sizes[axis], self.words.size(extent, "n")
            sizes[axis] = self._fresh("length")
            rest = f"{whole} - {self._row.indices[0]} * {length}"
            self.rows.append(f"        {sizes[axis]} = min({length}, {rest})")
        return sizes

    def _heads(self, indices: Sequence[str], sizes: Sequence[str]) -> list[str]:
        return [f"for {i} in range({n}):" for i, n in zip(indices, sizes, strict=True)]

    def _indented(self, heads: Sequence[str]) -> list[str]:
        """The heads of a loop nest in the row."""
        return ["    " * depth + head for depth, head in enumerate(heads, self._depth)]

    def _nest(self, lines: list[str]) -> None:
        """A loop nest in the row, after the lines that the row has."""
        self._row.lines += lines

    def _result_at(self, name: str, region: Region, scope: Scope) -> str:
        """Where an element of the result of ``region`` lies."""
        return f"{name}[{self._at(name, region.output, scope)}]"

    def _reduce(self, part: Reduce) -> str:
        word = part.op.name.removeprefix("reduce_")
        self._ops[word] = part.op
        if part.op is reduce_sum and part.accumulator.is_float:
            total = self._sum(part, word)
        elif part.op is reduce_sum and part.accumulator.is_complex:
            total = self._complex_sum(part, word)
        else:
            total = self._fold(part, word)
        dtype = part.dtype.compute
        if dtype is part.accumulator or part.chunks is not None:  # a partial result is as it is
            return total
        return self._name(self._row, "total", scalars.convert(dtype, total), dtype)

    def _fold(self, part: Reduce, word: str) -> str:
        """A reduction that is no sum of floats, in an accumulator."""
        dtype = part.accumulator
        total = self._start(word, scalars.start(part.op, dtype), dtype)
        with self._blocks(part) if self._in_blocks(part) else self._elements(part) as (scope, x):
            self._set(scope, total, scalars.joined(part.op, dtype, total, x), dtype)
        return total

    def _sum(self, part: Reduce, word: str) -> str:
        """A sum accumulated in f64; of f64, with compensation of rounding errors."""
        is_f64 = part.accumulator is f64
        total = self._start(word, "0.0", f64)
        lost = self._start("lost", "0.0", f64) if is_f64 else ""
        with self._blocks(part) if part.extents else self._elements(part) as (scope, x):
            if is_f64:
                after = self._name(scope, "after", f"{total} + {x}", f64)
                error = scalars.rounding_error(total, x, after)
                self._set(scope, lost, f"{lost} + {error}", f64)
                self._set(scope, total, after, f64)
            else:
                self._set(scope, total, f"{total} + float64({x})", f64)
        if not is_f64 and part.chunks is not None:
            return total
        if not is_f64:
            text = scalars.convert(part.accumulator, total)
            return self._name(self._row, "total", text, part.accumulator)
        text = f"{total} + {lost} if abs({total}) < math.inf else {total}"
        return self._name(self._row, "total", text, f64)

    def _complex_sum(self, part: Reduce, word: str) -> str:
        """A sum accumulated in cf64; of cf64, with compensation of rounding errors (TwoSum)."""
        is_wide, zero = part.accumulator is cf64, scalars.literal(cf64, 0)
        total = self._start(word, zero, cf64)
        lost = self._start("lost", zero, cf64) if is_wide else ""
        in_blocks = part.extents and not self.ROWS  # the rows of a tile are vectors
        with self._blocks(part) if in_blocks else self._elements(part) as (scope, x):
            if is_wide:
                after = self._name(scope, "after", f"{total} + {x}", cf64)
                added = self._name(scope, "added", f"{after} - {total}", cf64)
                error = f"({total} - ({after} - {added})) + ({x} - {added})"
                self._set(scope, lost, f"{lost} + ({error})", cf64)
                self._set(scope, total, after, cf64)
            else:
                self._set(scope, total, f"{total} + complex128({x})", cf64)
        if is_wide:
            exact = f"{total}.real - {total}.real == 0 and {total}.imag - {total}.imag == 0"
            return self._name(self._row, "total", f"{total} + {lost} if {exact} else {total}", cf64)
        if part.chunks is not None:
            return total
        text = scalars.convert(part.accumulator, total)
        return self._name(self._row, "total", text, part.accumulator)

    def _joined(self, part: Reduce, scope: Scope) -> str:
        """All elements of a reduction along one short axis, joined as lanes are."""
        found = self._written_out(part, scope)
        width = LANES // 2
        while width:
            pairs = zip(found, found[width:], strict=False)
            texts = [scalars.joined(part.op, part.accumulator, a, b) for a, b in pairs]
            joined = [self._name(scope, "joined", text, part.accumulator) for text in texts]
            found = [*joined, *found[len(joined) : width]]
            width //= 2
        return found[0]

    def _written_out(self, part: Reduce, scope: Scope) -> list[str]:
        """All elements of a reduction along one short axis."""
        return [
            self._body(part, Scope((str(k),), scope.depth, scope.lines))
            for k in range(int(part.extents[0]))
        ]

    def _in_blocks(self, part: Reduce) -> bool:
        """Whether a reduction that is no sum is faster in blocks."""
        return part.op in scalars.PARTS and part.accumulator.is_float and bool(part.extents)

    def _start(self, word: str, text: str, dtype: DType) -> str:
        """A new variable of the row."""
        name = self._fresh(word)
        self._row.add(f"{name} = {text}")
        return name

    def _set(self, scope: Scope, name: str, text: str, dtype: DType) -> None:
        """A new value for a variable of the row."""
        scope.add(f"{name} = {text}")

    @contextmanager
    def _elements(self, part: Reduce) -> Generator[tuple[Scope, str]]:
        """Loops over all axes of a reduction, with the index of each element and its name."""
        with self._loop(self._sizes(part), "k") as scope:
            yield scope, self._body(part, scope)

    @contextmanager
    def _blocks(self, part: Reduce) -> Generator[tuple[Scope, str]]:
        """Copy blocks of the row to scratch memory by vectorisable loops; where each is reduced,
        and the name of its result."""
        *outer, extent = self._sizes(part)
        if (known := _few_lanes(part)) and not self.ROWS:
            extent = str(known)
        indices = [f"m{axis}" for axis in range(len(outer))]
        heads = self._heads(indices, outer)
        grouped = self._in_groups(part)
        size = GROUPED if grouped else PART
        heads.append(f"for begin in range(0, {extent}, {size}):")
        block = Scope((*indices, "k"), self._depth + len(heads))
        block.add(f"end = min(begin + {size}, {extent})")
        with (self._groups if grouped else self._block)(part, block) as found:
            yield found
        self._nest([*self._indented(heads), *block.lines])

    @contextmanager
    def _block(self, part: Reduce, block: Scope) -> Generator[tuple[Scope, str]]:
        """The lines that reduce one block."""
        if at := self._array_at(part, block):
            text = f"{scalars.PARTS[part.op]}_array({at}, end - begin)"
            yield block, self._name(block, "part", text, part.accumulator)
            return
        inner = Scope(block.indices, block.depth + 1)
        x = self._body(part, inner)
        block.add("for k in range(begin, end):")
        if part.accumulator.is_complex:
            scratch = self._scratches_of_parts(part.accumulator)
            for each, side in zip(scratch, ("real", "imag"), strict=True):
                inner.add(f"{each}[k - begin] = {x}.{side}")
            sums = (f"{scalars.PARTS[part.op]}({each}, end - begin)" for each in scratch)
            text = f"complex({', '.join(sums)})"
        else:
            scratch = self._scratch(part.accumulator)
            inner.add(f"{scratch}[k - begin] = {x}")
            text = f"{scalars.PARTS[part.op]}({scratch}, end - begin)"
        block.lines += inner.lines
        yield block, self._name(block, "part", text, part.accumulator)

    def _in_groups(self, part: Reduce) -> bool:
        """Whether a sum of floats joins groups of elements rather than lanes."""
        return part.op is reduce_sum and crosses_rows(self.region, part)

    @contextmanager
    def _groups(self, part: Reduce, block: Scope) -> Generator[tuple[Scope, str]]:
        """The lines that sum one block in groups."""
        dtype = part.accumulator
        total = self._fresh("part")
        block.add(f"{total} = {scalars.start(part.op, dtype)}")
        self._join_groups(part, block, "begin", "end", total)
        yield block, total

    def _join_groups(self, part: Reduce, block: Scope, begin: str, end: str, total: str) -> None:
        """Join the elements from ``begin`` to ``end`` of the last axis with ``total``: first each
        group on its own, then those that are left."""
        count = end if begin == "0" else f"({end} - {begin})"
        whole = f"for k in range({begin}, {end} - {GROUP - 1}, {GROUP}):"
        rest = f"for k in range({end} - {count} % {GROUP}, {end}):"
        for head, copies in ((whole, GROUP), (rest, 1)):
            self._join_group(part, block, head, copies, total)

    def _join_group(self, part: Reduce, block: Scope, head: str, copies: int, total: str) -> None:
        """A loop that joins so many elements at a time with ``total``."""
        dtype = part.accumulator
        heads = [head, *self.ROWS]
        inner = Scope(block.indices, block.depth + len(heads))
        joined = ""
        for copy in range(copies):
            x = self._body(part, self._copy_of(inner, copy))
            if copy:
                x = scalars.joined(part.op, dtype, joined, x)
            joined = self._name(inner, "joined", x, dtype)
        self._set(inner, total, scalars.joined(part.op, dtype, total, joined), dtype)
        block.lines += ["    " * depth + h for depth, h in enumerate(heads, block.depth)]
        block.lines += inner.lines

    @staticmethod
    def _copy_of(scope: Scope, copy: int) -> Scope:
        """A copy of the body of a loop over ``k``, for element ``k + copy``."""
        if not copy:
            return scope
        index = f"k_{copy}"
        scope.add(f"{index} = k + {copy}")
        return Scope((*scope.indices[:-1], index), scope.depth, scope.lines)

    def _array_at(self, part: Reduce, block: Scope) -> str:
        """The array whose elements a block reduces, and the index of the first, if they are
        adjacent and need no arithmetic."""
        body = part.body
        if not isinstance(body, Load) or body.dtype is not part.accumulator:
            return ""
        if not same(body.view.strides[-1], 1) or body.dtype.is_complex:
            return ""
        name, scope = self._input(body), Scope((*block.indices[:-1], "begin"), block.depth)
        return f"{name}, {self._at(name, body.view, scope)}"

    def _body(self, part: Reduce, scope: Scope) -> str:
        """An element of a reduction, as the accumulator's dtype."""
        x = self._emit(part.body, scope)
        if part is self._kept:
            place = self._result_at("out", self.region, scope)
            scope.add(f"{place} = {scalars.stored(part.body.dtype, x)}")
        if part.body.dtype.compute is part.accumulator:
            return x
        text = scalars.convert(part.accumulator, x)
        return self._name(scope, "wide", text, part.accumulator)

    def _scratches_of_parts(self, dtype: DType) -> tuple[str, str]:
        """Scratch memory for the real and for the imaginary parts of a block."""
        part = f64 if dtype is cf64 else f32
        return self._scratch(part), self._scratch(part, "imaginary")

    def _scratch(self, dtype: DType, word: str = "scratch") -> str:
        """Scratch memory for a block of a row; allocated in the row, so that each thread has its
        own."""
        pointer, count = scalars.local_pointer(dtype), PART + LANES
        name, line = f"{word}{dtype.bits}", f"local_{pointer}({count})"
        if name not in self._scratches:
            self._scratches.add(name)
            self._row.add(f"{name} = {line}")
        return name


def _few_lanes(part: Reduce) -> int:
    """The length of a reduction that is a few whole `LANES`, if it is known, or 0: in the text of a
    loop, so that LLVM writes it out and keeps the lanes in registers."""
    extent = part.extents[-1]
    if part.chunks is not None or not isinstance(extent, int) or extent % LANES:
        return 0
    return extent if 0 < extent <= _FEW * LANES else 0
