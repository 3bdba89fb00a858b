"""Value numbering of a region's expressions: equal numbers for elements that are surely equal.

A loop computes expressions of one number once. Two loads are equal if they read the same element of
the same array at each index of their loops.
"""

from __future__ import annotations

from gptrs.backends.views import Apply, Expression, Iota, Literal, Load, Reduce, View
from gptrs.ir.dims import same
from gptrs.ir.program import key_of


class ValueNumbering:
    """The value numbers of a region, whose views begin with ``row_count`` row axes."""

    def __init__(self, row_count: int) -> None:
        self._row_count = row_count
        self._by_key: dict[object, int] = {}
        self._number: dict[Expression, int] = {}
        self._varies: dict[Expression, bool] = {}

    def number(self, part: Expression) -> int:
        """The value number of an expression."""
        found = self._number.get(part)
        if found is None:
            found = self._by_key.setdefault(self._key(part), len(self._by_key))
            self._number[part] = found
        return found

    def varies(self, part: Expression) -> bool:
        """Whether an expression depends on an index inside of the row."""
        found = self._varies.get(part)
        if found is None:
            match part:
                case Load() | Iota():
                    inner = part.view.strides[self._row_count :]
                    found = any(not same(stride, 0) for stride in inner)
                case Apply():
                    found = any(map(self.varies, part.operands))
                case _:
                    found = False
            self._varies[part] = found
        return found

    def _key(self, part: Expression) -> object:
        match part:
            case Load():
                return "load", part.value, part.dtype.name, self._place(part.view)
            case Iota():
                return "iota", part.dtype.name, self._place(part.view)
            case Literal():
                return "literal", part.dtype.name, key_of(part.value)
            case Apply():
                operands = tuple(map(self.number, part.operands))
                return part.op, part.dtype.name, operands, part.attrs
            case Reduce():
                names = part.dtype.name, part.accumulator.name, tuple(map(str, part.extents))
                return part.op, names, self.number(part.body)

    def _place(self, view: View) -> object:
        rows, inner = view.strides[: self._row_count], view.strides[self._row_count :]
        varying = tuple(map(str, inner)) if any(not same(s, 0) for s in inner) else ()
        return str(view.offset), tuple(map(str, rows)), varying
