"""Code generation of the expressions in fused loops: the lines of a scope, and what they read.

Input: an expression of a region and the scope that it is in; output: lines of Python for Numba, and
the name of the value. Equal expressions (`gptrs.backends.value_numbering`) have one name in a
scope, and those that do not depend on an index inside of the row belong to the row. Arrays, sizes,
offsets, strides and numbers become parameters of the kernel. `gptrs.backends.faer.loop_writer`
writes the loops around them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import field

from gptrs.backends.faer import scalars
from gptrs.backends.faer.argument_block import ArgumentWords
from gptrs.backends.faer.scalar_functions import attribute, function_of
from gptrs.backends.regions import Region
from gptrs.backends.value_numbering import ValueNumbering
from gptrs.backends.views import Apply, Expression, Iota, Literal, Load, Reduce, View
from gptrs.ir.dims import Dim, DimLike, Shape, same
from gptrs.ir.ops.bitcast import bitcast
from gptrs.ir.ops.elementwise import add, cast, div, mul, remainder, shift_left, shift_right, sub
from gptrs.ir.program import Operation, Value
from gptrs.ir.types import DType
from gptrs.lazy_dataclass import dataclass


@dataclass
class Scope:
    """One loop: its lines, the names of expressions in it, and its index along each axis."""

    indices: tuple[str, ...]
    depth: int
    lines: list[str] = field(default_factory=list[str])
    names: dict[int, str] = field(default_factory=dict[int, str])

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)


class ExpressionWriter(ABC):
    """Writes the expressions of one region, and collects its inputs and the scalars of its argument
    block."""

    def __init__(self, region: Region, *, precise: bool = False, shared: bool = False) -> None:
        self._precise = precise
        self._common = () if shared else _COMMON
        self._exact = _SHIFTING if shared else _SHIFTING | _DIVIDING
        self.region = region
        self.overwritten: Value | None = None
        """The operand whose memory the result takes: it is read there."""
        self.inputs: dict[Value, str] = {}
        self.words = ArgumentWords()
        self.head: list[str] = []
        self.rows: list[str] = []
        self.functions: dict[str, str] = {}  # scalar rules, by name
        self.fails = False  # whether it may report a failure
        self._counts: dict[str, int] = {}
        self._ops: dict[str, Operation] = {}  # what it computes, by the words for it
        self._bases: dict[object, str] = {}
        self._axes: dict[Value, str] = {}
        self._row_count = len(region.rows)
        self._values = ValueNumbering(self._row_count)
        depth = 1 if region.is_flat else 2  # a flat loop has no row: what is fixed comes before it
        self._row = Scope(tuple(f"i{k}" for k in range(self._row_count)), depth)

    @property
    def title(self) -> list[str]:
        """What the region computes, in at most four words."""
        words = [word for word in self._counts if word in self._ops]
        return ([w for w in words if self._ops[w] not in _DULL] or words or ["copy"])[:4]

    @property
    def outputs(self) -> tuple[Region, ...]:
        """What is stored: the regions of these loops."""
        return self.region, *self.region.others

    @property
    def out_names(self) -> list[str]:
        """The arrays that they are stored in."""
        return [f"out{number or ''}" for number in range(len(self.outputs))]

    @property
    def notes(self) -> list[str]:
        """For each input and result, its dtype and the loops that its elements depend on."""
        found = [self._axes[value] for value in self.inputs]
        found += [self._note(one.result, one.output) for one in self.outputs]
        if self.overwritten is not None:
            found[-1] += ", at first the operand that it overwrites"
        return found

    @abstractmethod
    def _reduce(self, part: Reduce) -> str:
        """Write the loops of a reduction; the name of its result."""

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
                name = self._load(part, here)
            case Iota():
                place = self._at("iota", part.view, here)
                name = self._name(here, "iota", scalars.convert(part.dtype, place), part.dtype)
                if part.dtype.is_float and part.dtype.compute is not part.dtype:
                    # It has not every integer.
                    name = self._name(here, "iota", scalars.rounded(part.dtype, name), part.dtype)
            case Apply():
                name = self._apply(part, here)
        here.names[number] = name
        return name

    def _load(self, part: Load, scope: Scope) -> str:
        array = self._input(part)
        text = scalars.loaded(part.dtype, f"{array}[{self._at(array, part.view, scope)}]")
        return self._name(scope, "a", text, part.dtype.compute)

    def _apply(self, part: Apply, scope: Scope) -> str:
        exact = part.op in self._exact and not part.dtype.is_float
        operands = tuple(
            self._literal(o, exact=exact) if isinstance(o, Literal) else self._emit(o, scope)
            for o in part.operands
        )
        self._ops[part.op.name] = part.op
        converts = part.op in _CONVERTING
        dtype = part.operands[0].dtype if converts else part.operands[-1].dtype.compute
        last = part.operands[-1]
        result = part.dtype if converts else part.dtype.compute
        number = last.value if isinstance(last, Literal) else None
        if failure := scalars.failure(part.op, dtype, operands):
            self._fail_where(failure, last, scope)
        rule = scalars.RULES.get(part.op)
        if rule is None:
            text = self._call(part, operands, dtype, result)
        else:
            element = part.operands[0].dtype
            text = rule(scalars.Scalars(operands, dtype, result, number, element))
        name = self._name(scope, part.op.name, text, part.dtype.compute)
        narrow = part.dtype.is_float and part.dtype.compute is not part.dtype
        if self._precise and narrow and part.op is not bitcast:
            text = scalars.rounded(part.dtype, name)
            name = self._name(scope, "rounded", text, part.dtype.compute)
        return name

    def _fail_where(self, text: str, last: Expression, scope: Scope) -> None:
        """Note that the step fails if an element has no result; a number is known to have one."""
        if not isinstance(last, Literal):
            self.fails = True
            scope.add(f"failing = failing | ({text})")

    def _call(self, part: Apply, operands: tuple[str, ...], dtype: DType, result: DType) -> str:
        """A call to the function that the scalar rule of an op becomes."""
        name, text = function_of(part.op, dtype)
        self.functions[name] = text
        given = [*operands, *(attribute(value, dtype) for _, value in part.attrs)]
        return scalars.convert(result, f"{name}({', '.join(given)})")

    def _literal(self, part: Literal, *, exact: bool) -> str:
        """A number: in the text where it is a common one or ``exact``, else a word of the argument
        block."""
        value = part.value
        if isinstance(value, Dim):
            return scalars.convert(part.dtype, self.words.size(value, "size"))
        if isinstance(value, complex) or part.dtype.is_complex or part.dtype.bits == 4:
            return scalars.literal(part.dtype, value)
        if exact or part.dtype.is_bool or value in self._common or value != value:
            return scalars.literal(part.dtype, value)
        word, new = self.words.number(part.dtype, value)
        name = word.replace("number", "c")
        if new:
            self.head.append(f"    {name} = {scalars.convert(part.dtype, word)}")
        return name

    def _input(self, part: Load) -> str:
        if part.value is self.overwritten:
            return "out"
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
        narrow = value.type.dtype.is_float and value.type.dtype.bits < 32  # not known to Numba
        bits = f", its bits as uint{value.type.dtype.bits}" if narrow else ""
        return f"{dtype}[{', '.join(seen)}]{bits}"

    def _at(self, name: str, view: View, scope: Scope) -> str:
        """The index of an element: the row's part under a name, then the inner loops."""
        rows, inner = view.strides[: self._row_count], view.strides[self._row_count :]
        key = name, str(view.offset), tuple(map(str, rows))
        if key not in self._bases:
            # Loads of one array share the terms of a row, as slices of it do: the offset is last.
            terms = [
                _times(index, self._stride(stride, (name, index, str(rows))))
                for index, stride in zip(self._row.indices, rows, strict=False)
                if not same(stride, 0)
            ]
            if not same(view.offset, 0):
                terms.append(self.words.size(view.offset, "offset", shared=False))
            self._bases[key] = self._base(name, terms)
        terms = [self._bases[key]] if self._bases[key] else []
        terms += self._terms_in_tile(rows, key)
        for index, stride in zip(scope.indices, inner, strict=False):
            if same(stride, 1):
                terms.append(index)
            elif isinstance(stride, int) and stride in _INTERLEAVED:
                terms.append(f"{index} * {stride}")
            elif not same(stride, 0):
                axis = index.partition("_")[0]  # copies of a loop's body have its strides
                step = self.words.size(stride, "step", shared=(key, axis, str(stride)))
                terms.append(f"{index} * {step}")
        return " + ".join(terms) or "0"

    def _stride(self, stride: DimLike, shared: object) -> str:
        """The word for the stride of an array along an axis of rows."""
        return self.words.size(stride, "s", shared=shared)

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


def _times(index: str, stride: str) -> str:
    return index if stride == "1" else f"{index} * {stride}"


_DULL = frozenset([add, sub, mul, div])  # in a title they say little
_COMMON = (0, 1, -1, math.inf, -math.inf)
"""Numbers that stay in the text: loops are often faster for them."""
_INTERLEAVED = (-1, *range(2, 8))
"""Strides that stay in the text: loads of whole vectors and shuffles are faster than gathers."""
_CONVERTING = frozenset([cast, bitcast])
"""Ops that depend on the dtype in memory, and not only on that of arithmetic."""
_SHIFTING = frozenset([shift_left, shift_right])
_DIVIDING = frozenset([div, remainder])
"""Ops on integers that are much faster by a number that the compiler knows."""
