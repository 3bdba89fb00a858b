"""Code generation of the expressions in fused loops: the lines of a scope, and what they read.

Input: an expression of a region and the scope that it is in; output: lines of C, and the name of
the value. Equal expressions (`gptrs.backends.value_numbering`) have one name in a scope, and those
that do not depend on an index inside of the row belong to the row. `gptrs.backends.c_family.loops`
writes the loops around them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field

from gptrs.backends.c_family import scalars
from gptrs.backends.c_family.element_types import (
    IN_MEMORY,
    NARROW,
    arithmetic,
    convert,
    literal,
    loaded,
    rounded,
    stored,
)
from gptrs.backends.c_family.index_text import position
from gptrs.backends.c_family.kernel import KernelBuilder
from gptrs.backends.regions import Region
from gptrs.backends.value_numbering import ValueNumbering
from gptrs.backends.views import Apply, Expression, Iota, Literal, Load, Reduce, View
from gptrs.ir.dims import Dim, same
from gptrs.ir.ops.bitcast import bitcast
from gptrs.ir.ops.elementwise import add, cast, div, mul, sub
from gptrs.ir.program import Operation
from gptrs.ir.types import DType, f64
from gptrs.lazy_dataclass import dataclass


@dataclass
class Scope:
    """One loop: its lines, the names of expressions in it, and its index along each axis."""

    indices: tuple[str, ...]
    lines: list[str] = field(default_factory=list[str])
    names: dict[int, str] = field(default_factory=dict[int, str])


class ExpressionWriter(ABC):
    """Writes the expressions of one region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.builder = KernelBuilder()
        self._counts: dict[str, int] = {}
        self._ops: dict[str, Operation] = {}
        self._row_count = len(region.rows)
        self._values = ValueNumbering(self._row_count)
        self.row = Scope(tuple(f"i{k}" for k in range(self._row_count)))

    @property
    def title(self) -> str:
        """What the region computes, in at most four words."""
        words = [w for w, op in self._ops.items() if op not in _DULL] or [*self._ops] or ["copy"]
        return "_".join(words[:4])

    @abstractmethod
    def _reduce(self, part: Reduce) -> str:
        """Write the loops of a reduction; the name of its result."""

    def emit(self, part: Expression, scope: Scope) -> str:
        """The name of an expression's value, or its text if it is a constant."""
        if isinstance(part, Literal):
            return self._literal(part)
        number = self._values.number(part)
        here = scope if self._values.varies(part) else self.row
        for names in (here.names, self.row.names):
            if number in names:
                return names[number]
        match part:
            case Reduce():
                self._ops[part.op.name] = part.op
                name = self._reduce(part)
            case Load():
                name = self._load(part, here)
            case Iota():
                text = convert(part.dtype, self._place(part.view, here))
                if part.dtype.name in NARROW:  # it has not every integer
                    text = rounded(part.dtype, text)
                name = self.name(here, "iota", text, part.dtype)
            case Apply():
                name = self._apply(part, here)
        here.names[number] = name
        return name

    def _load(self, part: Load, scope: Scope) -> str:
        array = self.builder.read(part.value)
        text = loaded(part.dtype, f"{array}[{self._place(part.view, scope)}]")
        return self.name(scope, "a", text, part.dtype)

    def _place(self, view: View, scope: Scope) -> str:
        """The position that a view has for the indices of a scope."""
        indices = (*self.row.indices, *scope.indices) if scope is not self.row else self.row.indices
        strides = view.strides[: len(indices)]
        self.builder.uses(strides)
        offset = "" if same(view.offset, 0) else self.builder.number(view.offset)
        return position(indices, strides, offset)

    def _apply(self, part: Apply, scope: Scope) -> str:
        operands = tuple(self.emit(operand, scope) for operand in part.operands)
        self._ops[part.op.name] = part.op
        converts = part.op in scalars.CONVERTING
        last = part.operands[-1]
        dtype = part.operands[0].dtype if converts else last.dtype.compute
        failure = scalars.failure(part.op, dtype, operands)
        if failure and not isinstance(last, Literal):
            scope.lines.append(self.builder.fail(failure))
        result = part.dtype if converts else part.dtype.compute
        number = last.value if isinstance(last, Literal) else None
        text = scalars.RULES[part.op](scalars.Scalars(operands, dtype, result, number))
        return self.name(scope, part.op.name, text, part.dtype)

    def _literal(self, part: Literal) -> str:
        if isinstance(part.value, Dim):
            return convert(part.dtype, self.builder.dim(part.value))
        assert not isinstance(part.value, complex)
        return literal(part.dtype, part.value)

    def store(self, region: Region, array: str, scope: Scope) -> None:
        """Store an element of the result of ``region``."""
        dtype = region.result.type.dtype
        place = self._place(region.output, scope)
        scope.lines.append(f"{array}[{place}] = {self._to_store(region.expression, dtype, scope)};")

    def _to_store(self, part: Expression, dtype: DType, scope: Scope) -> str:
        """An element as it is in memory. A conversion to a narrow float is rounded once, and bits
        stay as they are."""
        narrow = dtype.name in NARROW
        if narrow and isinstance(part, Apply) and part.op in scalars.CONVERTING:
            self._ops[part.op.name] = part.op
            (x,) = part.operands
            name = self.emit(x, scope)
            if part.op is cast:
                wide = f"odd_f32({name})" if x.dtype is f64 else convert(dtype, name)
                return stored(dtype, wide)
            if part.op is bitcast and x.dtype.is_integer:
                return f"({IN_MEMORY[dtype.name]}){name}"
        return stored(dtype, self.emit(part, scope))

    def name(self, scope: Scope, word: str, text: str, dtype: DType) -> str:
        """A name for the value of ``text``, whose arithmetic is on ``dtype``."""
        if text.isidentifier():
            return text
        name = self.fresh(word)
        scope.lines.append(f"const {arithmetic(dtype)} {name} = {text};")
        return name

    def fresh(self, word: str) -> str:
        """A name that no other variable has."""
        self._counts[word] = self._counts.get(word, -1) + 1
        return f"{word}_{self._counts[word]}"


_DULL = frozenset([add, sub, mul, div, cast])  # in a title they say little
