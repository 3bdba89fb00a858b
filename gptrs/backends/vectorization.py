"""The axis of vectors: along the rows of a region, or across adjacent rows.

Input: a region; output: whether its loops go over tiles of rows. A vector along a row loads what is
contiguous in the innermost loop of the row; one across rows loads what is contiguous along the last
axis of rows. The one whose loads, stores and starts of rows take less time by
`gptrs.backends.machine` is chosen.
"""

from __future__ import annotations

from math import prod

from gptrs.backends.machine import MACHINE
from gptrs.backends.regions import Region
from gptrs.backends.views import Apply, Load, Reduce, View, walk
from gptrs.ir.dims import DimLike, Shape, same, size_at
from gptrs.ir.ops.reduce import reduce_sum

VECTOR = MACHINE.vector_bytes // 4
"""With fewer adjacent rows than this a vector across rows is not full."""
_CHEAP_BODY = 8
"""The cost of a body, in additions, up to which the text of a loop has several copies of it."""
_SHORT = 32
"""The most elements of a row that is copied in a loop over tiles."""
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
            innermost = _cost(view, last + len(extents)) if extents else MACHINE.strided
            along += usual_product(extents) * innermost
            short = has_short_rows(view, len(region.rows))
            across += usual_product(extents) * (MACHINE.contiguous if short else _cost(view, last))
    for reduction in reductions:
        joined = MACHINE.group if crosses_rows(region, reduction) else MACHINE.lane
        across += joined * usual_product(reduction.extents)  # partial results lie in memory
        along += start_of(reduction) * usual_product(reduction.extents[:-1])
    across += MACHINE.copied * _copied(region)
    if all(r.op is reduce_sum and crosses_rows(region, r) for r in reductions):
        return across < along  # lanes are added in registers: memory is slower, if few are used
    return across * max(1.0, VECTOR / max(1, _size(region.rows[-1]))) < along


def _copied(region: Region) -> int:
    """The elements of the short rows that a row of a tile copies, each array once."""
    loads = [part for part in walk(region.expression) if isinstance(part, Load)]
    views = [*((load.value, load.view) for load in loads), (region.result, region.output)]
    rows = len(region.rows)
    short = {
        (value, str((view.offset, view.strides))): usual_product(view.shape[rows:])
        for value, view in views
        if has_short_rows(view, rows)
    }
    return sum(short.values())


def crosses_rows(region: Region, reduction: Reduce) -> bool:
    """Whether what a reduction reads is contiguous across rows rather than along them.

    It then joins whole groups of elements of a row, which vectors across rows do in registers,
    rather than lanes of a vector along the row.
    """
    least = VECTOR // (4 if reduction.op is reduce_sum else 2)
    if not region.rows or not reduction.extents or _size(region.rows[-1]) < least:
        return False
    body = walk(reduction.body, into=False)
    if sum(part.op.cost for part in body if isinstance(part, Apply)) > _CHEAP_BODY:
        return False
    row, innermost = len(region.rows) - 1, len(region.rows) + len(reduction.extents) - 1
    views = [part.view for part in body if isinstance(part, Load)]
    along = any(same(v.strides[innermost], 1) and v.depends(row) for v in views)
    return not along and any(same(v.strides[row], 1) and v.depends(innermost) for v in views)


def has_short_rows(view: View, rows: int) -> bool:
    """Whether the last axis of rows counts short rows, each of them contiguous: a loop over tiles
    copies them, so that vectors across them are contiguous."""
    inner = view.shape[rows:]
    length = inner[0] if len(inner) == 1 else None
    if not isinstance(length, int) or not 1 < length <= _SHORT or not same(view.strides[-1], 1):
        return False
    return not same(view.strides[rows - 1], 0) and not same(view.strides[rows - 1], 1)


def has_one_pass(region: Region) -> bool:
    """Whether the loops of a row read what the row reads once: no reduction waits for another, and
    no element for a reduction."""
    reductions = [p for p in walk(region.expression) if isinstance(p, Reduce)]
    return not region.inner and all(
        not isinstance(part, Reduce) for r in reductions for part in walk(r.body)
    )


def start_of(reduction: Reduce) -> float:
    is_sum = reduction.op is reduce_sum and isinstance(reduction.body, Load)
    return MACHINE.start_of_sum if is_sum else MACHINE.start_of_row


def _cost(view: View, axis: int) -> float:
    stride = view.strides[axis]
    if same(stride, 0):
        return 0.0
    return MACHINE.contiguous if same(stride, 1) else MACHINE.strided


def usual_product(extents: Shape) -> int:
    """The number of elements, with a usual size for each symbol."""
    return prod(map(_size, extents))


def _size(extent: DimLike) -> int:
    if isinstance(extent, int):
        return extent
    return size_at(extent, dict.fromkeys(extent.symbols(), _LARGE))
