"""Rows combined by segments: segment_reduce, bags of embeddings, histograms."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import DimLike, product
from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import UnsupportedError, aten, ptir

Maybe = Tensor | None
_REDUCTIONS = {"sum": "add", "mean": "mean", "prod": "mul", "max": "max", "min": "min"}


@aten("segment_reduce")
def segment_reduce(
    x: Tensor,
    reduce: str,
    *,
    lengths: Maybe = None,
    indices: Maybe = None,
    offsets: Maybe = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Segments along ``axis``, one after the other; those of each batch of leading axes by
    themselves. ``initial`` is one more row of each."""
    if lengths is None and offsets is None:
        raise UnsupportedError("it has neither lengths nor offsets")
    given: Tensor = ptir.diff(offsets, axis=-1) if lengths is None else lengths
    return _reduced(x, _REDUCTIONS[reduce], given, axis, initial)


def _reduced(x: Tensor, reduce: str, lengths: Tensor, axis: int, initial: Any) -> Tensor:
    count, batch, rest = lengths.shape[-1], x.shape[:axis], x.shape[axis + 1 :]
    groups, rows = product(batch), x.shape[axis]
    ends = ptir.cumsum(ptir.reshape(lengths, shape=(groups, count)), axis=1)
    first = ptir.arange(groups)[:, None]
    # The number of a row's segment in its group is how many end at or before it. Rows behind the
    # last one are in a segment more.
    numbers = ptir.broadcast_to(ptir.arange(rows), shape=(groups, rows))
    passed = ptir.searchsorted(ends, numbers, side="right")
    places = ptir.reshape(passed + first * (count + 1), shape=(groups * rows,))
    given = ptir.reshape(x, shape=(groups * rows, *rest))
    kind = "add" if initial is not None and reduce == "mean" else reduce
    made = ptir.segment_reduce(given, places, count=groups * (count + 1), reduce=kind)
    made = ptir.reshape(made, shape=(groups, count + 1, *rest))[:, :count]
    made = ptir.reshape(made, shape=(*batch, count, *rest))
    if initial is None:
        return made
    if kind == "add":
        sizes = ptir.reshape(lengths, shape=(*batch, count, *[1] * len(rest)))
        return (made + initial) / (ptir.maximum(sizes, 1) if reduce == "mean" else 1)
    join = {"mul": ptir.multiply, "max": ptir.maximum, "min": ptir.minimum}[kind]
    return join(made, initial)


@aten("_embedding_bag_forward_only")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Maybe = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, None, None, None]:
    """The sums (mode 0), means (1) or greatest (2) rows of each bag; 0 for an empty one."""
    starts = offsets[:-1] if include_last_offset else offsets
    count: DimLike = starts.shape[0]
    places = ptir.searchsorted(starts, ptir.arange(indices.shape[0]), side="right") - 1
    rows = ptir.take(weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    counted = ptir.full((indices.shape[0],), 1, dtype=rows.dtype)
    if padding_idx >= 0:
        counted = ptir.cast(indices != padding_idx, dtype=rows.dtype)
    sizes = ptir.segment_reduce(counted, places, count=count)[:, None]
    if mode == 2:
        seen = ptir.where(counted[:, None] > 0, rows, -float("inf"))
        made = ptir.segment_reduce(seen, places, count=count, reduce="max")
        return ptir.where(sizes > 0, made, 0), None, None, None
    rows = ptir.where(counted[:, None] > 0, rows, 0)
    sums = ptir.segment_reduce(rows, places, count=count)
    return sums / ptir.maximum(sizes, 1) if mode == 1 else sums, None, None, None


@aten("histc")
def histc(x: Tensor, bins: int = 100, least: Any = 0, greatest: Any = 0) -> Tensor:
    return ptir.histc(x, bins, least, greatest)


@aten("histogram.bin_ct", "histogram.bins_tensor")
def histogram(
    x: Tensor,
    bins: Any = 100,
    range: Any = None,
    weight: Maybe = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    counts, edges = ptir.histogram(x, bins, range, density, weight)
    return ptir.cast(counts, dtype=x.dtype), ptir.cast(edges, dtype=x.dtype)


@aten("embedding_renorm")
def embedding_renorm(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """With the rows at ``indices`` that are longer than ``max_norm`` made that long."""
    places = ptir.ravel(indices)
    rows = ptir.take(weight, places, axis=0)
    lengths = ptir.linalg.vector_norm(rows, ord=norm_type, axis=1, keepdims=True)
    shorter = ptir.where(lengths > max_norm, rows * (max_norm / (lengths + 1e-7)), rows)
    return ptir.index_copy(weight, 0, places, shorter)
