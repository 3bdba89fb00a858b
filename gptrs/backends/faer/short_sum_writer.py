"""Code generation of fused loops over short sums between all pairs of rows: distances of points to
few centres, scores by small dictionaries.

    near[k, t] = centres[t, k]                 # once, in the order of the loops
    for row in range(first, last):             # points: parallel
        for t in range(columns):               # vectors, the sums in registers
            sum[t] = (f(x[row, 0], near[0, t]) + …) + …
        for t in range(columns):
            out[row, t] = …

The reduced axis, at most `_MOST` long, and the last axis of rows are written out or in the text, so
that LLVM knows the length of every loop. Where few elements are missing to whole vectors, ``near``
is filled up with the last column. Elements are joined as in `gptrs.kernels.rowwise.reduce`, whose
lanes they are, so that a sum has the bits that it has in other loops.
"""

from __future__ import annotations

from gptrs.backends.faer import scalars
from gptrs.backends.faer.expression_writer import Scope
from gptrs.backends.faer.loop_writer import LoopWriter
from gptrs.backends.faer.tile_writer import TileWriter
from gptrs.backends.regions import Region
from gptrs.backends.views import Apply, Iota, Load, Reduce, walk
from gptrs.ir.dims import DimLike, product, same
from gptrs.ir.ops.reduce import reduce_sum
from gptrs.ir.types import DType, f32

_MOST = 16  # elements of a sum
_COLUMNS = 64  # of the last axis of rows: the sums of all of them are in registers
_NEAR = 1024  # elements of an operand that is read in the order of the loops
_COST = 4  # additions that an element of a sum costs: its text is written once for each
_VECTORS = (16, 8, 4)
_FILLED = 1.25  # times the columns that are computed at most, to fill up vectors


class ShortSumWriter(TileWriter):
    """Writes the loops of a region whose parallel unit is a row of sums."""

    def __init__(self, region: Region, *, precise: bool = False, shared: bool = False) -> None:
        super().__init__(region, precise=precise, shared=shared)
        self._columns = _columns(region)
        self._padded = _padded(self._columns)
        self.ROWS = (f"for t in range({self._columns}):",)
        self._read: dict[int, str] = {}  # by value number

    def write(self) -> None:
        LoopWriter.write(self)
        for name, dtype in self._arrays.items():
            self.head.append(f"    {name} = local_{scalars.local_pointer(dtype)}({self._padded})")

    @property
    def loop(self) -> str:
        return "for row in range(first, last):"

    @property
    def extent(self) -> DimLike:
        return product(self.region.rows[:-1])

    def _split_rows(self) -> None:
        *outer, _ = self._row.indices
        self._row.indices = (*outer, "0")
        if len(outer) == 1:
            self.rows.append("        i0 = row")
        else:
            self._count(len(outer) - 1)

    def _sum(self, part: Reduce, word: str) -> str:
        total = self._array(word, part.accumulator)
        inner = Scope((), 3)
        self._set(inner, total, f"float32(0.0) + {self._joined(part, inner)}", part.accumulator)
        self._nest([f"        for t in range({self._padded}):", *inner.lines])
        return total

    def _load(self, part: Load, scope: Scope) -> str:
        if scope is self._row or not part.view.depends(self._row_count - 1):
            return super()._load(part, scope)
        number = self._values.number(part)
        if number not in self._read:
            self._read[number] = self._copied(part)
        text = f"{self._read[number]}[{scope.indices[0]} * {self._padded} + t]"
        return self._name(scope, "a", text, part.dtype.compute)

    def _copied(self, part: Load) -> str:
        """An operand [columns, depth] in the order of the loops, copied before them."""
        near, array, view = self._fresh("near"), self._input(part), part.view
        depth, row = view.shape[-1], view.strides[self._row_count - 1]
        at = f"min(t, {self._columns - 1}) * {self.words.size(row, 's')}"
        at += f" + k * {self.words.size(view.strides[-1], 's')}"
        if not same(view.offset, 0):
            at += f" + {self.words.size(view.offset, 'offset', shared=False)}"
        kind = scalars.local_pointer(part.dtype.compute)
        self.head += [
            f"    {near} = local_{kind}({self._padded * int(depth)})",
            f"    for k in range({depth}):",
            f"        for t in range({self._padded}):",
            f"            {near}[k * {self._padded} + t] = "
            + scalars.loaded(part.dtype, f"{array}[{at}]"),
        ]
        return near


def is_short_sum(region: Region) -> bool:
    """Whether a region has the form at the head of this file."""
    parts = walk(region.expression)
    sums = [part for part in parts if isinstance(part, Reduce)]
    columns, last = _columns(region), len(region.rows) - 1
    if not sums or region.inner or not 2 <= columns <= _COLUMNS or last < 1:
        return False
    return all(_is_short(part, columns, last) for part in sums) and any(
        isinstance(part, Load) and part.view.depends(last) for s in sums for part in walk(s.body)
    )


def _is_short(part: Reduce, columns: int, last: int) -> bool:
    """Whether a sum is written out, of operands that depend on the last axis of rows or on the
    others."""
    if part.op is not reduce_sum or part.accumulator is not f32 or part.chunks is not None:
        return False
    if not 1 < _length(part) <= _MOST or columns * _length(part) > _NEAR:
        return False
    body = walk(part.body)
    if sum(p.op.cost for p in body if isinstance(p, Apply)) > _COST:
        return False
    for inner in body:
        if isinstance(inner, Reduce | Iota):
            return False
        if isinstance(inner, Load) and not _is_apart(inner, last):
            return False
    return True


def _is_apart(part: Load, last: int) -> bool:
    outer = any(part.view.depends(axis) for axis in range(last))
    return not part.view.depends(last) or (not outer and _is_narrow_or_f32(part.dtype))


def _is_narrow_or_f32(dtype: DType) -> bool:
    return dtype.is_float and dtype.compute is f32


def _padded(columns: int) -> int:
    """The columns that are computed."""
    whole = [-(-columns // vector) * vector for vector in _VECTORS]
    return next((count for count in whole if count <= _FILLED * columns), columns)


def _columns(region: Region) -> int:
    """The extent of the last axis of rows; 0 where it is not known."""
    last = region.rows[-1] if region.rows else 0
    return last if isinstance(last, int) else 0


def _length(part: Reduce) -> int:
    """The elements of a sum along one axis; 0 where they are not known, or along several."""
    extent = part.extents[0] if len(part.extents) == 1 else 0
    return extent if isinstance(extent, int) else 0
