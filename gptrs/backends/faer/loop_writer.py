"""Code generation of fused loops: a region as Python source for Numba.

Input: a region; output: the lines before, at and inside of its outermost loop, and the words that
they use. `gptrs.backends.faer.render` makes a function of them.

A row, the parallel unit, computes its reductions one after the other and then loops over its
elements. Expressions that do not depend on an index inside the row are computed once a row; in a
region without rows, before the loop.

A sum of floats is more exact than its dtype: blocks of `PART` elements are summed over lanes
(`gptrs.kernels.rowwise.reduce`) and joined in f64; sums of f64 carry the rounding errors along
(Neumaier, 1974). Blocks begin at multiples of `PART`, so that the order of a sum depends on nothing
but its length.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gptrs.backends.faer import scalars
from gptrs.backends.faer.argument_block import ArgumentWords
from gptrs.backends.faer.scalar_functions import attribute, function_of
from gptrs.backends.regions import Region
from gptrs.backends.value_numbering import ValueNumbering
from gptrs.backends.views import Apply, Expression, Iota, Literal, Load, Reduce, View
from gptrs.ir.dims import Dim, DimLike, Shape, same
from gptrs.ir.ops.elementwise import add, cast, div, mul, remainder, shift_left, shift_right, sub
from gptrs.ir.ops.reduce import reduce_sum
from gptrs.ir.program import Operation, Value
from gptrs.ir.types import DType, f64
from gptrs.kernels.rowwise.reduce import LANES, PART


@dataclass
class Scope:
    """One loop: its lines, the names of expressions in it, and its index along each axis."""

    indices: tuple[str, ...]
    depth: int
    lines: list[str] = field(default_factory=list[str])
    names: dict[int, str] = field(default_factory=dict[int, str])

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)


class LoopWriter:
    """Writes the loops of one region, and collects its inputs and the scalars of its argument
    block."""

    def __init__(self, region: Region, *, precise: bool = False, shared: bool = False) -> None:
        self._precise = precise
        self._common = () if shared else _COMMON
        self._exact = _SHIFTING if shared else _SHIFTING | _DIVIDING
        self.region = region
        self.inputs: dict[Value, str] = {}
        self.notes: list[str] = []
        self.words = ArgumentWords()
        self.head: list[str] = []
        self.rows: list[str] = []
        self.lines: list[str] = []
        self.title: list[str] = []
        self.functions: dict[str, str] = {}  # scalar rules, by name
        self._counts: dict[str, int] = {}
        self._ops: dict[str, Operation] = {}  # what it computes, by the words for it
        self._bases: dict[object, str] = {}
        self._axes: dict[Value, str] = {}
        self._scratches: set[str] = set()
        self._row_count = len(region.rows)
        self._values = ValueNumbering(self._row_count)
        depth = 1 if region.is_flat else 2  # a flat loop has no row: what is fixed comes before it
        self._row = Scope(tuple(f"i{k}" for k in range(self._row_count)), depth)
        self._depth = depth  # of the loops inside a row

    def write(self) -> None:
        region, row = self.region, self._row
        if region.is_flat:
            inner = Scope(("j",), 2)
            self._store(inner)
            self.head += row.lines
            self.lines = inner.lines
        else:
            self._split_rows()
            with self._loop(region.inner, "j") as inner:
                self._store(inner)
            self.lines = self._row_lines()
        self.notes = [self._axes[v] for v in self.inputs]
        self.notes.append(self._note(region.result, region.output))
        self.title = self._title()

    def _title(self) -> list[str]:
        words = [word for word in self._counts if word in self._ops]
        return ([w for w in words if self._ops[w] not in _DULL] or words or ["copy"])[:4]

    @property
    def loop(self) -> str:
        """The head of the outermost loop, over the parallel extent."""
        return f"for {'j' if self.region.is_flat else 'row'} in range(first, last):"

    @property
    def extent(self) -> DimLike:
        """The parallel extent."""
        return self.region.extent

    def _split_rows(self) -> None:
        """The indices of a row along the axes of rows."""
        if self._row_count == 1:
            self._row.indices = ("row",)
        else:
            self._split("row", self._row_count - 1)

    def _split(self, rest: str, last: int) -> None:
        """The indices along the axes of rows up to ``last``, from one that counts them all."""
        for axis in range(last, 0, -1):
            extent = self.words.size(self.region.rows[axis], "n")
            self.rows.append(f"        i{axis} = {rest} % {extent}")
            self.rows.append(f"        {'i0' if axis == 1 else 'rest'} = {rest} // {extent}")
            rest = "rest"

    @contextmanager
    def _loop(self, extents: Shape, letter: str) -> Generator[Scope]:
        """Loops inside a row; with no extents, the row itself."""
        if not extents:
            yield self._row
            return
        several = len(extents) > 1
        indices = [f"{letter}{k}" if several else letter for k in range(len(extents))]
        scope = Scope(tuple(indices), self._depth + len(extents))
        heads = [
            "    " * (self._depth + k) + f"for {index} in range({self.words.size(extent, 'n')}):"
            for k, (index, extent) in enumerate(zip(indices, extents, strict=True))
        ]
        yield scope
        self._nest([*heads, *scope.lines])

    def _nest(self, lines: list[str]) -> None:
        """A loop nest in the row, after the lines that the row has."""
        self._row.lines += lines

    def _row_lines(self) -> list[str]:
        return self._row.lines

    def _store(self, scope: Scope) -> None:
        region = self.region
        value = self._emit(region.expression, scope)
        dtype = region.result.type.dtype
        if dtype.name == "bf16" and not value.isidentifier():
            value = self._name(scope, "wide", value, dtype.compute)
        at = self._at("out", region.output, scope)
        scope.add(f"out[{at}] = {scalars.stored(dtype, value)}")

    def _emit(self, part: Expression, scope: Scope) -> str:
        """The name of an expression's value, or its text if it is a constant."""
        if isinstance(part, Literal):
            return self._literal(part, exact=False)
        number = self._values.number(part)
        here = scope if self._values.varies(part) else self._row
        for names in (here.names, self._row.names):
            if number in names:
                return names[number]
        match part:
            case Reduce():
                name = self._reduce(part)
            case Load():
                at = self._at(self._input(part), part.view, here)
                text = scalars.loaded(part.dtype, f"{self._input(part)}[{at}]")
                name = self._name(here, "a", text, part.dtype.compute)
            case Iota():
                place = self._at("iota", part.view, here)
                name = self._name(here, "iota", scalars.convert(part.dtype, place), part.dtype)
            case Apply():
                name = self._apply(part, here)
        here.names[number] = name
        return name

    def _apply(self, part: Apply, scope: Scope) -> str:
        exact = part.op in self._exact and not part.dtype.is_float
        operands = tuple(
            self._literal(o, exact=exact) if isinstance(o, Literal) else self._emit(o, scope)
            for o in part.operands
        )
        self._ops[part.op.name] = part.op
        dtype = part.operands[-1].dtype.compute if part.op is not cast else part.operands[0].dtype
        last = part.operands[-1]
        result = part.dtype if part.op is cast else part.dtype.compute
        number = last.value if isinstance(last, Literal) else None
        rule = scalars.RULES.get(part.op)
        if rule is None:
            text = self._call(part, operands, dtype, result)
        else:
            text = rule(scalars.Scalars(operands, dtype, result, number))
        name = self._name(scope, part.op.name, text, part.dtype.compute)
        if self._precise and part.dtype.is_float and part.dtype.compute is not part.dtype:
            text = scalars.rounded(part.dtype, name)
            name = self._name(scope, "rounded", text, part.dtype.compute)
        return name

    def _call(self, part: Apply, operands: tuple[str, ...], dtype: DType, result: DType) -> str:
        """A call to the function that the scalar rule of an op becomes."""
        name, text = function_of(part.op, dtype)
        self.functions[name] = text
        given = [*operands, *(attribute(value, dtype) for _, value in part.attrs)]
        return scalars.convert(result, f"{name}({', '.join(given)})")

    def _reduce(self, part: Reduce) -> str:
        word = part.op.name.removeprefix("reduce_")
        self._ops[word] = part.op
        if part.op is reduce_sum and part.accumulator.is_float:
            total = self._sum(part, word)
        else:
            total = self._fold(part, word)
        dtype = part.dtype.compute
        if dtype is part.accumulator:
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
        if not is_f64:
            text = scalars.convert(part.accumulator, total)
            return self._name(self._row, "total", text, part.accumulator)
        text = f"{total} + {lost} if abs({total}) < math.inf else {total}"
        return self._name(self._row, "total", text, f64)

    def _in_blocks(self, part: Reduce) -> bool:
        """Whether a reduction that is no sum is faster in blocks."""
        return part.op in scalars.PARTS and part.accumulator.is_float and len(part.extents) == 1

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
        with self._loop(part.extents, "k") as scope:
            yield scope, self._body(part, scope)

    @contextmanager
    def _blocks(self, part: Reduce) -> Generator[tuple[Scope, str]]:
        """Copy blocks of the row to scratch memory by vectorisable loops; where each is reduced,
        and the name of its result."""
        *outer, last = [self.words.size(extent, "n") for extent in part.extents]
        depth = self._depth + len(outer)
        heads = [
            "    " * (self._depth + axis) + f"for m{axis} in range({extent}):"
            for axis, extent in enumerate(outer)
        ]
        heads.append("    " * depth + f"for begin in range(0, {last}, {PART}):")
        block = Scope((*(f"m{axis}" for axis in range(len(outer))), "k"), depth + 1)
        block.add(f"end = min(begin + {PART}, {last})")
        with self._block(part, block) as found:
            yield found
        self._nest([*heads, *block.lines])

    @contextmanager
    def _block(self, part: Reduce, block: Scope) -> Generator[tuple[Scope, str]]:
        """The lines that reduce one block."""
        if at := self._array_at(part, block):
            text = f"{scalars.PARTS[part.op]}_array({at}, end - begin)"
            yield block, self._name(block, "part", text, part.accumulator)
            return
        scratch = self._scratch(part.accumulator)
        inner = Scope(block.indices, block.depth + 1)
        inner.add(f"{scratch}[k - begin] = {self._body(part, inner)}")
        block.add("for k in range(begin, end):")
        block.lines += inner.lines
        text = f"{scalars.PARTS[part.op]}({scratch}, end - begin)"
        yield block, self._name(block, "part", text, part.accumulator)

    def _array_at(self, part: Reduce, block: Scope) -> str:
        """The array whose elements a block reduces, and the index of the first, if they are
        adjacent and need no arithmetic."""
        body = part.body
        if not isinstance(body, Load) or body.dtype is not part.accumulator:
            return ""
        if not same(body.view.strides[-1], 1):
            return ""
        name, scope = self._input(body), Scope((*block.indices[:-1], "begin"), block.depth)
        return f"{name}, {self._at(name, body.view, scope)}"

    def _body(self, part: Reduce, scope: Scope) -> str:
        """An element of a reduction, as the accumulator's dtype."""
        x = self._emit(part.body, scope)
        if part.body.dtype.compute is part.accumulator:
            return x
        text = scalars.convert(part.accumulator, x)
        return self._name(scope, "wide", text, part.accumulator)

    def _scratch(self, dtype: DType) -> str:
        """Scratch memory for a block of a row; allocated in the row, so that each thread has its
        own."""
        pointer, count = scalars.POINTERS[dtype.name], PART + LANES
        name, line = f"scratch{dtype.bits}", f"local_{pointer}({count})"
        if name not in self._scratches:
            self._scratches.add(name)
            self._row.add(f"{name} = {line}")
        return name

    def _literal(self, part: Literal, *, exact: bool) -> str:
        """A number: in the text where it is a common one or ``exact``, else a word of the argument
        block."""
        value = part.value
        if isinstance(value, Dim):
            return scalars.convert(part.dtype, self.words.size(value, "size"))
        assert isinstance(value, bool | int | float)
        if exact or part.dtype.is_bool or value in self._common or value != value:
            return scalars.literal(part.dtype, value)
        word, new = self.words.number(part.dtype, value)
        name = word.replace("number", "c")
        if new:
            self.head.append(f"    {name} = {scalars.convert(part.dtype, word)}")
        return name

    def _input(self, part: Load) -> str:
        if part.value not in self.inputs:
            self.inputs[part.value] = f"x{len(self.inputs)}"
            self._axes[part.value] = self._note(part.value, part.view)
        return self.inputs[part.value]

    def _note(self, value: Value, view: View) -> str:
        """The dtype of an array and the loops that its elements depend on."""
        letters = [f"i{k}" if self._row_count > 1 else "row" for k in range(self._row_count)]
        count = len(view.shape) - self._row_count
        letters += ["j"] * count
        seen = [n for n, s in zip(letters, view.strides, strict=True) if not same(s, 0)]
        dtype = value.type.dtype.name
        bits = ", its bits as uint16" if dtype in ("bf16", "f16") else ""  # not known to Numba
        return f"{dtype}[{', '.join(seen)}]{bits}"

    def _at(self, name: str, view: View, scope: Scope) -> str:
        """The index of an element: the row's part under a name, then the inner loops."""
        rows, inner = view.strides[: self._row_count], view.strides[self._row_count :]
        key = name, str(view.offset), tuple(map(str, rows))
        if key not in self._bases:
            terms = [
                f"{index} * {self.words.size(stride, 's', shared=False)}"
                for index, stride in zip(self._row.indices, rows, strict=False)
                if not same(stride, 0)
            ]
            if not same(view.offset, 0):
                terms.insert(0, self.words.size(view.offset, "offset", shared=False))
            self._bases[key] = self._base(name, terms)
        terms = [self._bases[key]] if self._bases[key] else []
        terms += self._terms_in_tile(rows, key)
        for index, stride in zip(scope.indices, inner, strict=False):
            if same(stride, 1):
                terms.append(index)
            elif not same(stride, 0):
                step = self.words.size(stride, "step", shared=(key, index, str(stride)))
                terms.append(f"{index} * {step}")
        return " + ".join(terms) or "0"

    def _terms_in_tile(self, strides: Shape, key: object) -> list[str]:
        """The part of an index that a row of a tile adds; one row is no tile."""
        return []

    def _base(self, name: str, terms: list[str]) -> str:
        if not terms:
            return ""
        base = self._fresh(f"{name}_at_")
        text = f"{base} = {' + '.join(terms)}"
        if self.region.is_flat:
            self.head.append(f"    {text}")
        else:
            self.rows.append(f"        {text}")
        return base

    def _name(self, scope: Scope, word: str, text: str, dtype: DType) -> str:
        """A name for the value of ``text``, whose dtype is ``dtype``."""
        if text.isidentifier():
            return text
        name = self._fresh(word)
        scope.add(f"{name} = {text}")
        return name

    def _fresh(self, word: str) -> str:
        self._counts[word] = self._counts.get(word, -1) + 1
        return f"{word}{self._counts[word]}"


_DULL = frozenset([add, sub, mul, div])  # in a title they say little
_COMMON = (0, 1, -1, math.inf, -math.inf)
"""Numbers that stay in the text: loops are often faster for them."""
_SHIFTING = frozenset([shift_left, shift_right])
_DIVIDING = frozenset([div, remainder])
"""Ops on integers that are much faster by a number that the compiler knows."""
