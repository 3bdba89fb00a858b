"""Counts of values: bincount, digitize, histogram; membership: isin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.errors import ArgumentError, TraceError
from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import described
from gptrs.numpy_api.creation import linspace
from gptrs.numpy_api.data_types import result_type
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.manipulation import flip
from gptrs.numpy_api.searching import searchsorted

__all__ = ["bincount", "digitize", "histogram", "histogram_bin_edges", "isin"]


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
    if range is not None:
        low, high = (as_tensor(bound).astype(kind) for bound in range)
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
    count = edges.shape[0] - 1
    place = searchsorted(edges, values, side="right") - 1
    place = OPS["select"](values == edges[-1], count - 1, place)
    found = bincount(place, weights, length=count)
    if not density:
        return found, edges
    total = OPS["reduce_sum"](found).astype(edges.dtype)
    return found.astype(edges.dtype) / (edges[1:] - edges[:-1]) / total, edges


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
