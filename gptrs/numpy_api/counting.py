"""Counts of values: bincount, digitize, histograms of any dimension; membership: isin."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from gptrs.errors import ArgumentError, TraceError
from gptrs.ir.dims import DimLike, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import described
from gptrs.numpy_api.creation import linspace
from gptrs.numpy_api.data_types import result_type
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.joining import unstack
from gptrs.numpy_api.manipulation import flip
from gptrs.numpy_api.searching import searchsorted

__all__ = [
    "bincount",
    "digitize",
    "histc",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "isin",
]


@public
def bincount(
    x: Any, weights: Any = None, minlength: int = 0, *, length: DimLike | None = None
) -> Tensor:
    """How often each of 0, 1, 2, ... occurs in the row ``x`` of integers, as si64; or the sums of
    the ``weights`` at its places.

    The result is as long as the greatest element asks for, ``minlength`` at least. In a traced
    function ``length`` says how long, and elements from there on are not counted, as in JAX.
    """
    x = as_tensor(x).reshape(-1)
    if length is None:
        if x.is_traced:
            raise TraceError(
                f"the length of bincount's result depends on values ({described(x)})",
                fix="give it: bincount(x, length=n)",
            )
        known = x.numpy()
        length = max(int(known.max()) + 1 if known.size else 0, minlength)
    if weights is None:
        parts: Tensor = OPS["full"](shape=x.shape, value=1, dtype="si64")
    else:
        parts = as_tensor(weights).reshape(-1)
        parts = parts if parts.dtype.is_float else parts.astype(DEFAULT_FLOAT)
    counted = OPS["logical_and"](x >= 0, x < length) if x.dtype.kind == "int" else x < length
    slot = OPS["select"](counted, x.astype("si64"), length)  # one more slot takes the others
    empty = OPS["full"](shape=(length + 1,), value=0, dtype=parts.dtype)
    return OPS["scatter_add"](empty, slot, parts, axis=0)[:length]


@public
def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """The number (si64) of the bin that each element lies in: bins[i − 1] ≤ x < bins[i], with
    ``right`` bins[i − 1] < x ≤ bins[i]. ``bins`` rises, or falls
    where it is no traced value."""
    edges = as_tensor(bins)
    side = "left" if right else "right"
    if not edges.is_traced and (known := edges.numpy()).size > 1 and known[0] > known[-1]:
        count = known.size
        other = "right" if right else "left"
        return count - searchsorted(flip(edges), x, side=other)
    return searchsorted(edges, x, side=side)


Bounds = Sequence[Any]


@public
def histogram_bin_edges(x: Any, bins: Any = 10, range: Bounds | None = None) -> Tensor:
    """The ``bins`` + 1 edges of bins of equal width from the least element of ``x`` to the
    greatest, or over ``range``; edges that are given stay as they are."""
    if not isinstance(bins, int):
        if isinstance(bins, str):
            raise ArgumentError(
                f"histogram: bins is {bins!r}, a rule that reads the values",
                fix="give a number of bins, or their edges",
            )
        return as_tensor(bins)
    if bins < 1:
        raise ArgumentError(f"histogram: bins is {bins}, expected an integer of at least 1")
    x = as_tensor(x)
    kind = x.dtype if x.dtype.is_float else DEFAULT_FLOAT
    if range is None and same(x.size, 0):
        range = (0.0, 1.0)
    if range is not None:
        low, high = (tensor_of(bound, kind) for bound in range)
    else:
        low, high = (OPS[f"reduce_{op}"](x.astype(kind)) for op in ("min", "max"))
    one_value = low == high
    low, high = OPS["select"](one_value, low - 0.5, low), OPS["select"](one_value, high + 0.5, high)
    return linspace(low, high, bins + 1, dtype=kind)


@public
def histogram(
    x: Any,
    bins: Any = 10,
    range: Bounds | None = None,
    density: bool = False,
    weights: Any = None,
) -> tuple[Tensor, Tensor]:
    """How many elements lie in each bin, or the sums of their ``weights``, and the edges.

    Bins hold their lower edge, the last one its upper edge, too; ``density`` divides by the number
    of elements and the widths. ``bins`` is a number, or the edges.
    """
    values = as_tensor(x).reshape(-1)
    edges = histogram_bin_edges(values, bins, range)
    found = bincount(_bin(values, edges), weights, length=edges.shape[0] - 1)
    if not density:
        return found, edges
    total = OPS["reduce_sum"](found).astype(edges.dtype)
    return found.astype(edges.dtype) / (edges[1:] - edges[:-1]) / total, edges


@public
def histc(x: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """How many elements lie in each of ``bins`` bins of equal width from ``min`` to ``max``, in the
    dtype of ``x``; from the least element to the greatest where the two are equal."""
    values = as_tensor(x).reshape(-1)
    whole = isinstance(min, int | float) and isinstance(max, int | float) and min == max
    found, _ = histogram(values, bins, None if whole else (min, max))
    return found.astype(values.dtype)


def _bin(values: Tensor, edges: Tensor) -> Tensor:
    """The number of the bin of each value, out of range for those in none."""
    place = searchsorted(edges, values, side="right") - 1
    return OPS["select"](values == edges[-1], edges.shape[0] - 2, place)


@public(other_names={"x": "sample"})
def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[Bounds | None] | None = None,
    density: bool = False,
    weights: Any = None,
) -> tuple[Tensor, list[Tensor]]:
    """How many points lie in each cell of a grid [n, m, ...], as floats, or the sums of their
    ``weights``, and the edges along each axis.

    ``sample`` are points [N, D], or a list of D rows of coordinates. ``bins`` is a number, or a
    number or the edges for each axis; ``range`` has bounds for each. See `histogram`.
    """
    if isinstance(sample, list | tuple):
        axes = [as_tensor(row).reshape(-1) for row in cast("Sequence[Any]", sample)]
    else:
        points = as_tensor(sample)
        axes = [points] if points.ndim == 1 else [*unstack(points, axis=1)]
    of_axis = [bins] * len(axes) if isinstance(bins, int) else [*bins]
    bounds = [None] * len(axes) if range is None else [*range]
    if not len(axes) == len(of_axis) == len(bounds):
        raise ArgumentError(
            f"histogramdd: {len(of_axis)} bins and {len(bounds)} ranges for {len(axes)} axes"
        )
    edges = [histogram_bin_edges(*given) for given in zip(axes, of_axis, bounds, strict=True)]
    extents = [row.shape[0] - 1 for row in edges]
    cell: Any = 0
    inside: Any = True
    for values, row, extent in zip(axes, edges, extents, strict=True):
        place = _bin(values, row)
        inside = OPS["logical_and"](OPS["logical_and"](place >= 0, place < extent), inside)
        cell = place + extent * cell
    total = prod(extents)
    cell = OPS["select"](inside, cell, total)
    found = bincount(cell, weights, length=total).reshape(extents).astype(edges[0].dtype)
    if density:
        found = found / OPS["reduce_sum"](found)
        for axis, row in enumerate(edges):
            shape = [-1 if i == axis else 1 for i, _ in enumerate(edges)]
            found = found / (row[1:] - row[:-1]).reshape(shape)
    return found, edges


def _is_pair(bins: object) -> bool:
    """Whether ``bins`` say how both axes are cut, rather than being the edges for each."""
    if isinstance(bins, list | tuple):
        return len(cast("Sequence[Any]", bins)) == 2
    return isinstance(bins, int)


@public
def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Sequence[Bounds | None] | None = None,
    density: bool = False,
    weights: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """How many of the points (x, y) lie in each cell [n, m], and the edges along both axes.

    ``bins`` is a number, one row of edges for both, or a pair. See `histogramdd`.
    """
    pair = bins if _is_pair(bins) else [bins, bins]
    found, (rows, columns) = histogramdd([x, y], pair, range, density, weights)
    return found, rows, columns


@public(other_names={"element": "x1", "test_elements": "x2", "elements": "x1"})
def isin(x1: Any, x2: Any, *, invert: bool = False, assume_unique: bool = False) -> Tensor:
    """Whether each element of ``x1`` occurs in ``x2``; NaN occurs nowhere.

    Sorting and binary search: (n + m) log m comparisons, no table of n · m.
    """
    x, among = as_tensor(x1), as_tensor(x2).reshape(-1)
    common = result_type(x, among)
    if among.shape[0] == 0:
        return OPS["full"](shape=x.shape, value=invert, dtype="i1")
    x, among = x.astype(common), OPS["sort"](among.astype(common), axis=0)[0]
    place = OPS["minimum"](searchsorted(among, x), among.shape[0] - 1)
    there = OPS["take"](among, place) == x
    return OPS["logical_not"](there) if invert else there
