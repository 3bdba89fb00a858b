"""The axis of vectors: along the rows of a region, or across adjacent rows.

Input: a region; output: whether its loops go over tiles of rows. A vector along a row loads what is
contiguous in the innermost loop of the row; one across rows loads what is contiguous along the last
axis of rows. The cheaper one is chosen, by the loads and stores of an element in units of a
contiguous one, and by what each row costs besides.
"""

from __future__ import annotations

from gptrs.backends.regions import Region
from gptrs.backends.views import Expression, Iota, Load, Reduce, View, walk
from gptrs.ir.dims import DimLike, same, size_at

STRIDED = 8.0
"""What a load of elements that are not adjacent costs, in contiguous loads."""
ROW = 300.0
"""What the start and the end of a reduction of one row cost, in contiguous loads of an element."""
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
    for expression, extents in [(region.expression, region.inner), *_bodies(reductions)]:
        count = 1
        for extent in extents:
            count *= _size(extent)
        views = _views(expression)
        if expression is region.expression:
            views.append(region.output)
        for view in views:
            axis = last + len(extents)
            along += count * (_cost(view, axis) if extents else STRIDED)
            across += count * _cost(view, last)
    along += ROW * len(reductions)
    for reduction in reductions:
        *outer, _ = reduction.extents
        across += 2.0 * _product(reduction.extents)  # lanes lie in memory, not in registers
        along += ROW * (_product(outer) - 1)
    return across * max(1.0, VECTOR / max(1, _size(region.rows[-1]))) < along


def _bodies(reductions: list[Reduce]) -> list[tuple[Expression, tuple[DimLike, ...]]]:
    return [(reduction.body, reduction.extents) for reduction in reductions]


def _views(expression: Expression) -> list[View]:
    """The views that a loop reads, each once; without those of the reductions in it."""
    parts = [p for p in walk(expression, into=False) if isinstance(p, Load | Iota)]
    return list(dict.fromkeys(part.view for part in parts if isinstance(part, Load)))


def _cost(view: View, axis: int) -> float:
    stride = view.strides[axis]
    return 0.0 if same(stride, 0) else 1.0 if same(stride, 1) else STRIDED


def _product(extents: tuple[DimLike, ...] | list[DimLike]) -> int:
    count = 1
    for extent in extents:
        count *= _size(extent)
    return count


def _size(extent: DimLike) -> int:
    if isinstance(extent, int):
        return extent
    return size_at(extent, dict.fromkeys(extent.symbols(), _LARGE))
