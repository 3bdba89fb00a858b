"""From a region to the source of its kernel, and to a NumPy function that reads the same.

A region's argument block holds the addresses of its inputs, that of its result, then words: sizes,
offsets, and strides other than 0 and 1 of the innermost loops, in the order of their first use. So
the text says nothing of names and sizes, and equal loops have equal kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gptrs.backends.faer import scalars
from gptrs.backends.regions import Region
from gptrs.backends.views import Apply, Expression, Iota, Literal, Load, Reduce, View
from gptrs.ir.dims import Dim, DimLike, Shape, same
from gptrs.ir.program import Value
from gptrs.ir.types import DType
from gptrs.kernels.reduce import PART


@dataclass(frozen=True)
class Rendered:
    """A region's kernel in text, and what its argument block holds."""

    name: str
    source: str
    """A kernel for `gptrs.kernels.compile.compile_source`."""
    standalone: str
    """The same loops as a Numba function of flat arrays and numbers, parallel by itself."""
    inputs: tuple[Value, ...]
    result: Value
    words: Shape
    extent: DimLike


def render(region: Region) -> Rendered:
    """The source of the kernel that computes ``region``."""
    writer = _Writer(region)
    writer.write()
    body = "\n".join([*writer.head, "{loop}", *writer.rows, *writer.lines])
    pointers = [*writer.inputs, region.result]
    kinds = [scalars.POINTERS[v.type.dtype.name] for v in pointers]
    names = [f"x{i}" for i in range(len(pointers) - 1)] + ["out"]
    digest = hashlib.sha256("\n".join([*kinds, *writer.notes, body]).encode()).hexdigest()
    name = f"{'_'.join(writer.title)}_{digest[:12]}"
    block = [
        f"    {each} = {kind}(block[{i}])  # {note}"
        for i, (each, kind, note) in enumerate(zip(names, kinds, writer.notes, strict=True))
    ]
    block += [f"    {word} = block[{i}]" for i, word in enumerate(writer.names, len(names))]
    counter = "j" if region.is_flat else "row"
    kernel = [
        f"def {name}(arguments, first, last):",
        "    block = words(arguments)",
        *block,
        body.format(loop=f"    for {counter} in range(first, last):"),
    ]
    notes = [f"    # {n}: {note}" for n, note in zip(names, writer.notes, strict=True)]
    used = [name for name in _FROM_KERNELS if f"{name}(" in body]
    alone = [
        *_IMPORTS,
        *([f"from gptrs.kernels.source import {', '.join(used)}"] if used else []),
        "",
        "",
        "@njit(parallel=True, error_model='numpy')",
        f"def {name}({', '.join([*names, *writer.names, 'extent'])}):",
        *notes,
        body.format(loop=f"    for {counter} in prange(extent):"),
    ]
    return Rendered(
        name,
        "\n".join(kernel) + "\n",
        "\n".join(alone) + "\n",
        tuple(writer.inputs),
        region.result,
        tuple(writer.names.values()),
        region.extent,
    )


_IMPORTS = (
    "import math",
    "from numba import njit, prange",
    "from numpy import float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64",
)
# What a loop may use that is neither Python's nor NumPy's.
_FROM_KERNELS = (
    *("bits_float", "float_bits", "float_half", "half_float"),
    *("erf32", "exp32", "log32", "tanh32"),
    *("maximum_of", "minimum_of", "product_of", "sum_of", "scratch_doubles", "scratch_floats"),
)


@dataclass
class _Scope:
    """A loop: its lines, what each expression is called in it, and its index along each axis."""

    indices: tuple[str, ...]
    depth: int
    lines: list[str] = field(default_factory=list[str])
    names: dict[int, str] = field(default_factory=dict[int, str])

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)


class _Writer:
    """Writes the loops of one region; collects its inputs and words on the way."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.inputs: dict[Value, str] = {}
        self.notes: list[str] = []
        self.names: dict[str, DimLike] = {}
        self.head: list[str] = []
        self.rows: list[str] = []
        self.lines: list[str] = []
        self.title: list[str] = []
        self._numbers: dict[object, int] = {}
        self._number_of: dict[Expression, int] = {}
        self._counts: dict[str, int] = {}
        self._bases: dict[object, str] = {}
        self._axes: dict[Value, str] = {}
        self._scratches: set[str] = set()
        self._row_count = len(region.rows)
        self._row = _Scope(tuple(f"i{k}" for k in range(self._row_count)), 2)

    def write(self) -> None:
        region, row = self.region, self._row
        if region.is_flat:
            inner = _Scope(("j",), 2)
            self._store(inner)
            row.lines += inner.lines
        else:
            self._split_rows()
            with self._loop(region.inner, "j") as inner:
                self._store(inner)
        self.lines = row.lines
        self.notes = [self._axes[v] for v in self.inputs]
        self.notes.append(self._note(region.result, region.output))
        self.title = self._title()

    def _title(self) -> list[str]:
        ops = [word for word in self._counts if word in scalars.RULES or word in _REDUCED]
        return ([op for op in ops if op not in _DULL] or ops or ["copy"])[:4]

    def _split_rows(self) -> None:
        """The indices of a row along the axes of rows."""
        if self._row_count == 1:
            self._row.indices = ("row",)
            return
        rest = "row"
        for axis in range(self._row_count - 1, 0, -1):
            extent = self._word(self.region.rows[axis], "n")
            self.rows.append(f"        i{axis} = {rest} % {extent}")
            self.rows.append(f"        {'i0' if axis == 1 else 'rest'} = {rest} // {extent}")
            rest = "rest"

    @contextmanager
    def _loop(self, extents: Shape, letter: str) -> Generator[_Scope]:
        """Loops inside a row; with no extents, the row itself."""
        if not extents:
            yield self._row
            return
        several = len(extents) > 1
        indices = [f"{letter}{k}" if several else letter for k in range(len(extents))]
        scope = _Scope(tuple(indices), self._row.depth + len(extents))
        heads = [
            "    " * (self._row.depth + k) + f"for {index} in range({self._word(extent, 'n')}):"
            for k, (index, extent) in enumerate(zip(indices, extents, strict=True))
        ]
        yield scope
        self._row.lines += [*heads, *scope.lines]

    def _store(self, scope: _Scope) -> None:
        region = self.region
        value = self._emit(region.expression, scope)
        dtype = region.result.type.dtype
        if dtype.name == "bf16" and not value.isidentifier():
            value = self._name(scope, "wide", value)
        at = self._at("out", region.output, scope)
        scope.add(f"out[{at}] = {scalars.stored(dtype, value)}")

    def _emit(self, part: Expression, scope: _Scope) -> str:
        """The name of an expression's value, or its text if it is a constant."""
        if isinstance(part, Literal):
            return self._literal(part)
        number = self._number(part)
        here = scope if self._varies(part) else self._row
        for names in (here.names, self._row.names):
            if number in names:
                return names[number]
        match part:
            case Reduce():
                name = self._reduce(part)
            case Load():
                dtype = part.dtype
                at = self._at(self._input(part), part.view, here)
                name = self._name(here, "a", scalars.loaded(dtype, f"{self._input(part)}[{at}]"))
            case Iota():
                place = self._at("iota", part.view, here)
                name = self._name(here, "iota", scalars.convert(part.dtype, place))
            case Apply():
                name = self._apply(part, here)
        here.names[number] = name
        return name

    def _apply(self, part: Apply, scope: _Scope) -> str:
        operands = tuple(self._emit(o, scope) for o in part.operands)
        dtype = part.operands[-1].dtype.compute if part.op != "cast" else part.operands[0].dtype
        last = part.operands[-1]
        result = part.dtype if part.op == "cast" else part.dtype.compute
        number = last.value if isinstance(last, Literal) else None
        rule = scalars.RULES[part.op]
        return self._name(scope, part.op, rule(scalars.Scalars(operands, dtype, result, number)))

    def _reduce(self, part: Reduce) -> str:
        accumulator = part.accumulator
        total = self._fresh(part.op.removeprefix("reduce_"))
        if len(part.extents) == 1 and part.op in scalars.PARTS and accumulator.is_float:
            self._reduce_in_parts(part, total)
        else:
            self._row.add(f"{total} = {scalars.start(part.op, accumulator)}")
            with self._loop(part.extents, "k") as scope:
                x = self._body(part, scope)
                scope.add(f"{total} = {scalars.joined(part.op, accumulator, total, x)}")
        if part.dtype.compute is accumulator:
            return total
        return self._name(self._row, "total", scalars.convert(part.dtype.compute, total))

    def _reduce_in_parts(self, part: Reduce, total: str) -> None:
        """Parts of the row into memory, by loops without an order; each then joins the total."""
        accumulator, row = part.accumulator, self._row
        scratch, extent = self._scratch(accumulator), self._word(part.extents[0], "n")
        outer, inner = _Scope((), row.depth + 1), _Scope(("k",), row.depth + 2)
        inner.add(f"{scratch}[k - begin] = {self._body(part, inner)}")
        outer.add(f"end = min(begin + {PART}, {extent})")
        outer.add("for k in range(begin, end):")
        outer.lines += inner.lines
        x = self._name(outer, "part", f"{scalars.PARTS[part.op]}({scratch}, end - begin)")
        outer.add(f"{total} = {scalars.joined(part.op, accumulator, total, x)}")
        row.add(f"{total} = {scalars.start(part.op, accumulator)}")
        row.add(f"for begin in range(0, {extent}, {PART}):")
        row.lines += outer.lines

    def _body(self, part: Reduce, scope: _Scope) -> str:
        """An element of a reduction, as the accumulator's dtype."""
        x = self._emit(part.body, scope)
        if part.body.dtype.compute is part.accumulator:
            return x
        return self._name(scope, "wide", scalars.convert(part.accumulator, x))

    def _scratch(self, dtype: DType) -> str:
        """Memory for a part of a row; asked for in the row, so that each thread has its own."""
        name, line = f"scratch{dtype.bits}", f"scratch_{scalars.POINTERS[dtype.name]}()"
        if name not in self._scratches:
            self._scratches.add(name)
            self._row.add(f"{name} = {line}")
        return name

    def _varies(self, part: Expression) -> bool:
        """Whether it depends on an index inside of the row."""
        match part:
            case Load() | Iota():
                return any(not same(s, 0) for s in part.view.strides[self._row_count :])
            case Apply():
                return any(map(self._varies, part.operands))
            case _:
                return False

    def _literal(self, part: Literal) -> str:
        if isinstance(part.value, Dim):
            return scalars.convert(part.dtype, self._word(part.value, "size"))
        assert isinstance(part.value, bool | int | float)
        return scalars.literal(part.dtype, part.value)

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
        return f"{value.type.dtype.name}[{', '.join(seen)}]"

    def _at(self, name: str, view: View, scope: _Scope) -> str:
        """The place of an element: what the row decides under a name, then the inner loops."""
        rows, inner = view.strides[: self._row_count], view.strides[self._row_count :]
        key = name, str(view.offset), tuple(map(str, rows))
        if key not in self._bases:
            terms = [
                f"{index} * {self._word(stride, 's', shared=False)}"
                for index, stride in zip(self._row.indices, rows, strict=False)
                if not same(stride, 0)
            ]
            if not same(view.offset, 0):
                terms.insert(0, self._word(view.offset, "offset", shared=False))
            self._bases[key] = self._base(name, terms)
        terms = [self._bases[key]] if self._bases[key] else []
        for index, stride in zip(scope.indices, inner, strict=False):
            if same(stride, 1):
                terms.append(index)
            elif not same(stride, 0):
                step = self._word(stride, "step", shared=(key, index, str(stride)))
                terms.append(f"{index} * {step}")
        return " + ".join(terms) or "0"

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

    def _word(self, value: DimLike, letter: str, *, shared: object = True) -> str:
        """The name of an argument word. Extents that are equal share one, strides do not."""
        key = "word", letter, str(value), shared
        if shared is False or key not in self._numbers:
            self._numbers[key] = len(self.names)
            base = sum(name.rstrip("0123456789") == letter for name in self.names)
            self.names[f"{letter}{base}"] = value
        return list(self.names)[self._numbers[key]]

    def _name(self, scope: _Scope, word: str, text: str) -> str:
        if text.isidentifier():
            return text
        name = self._fresh(word)
        scope.add(f"{name} = {text}")
        return name

    def _fresh(self, word: str) -> str:
        self._counts[word] = self._counts.get(word, -1) + 1
        return f"{word}{self._counts[word]}"

    def _number(self, part: Expression) -> int:
        """The same number for expressions that are equal."""
        if part not in self._number_of:
            key = self._key(part)
            self._number_of[part] = self._numbers.setdefault(key, len(self._numbers))
        return self._number_of[part]

    def _key(self, part: Expression) -> object:
        match part:
            case Load():
                return "load", part.value, self._place(part.view)
            case Iota():
                return "iota", part.dtype.name, self._place(part.view)
            case Literal():
                return "literal", part.dtype.name, type(part.value), str(part.value)
            case Apply():
                return part.op, part.dtype.name, tuple(map(self._number, part.operands))
            case Reduce():
                names = part.dtype.name, part.accumulator.name, tuple(map(str, part.extents))
                return part.op, names, self._number(part.body)

    def _place(self, view: View) -> object:
        rows, inner = view.strides[: self._row_count], view.strides[self._row_count :]
        varying = tuple(map(str, inner)) if any(not same(s, 0) for s in inner) else ()
        return str(view.offset), tuple(map(str, rows)), varying


_REDUCED = frozenset(op.removeprefix("reduce_") for op in scalars.REDUCTIONS)
_DULL = frozenset(["add", "sub", "mul", "div"])  # in a title they say little
