"""Reductions in two stages: regions with few rows, split into chunks that threads share.

Input: a region. Output: the regions that compute it, in order: itself alone, or for each of its
reductions one that reduces chunks, whose rows are the chunks beside the region's own rows, and then
the region with reductions of these partial results in their place:

    for chunk in chunks, row in rows:      # parallel
        parts[chunk, row] = reduce(x[row, k] for k in the chunk)
    for row in rows:
        out[row] = f(reduce(parts[chunk, row] for all chunks))

Chunks and their order depend on nothing but the shape, so that results do not depend on the number
of threads. Sums of floats of at most 32 bits have partial results in f64.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from gptrs.backends.machine import MACHINE
from gptrs.backends.regions import Region
from gptrs.backends.vectorization import prefers_tiles, usual_product
from gptrs.backends.views import Apply, Chunks, Expression, Load, Reduce, View, map_views, walk
from gptrs.ir.dims import DimLike, Shape
from gptrs.ir.ops.reduce import reduce_sum
from gptrs.ir.program import Value
from gptrs.ir.types import DType, Type, cf64, f64
from gptrs.kernels.rowwise.reduce import TILE

CHUNK = 4096
"""The elements of a row in a chunk: its work is a few hundred times that of its partial result."""
_LEAST = 1 << 16
"""The elements of a region below which one thread does it sooner."""


def stages(region: Region) -> tuple[Region, ...]:
    """The regions that compute ``region``, which is the last of them."""
    reductions = [p for p in walk(region.expression, into=False) if isinstance(p, Reduce)]
    if not reductions or region.inner or not all(map(_is_long, reductions)):
        return (region,)
    tiles = prefers_tiles(region)
    rows = (*region.rows[:-1], (region.rows[-1] + (TILE - 1)) // TILE) if tiles else region.rows
    least = min(usual_product(reduction.extents) for reduction in reductions)
    if usual_product(rows) > MACHINE.few_rows or usual_product(region.rows) * least < _LEAST:
        return (region,)
    parts: list[Region] = []

    def partial(reduction: Reduce) -> Expression:
        part, total = _split(region, reduction, tiles)
        parts.append(part)
        return total

    made: dict[Expression, Expression] = {}
    for part in walk(region.expression, into=False):
        match part:
            case Reduce():
                made[part] = partial(part)
            case Apply():
                made[part] = replace(part, operands=tuple(made[o] for o in part.operands))
            case _:
                made[part] = part
    return (*parts, replace(region, expression=made[region.expression]))


def _is_long(reduction: Reduce) -> bool:
    """Whether a reduction has several chunks, and needs no other one first."""
    if not reduction.extents or any(isinstance(part, Reduce) for part in walk(reduction.body)):
        return False
    if not usual_product(reduction.extents):  # nothing to cut
        return False
    axis, length = _cut(reduction.extents)
    return usual_product(reduction.extents[axis : axis + 1]) > length


def _cut(extents: Shape) -> tuple[int, int]:
    """The axis of a reduction that gives the most chunks, and its positions in a chunk."""
    sizes = [usual_product((extent,)) for extent in extents]
    lengths = [max(1, CHUNK // prod(sizes[axis + 1 :])) for axis in range(len(sizes))]
    axis = max(range(len(sizes)), key=lambda axis: sizes[axis] / lengths[axis])
    return axis, lengths[axis]


def _split(region: Region, reduction: Reduce, tiles: bool) -> tuple[Region, Reduce]:
    """The region of a reduction's partial results, and the reduction of these."""
    rows, extents = region.rows, reduction.extents
    axis, length = _cut(extents)
    chunks = (extents[axis] + (length - 1)) // length
    dtype = _partial_dtype(reduction)
    shape = (chunks, *rows) if tiles else (*rows, chunks)
    parts = Value(Type(shape, dtype), f"part of {reduction.value.origin}")
    place = View.contiguous(shape)
    order = range(len(shape)) if tiles else (len(rows), *range(len(rows)))
    output = place.permuted(order)  # chunks first

    def cut(view: View, around: int) -> View:
        """The view of a chunk, whose first axis of rows counts chunks."""
        step: DimLike = view.strides[len(rows) + axis] * length
        inner = list(view.shape)
        inner[len(rows) + axis] = length
        return View((chunks, *inner), (step, *view.strides), view.offset)

    body = map_views(reduction.body, cut)
    assert body is not None
    cut_extents = (*extents[:axis], length, *extents[axis + 1 :])
    ragged = Chunks(axis, extents[axis])
    partial = replace(reduction, dtype=dtype, body=body, extents=cut_extents, chunks=ragged)
    made = Region(parts, partial, output, (chunks, *rows), (), region.members)
    last = View((*output.shape[1:], chunks), output.strides[1:] + output.strides[:1])
    total = replace(reduction, accumulator=dtype, body=Load(parts, last), extents=(chunks,))
    return made, total


def _partial_dtype(reduction: Reduce) -> DType:
    if reduction.op is not reduce_sum:
        return reduction.accumulator
    if reduction.accumulator.is_complex:
        return cf64
    return f64 if reduction.accumulator.is_float else reduction.accumulator
