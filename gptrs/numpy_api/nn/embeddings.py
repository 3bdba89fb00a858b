"""Rows of a table by integers: embedding, embedding_bag, one_hot."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.dims import DimLike, same, same_shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import as_tensor, tensor_of
from gptrs.numpy_api.nn.norms import p_norm
from gptrs.numpy_api.nn.operands import as_float, nn_function
from gptrs.numpy_api.searching import searchsorted

__all__ = ["embedding", "embedding_bag", "one_hot"]


def _operands(input: Any, weight: Any, padding_idx: int | None) -> tuple[Tensor, Tensor, Any]:
    """Ids, the table [vocabulary, width], and the padding's id counted from the start."""
    ids, table = as_tensor(input), as_tensor(weight)
    if not ids.dtype.is_integer or ids.dtype.is_bool:
        raise DTypeError(f"input is {ids.dtype}, expected integers", fix="x.astype(ptir.si64)")
    if table.ndim != 2:
        raise ShapeError(
            f"weight has shape {shape_text(table.shape)}, expected [vocabulary, width]"
        )
    if padding_idx is None:
        return ids, table, None
    rows = table.shape[0]
    if isinstance(rows, int) and not -rows <= padding_idx < rows:
        raise ArgumentError(f"padding_idx is {padding_idx}, expected a row of {rows}")
    return ids, table, padding_idx if padding_idx >= 0 else rows + padding_idx


def _rows(table: Tensor, ids: Tensor, max_norm: float | None, norm_type: float) -> Tensor:
    """Rows of the table, those longer than ``max_norm`` scaled to it."""
    rows: Tensor = OPS["embedding"](table, ids)
    if max_norm is None:
        return rows
    wide = widen(as_float(rows))
    sizes = p_norm(wide, norm_type, -1, keepdims=True)
    return narrow(OPS["select"](sizes > max_norm, wide * (max_norm / (sizes + 1e-7)), wide), rows)


@nn_function
def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of ``weight`` [vocabulary, width] for integers of any shape: [..., width].

    Rows whose norm is above ``max_norm`` are scaled to it; the table itself is not changed.
    ``padding_idx``, ``scale_grad_by_freq`` and ``sparse`` are about gradients: they have no effect.
    An id that is no row is an `ElementError`.
    """
    ids, table, _ = _operands(input, weight, padding_idx)
    return _rows(table, ids, max_norm, norm_type)


@nn_function
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or greatest elements of bags of rows of ``weight``: [bags, width].

    ``input`` [bags, n] has one bag in each row; with ``offsets`` [bags], ``input`` [n] is a row of
    bags, each from its offset to the next one (with ``include_last_offset`` the last offset is the
    end). ``per_sample_weights`` scale rows of a sum. Rows of ``padding_idx`` are left out. An empty
    bag gives 0.
    """
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"mode is {mode!r}, expected 'sum', 'mean' or 'max'")
    ids, table, padding = _operands(input, weight, padding_idx)
    segments, bags = _bags(ids, offsets, include_last_offset)
    rows = widen(_rows(table, ids.reshape(-1), max_norm, norm_type))
    if per_sample_weights is not None:
        scales = as_float(per_sample_weights)
        if mode != "sum" or not same_shape(scales.shape, ids.shape):
            raise ArgumentError(
                f"mode is {mode!r} and per_sample_weights has shape {shape_text(scales.shape)},"
                f" expected 'sum' and {shape_text(ids.shape)}"
            )
        rows = rows * widen(scales).reshape(-1, 1)
    kept = None if padding is None else ids.reshape(-1) != padding
    if segments is None:
        return narrow(_of_equal_bags(rows, bags, kept, mode), table)
    return narrow(_of_segments(rows, segments, bags, kept, mode), table)


def _bags(ids: Tensor, offsets: Any, include_last_offset: bool) -> tuple[Tensor | None, DimLike]:
    """The bag of each entry (None where all have the same number), and the number of bags."""
    if ids.ndim == 2:
        if offsets is not None:
            raise ArgumentError("offsets are for an input of rank 1; rows of rank 2 are bags")
        return None, ids.shape[0]
    if ids.ndim != 1 or offsets is None:
        raise ShapeError(
            f"input has shape {shape_text(ids.shape)}, expected [bags, n], or [n] with offsets"
        )
    first = tensor_of(offsets, "si64")
    places = OPS["iota"](shape=ids.shape, dtype="si64")
    segments = searchsorted(first, places, side="right") - 1
    return segments, first.shape[0] - (1 if include_last_offset else 0)


def _of_equal_bags(rows: Tensor, bags: DimLike, kept: Tensor | None, mode: str) -> Tensor:
    size = rows.shape[0] // bags if bags else 0
    rows = rows.reshape([bags, size, rows.shape[-1]])
    stays = None if kept is None else kept.reshape([bags, size, 1])
    if mode == "max":
        if same(size, 0):
            return OPS["reduce_sum"](rows, axes=1)
        if stays is None:
            return OPS["reduce_max"](rows, axes=1)
        best = OPS["reduce_max"](OPS["select"](stays, rows, -np.inf), axes=1)
        return OPS["select"](OPS["reduce_any"](stays, axes=1), best, 0.0)
    if stays is None:
        total: Tensor = OPS["reduce_sum"](rows, axes=1)
        return total if mode == "sum" else total / (1 if same(size, 0) else size)
    total = OPS["reduce_sum"](OPS["select"](stays, rows, 0.0), axes=1)
    if mode == "sum":
        return total
    count = OPS["reduce_sum"](stays.astype(rows.dtype), axes=1)
    return total / OPS["maximum"](count, 1.0)


def _of_segments(
    rows: Tensor, segments: Tensor, bags: DimLike, kept: Tensor | None, mode: str
) -> Tensor:
    """Bags of any number of entries; a segment behind the last one takes what belongs to none."""
    if kept is not None:
        segments = OPS["select"](kept, segments, bags)
    segments = OPS["minimum"](segments, bags)

    def combined(x: Tensor, reduce: str) -> Tensor:
        every: Tensor = OPS["segment_reduce"](x, segments, count=bags + 1, reduce=reduce)
        return every[:bags]

    if mode == "sum":
        return combined(rows, "add")
    ones = OPS["full"](shape=(rows.shape[0], 1), value=1, dtype=rows.dtype)
    count = combined(ones, "add")
    if mode == "max":
        return OPS["select"](count > 0, combined(rows, "max"), 0.0)
    return combined(rows, "add") / OPS["maximum"](count, 1.0)


@nn_function
def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """1 at the place of each class, 0 elsewhere: si64 [..., num_classes].

    The greatest class + 1 are the classes unless given; traced functions have to give them. A class
    outside is an `ElementError`.
    """
    classes = as_tensor(tensor)
    if not classes.dtype.is_integer or classes.dtype.is_bool:
        raise DTypeError(f"classes are {classes.dtype}, expected integers")
    if num_classes == -1:
        if classes.is_traced:
            raise ArgumentError(
                "the number of classes depends on traced values", fix="give it: num_classes="
            )
        if not classes.size:
            raise ArgumentError("no class says how many there are", fix="give it: num_classes=")
        num_classes = int(np.max(classes.numpy())) + 1
    if num_classes < 1:
        raise ArgumentError(f"num_classes is {num_classes}, expected at least 1")
    zeros = OPS["full"](shape=(*classes.shape, num_classes), value=0, dtype="si64")
    ones = OPS["full"](shape=(*classes.shape, 1), value=1, dtype="si64")
    return OPS["scatter_reduce"](zeros, classes.unsqueeze(-1), ones, axis=-1, reduce="replace")
