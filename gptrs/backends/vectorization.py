"""The axis of vectors: along the rows of a region, or across adjacent rows.

Input: a region; output: whether its loops go over tiles of rows. A vector along a row loads what is
contiguous in the innermost loop of the row; one across rows loads what is contiguous along the last
axis of rows. The cheaper one is chosen, by the loads and stores of an element in units of a
contiguous one, and by what each row costs besides.
"""

from __future__ import annotations

from math import prod

from gptrs.backends.regions import Region
from gptrs.backends.views import Load, Reduce, View, walk
from gptrs.ir.dims import DimLike, Shape, same, size_at
from gptrs.ir.ops.reduce import reduce_sum

# In contiguous loads of an element (0.1 ns), measured with rows of 4 to 96 elements and AVX-512:
STRIDED = 8.0
"""A load of an element that is not adjacent to the next one."""
SUM_OF_ARRAY = 32.0
"""The start and the end of the sum of a row that is read where it lies."""
ROW = 150.0
"""The start and the end of any other reduction of a row."""
VECTOR = 16
"""With fewer adjacent rows than this a vector across rows is not full."""
_LARGE = 1000  # the assumed size of a symbol


def prefers_tiles(region: Region) -> bool:
    """Whether the loops of ``region`` have vectors across rows rather than along them."""
    reductions = [p for p in walk(region.expression) if isinstance(p, Reduce) and p.extents]
    if not region.rows or not reductions:
        return False
    last = len(region.rows) - 1
    along, across = 0.0, 0.0
    bodies = [(reduction.body, reduction.extents) for reduction in reductions]
    for expression, extents in [(region.expression, region.inner), *bodies]:
        views = {p.view for p in walk(expression, into=False) if isinstance(p, Load)}
        views |= {region.output} if expression is region.expression else set()
        for view in views:
            innermost = _cost(view, last + len(extents)) if extents else STRIDED
            along += _product(extents) * innermost
            across += _product(extents) * _cost(view, last)
    for reduction in reductions:
        across += 2.0 * _product(reduction.extents)  # lanes lie in memory, not in registers
        along += _start(reduction) * _product(reduction.extents[:-1])
    return across * max(1.0, VECTOR / max(1, _size(region.rows[-1]))) < along


def _start(reduction: Reduce) -> float:
    is_sum = reduction.op is reduce_sum and isinstance(reduction.body, Load)
    return SUM_OF_ARRAY if is_sum else ROW


def _cost(view: View, axis: int) -> float:
    stride = view.strides[axis]
    return 0.0 if same(stride, 0) else 1.0 if same(stride, 1) else STRIDED


def _product(extents: Shape) -> int:
    return prod(map(_size, extents))


def _size(extent: DimLike) -> int:
    if isinstance(extent, int):
        return extent
    return size_at(extent, dict.fromkeys(extent.symbols(), _LARGE))
