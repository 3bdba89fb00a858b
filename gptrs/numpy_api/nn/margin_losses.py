"""Losses that ask for a margin between what belongs together and what does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import same_shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import as_tensor, tensor_of
from gptrs.numpy_api.nn.activations import logsigmoid
from gptrs.numpy_api.nn.distances import pairwise_distance
from gptrs.numpy_api.nn.operands import as_float, nn_function
from gptrs.numpy_api.nn.reductions import float_pair, reduced, reduction_of

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _positive(x: Tensor) -> Tensor:
    return OPS["maximum"](x, 0.0)


@nn_function
def hinge_embedding_loss(
    input: Any,
    target: Any,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where y is 1, max(0, margin − x) where it is −1."""
    x, a, y = float_pair(input, target)
    far = OPS["select"](y != 1, _positive(margin - a), 0.0)
    loss = far + OPS["select"](y != -1, a, 0.0)
    return reduced(loss, x, reduction_of(size_average, reduce, reduction))


@nn_function
def margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, −y (x₁ − x₂) + margin)."""
    x, a, b = float_pair(input1, input2)
    y = widen(as_float(target))
    loss = _positive(-y * (a - b) + margin)
    return reduced(loss, x, reduction_of(size_average, reduce, reduction))


@nn_function
def cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 − cos (x₁, x₂) where y is 1, max(0, cos (x₁, x₂) − margin) where it is −1; x [N, D] or
    [D]."""
    x, a, b = float_pair(input1, input2)
    y = as_tensor(target)
    if y.ndim > 1 or a.ndim != y.ndim + 1 or b.ndim != a.ndim:
        raise ShapeError(
            f"target has shape {shape_text(y.shape)} and the inputs {shape_text(a.shape)} and"
            f" {shape_text(b.shape)}, expected [N] and [N, D], or [] and [D]"
        )

    def sums(p: Tensor) -> Tensor:
        return OPS["reduce_sum"](p, axes=-1)

    sizes = (sums(a * a) + 1e-12) * (sums(b * b) + 1e-12)
    cosine = sums(a * b) / OPS["sqrt"](sizes)
    near = OPS["select"](y == 1, 1.0 - cosine, 0.0)
    loss = near + OPS["select"](y == -1, _positive(cosine - margin), 0.0)
    return reduced(loss, x, reduction_of(size_average, reduce, reduction))


@nn_function
def soft_margin_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + e^(−y x))."""
    x, a, y = float_pair(input, target)
    loss = OPS["log1p"](OPS["exp"](-y * a))
    return reduced(loss, x, reduction_of(size_average, reduce, reduction))


def _class_rows(input: Any, target: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The operand, its rows [N, C] in the dtype of the arithmetic, and the classes in si64."""
    x, classes = as_float(input), tensor_of(target, "si64")
    if x.ndim not in (1, 2):
        raise ShapeError(f"input has shape {shape_text(x.shape)}, expected [N, C] or [C]")
    return x, widen(x).reshape([-1, x.shape[-1]]), classes


@nn_function
def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ weight[y] · max(0, margin − x[y] + x[j])ᵖ / C over the classes j ≠ y, of x [N, C] and
    y [N]."""
    if p not in (1, 2):
        raise ArgumentError(f"p is {p}, expected 1 or 2")
    x, rows, classes = _class_rows(input, target)
    y = classes.reshape(-1, 1)
    right: Tensor = OPS["gather"](rows, y, axis=1)
    terms = _positive(margin - right + rows)
    terms = terms * terms if p == 2 else terms
    if weight is not None:
        terms = terms * OPS["take"](widen(as_float(weight)), y)
    others = OPS["iota"](shape=(1, rows.shape[1]), axis=1, dtype="si64") != y
    loss: Tensor = OPS["reduce_sum"](OPS["select"](others, terms, 0.0), axes=1) / rows.shape[1]
    how = reduction_of(size_average, reduce, reduction)
    return reduced(loss if classes.ndim else loss.reshape(()), x, how)


@nn_function
def multilabel_margin_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ max(0, 1 − x[y] + x[j]) / C over the labels y and the classes j that are none, of x [N, C];
    the labels of a row of ``target`` [N, C] end at its first −1."""
    x, rows, classes = _class_rows(input, target)
    if not same_shape(classes.shape, x.shape):
        raise ShapeError(
            f"target has shape {shape_text(classes.shape)}, expected {shape_text(x.shape)}"
        )
    labels = classes.reshape(rows.shape)
    given: Tensor = OPS["cumprod"]((labels >= 0).astype("si64"), axis=1) != 0
    labels = OPS["select"](given, labels, 0)
    place = OPS["iota"](shape=(1, 1, rows.shape[1]), axis=2, dtype="si64")
    is_label = OPS["logical_and"](labels.unsqueeze(2) == place, given.unsqueeze(2))
    none: Tensor = OPS["logical_not"](OPS["reduce_any"](is_label, axes=1))
    right: Tensor = OPS["gather"](rows, labels, axis=1)
    terms = _positive(1.0 - right.unsqueeze(2) + rows.unsqueeze(1))
    counted = OPS["logical_and"](given.unsqueeze(2), none.unsqueeze(1))
    total = OPS["reduce_sum"](OPS["select"](counted, terms, 0.0), axes=(1, 2))
    loss = (total / rows.shape[1]).reshape(x.shape[:-1])
    return reduced(loss, x, reduction_of(size_average, reduce, reduction))


@nn_function
def multilabel_soft_margin_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """−(y log sigmoid(x) + (1 − y) log sigmoid(−x)), the mean over the classes, the last axis."""
    x, a, y = float_pair(input, target)
    loss = -(y * logsigmoid(a) + (1.0 - y) * logsigmoid(-a))
    if weight is not None:
        loss = loss * widen(as_float(weight))
    each = OPS["mean"](loss, axes=-1)
    return reduced(each, x, reduction_of(size_average, reduce, reduction))


def _triplet(
    operands: tuple[Any, Any, Any],
    distance: Callable[[Any, Any], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    anchor, positive, negative = map(as_float, operands)
    near, far = widen(distance(anchor, positive)), widen(distance(anchor, negative))
    if swap:
        far = OPS["minimum"](far, widen(distance(positive, negative)))
    return reduced(narrow(_positive(near - far + margin), anchor), anchor, reduction)


@nn_function
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, ‖a − p‖ − ‖a − n‖ + margin) with norms as in `pairwise_distance`; with ``swap`` the
    lesser of ‖a − n‖ and ‖p − n‖. Source: Balntas et al., BMVC 2016."""
    how = reduction_of(size_average, reduce, reduction)

    def distance(a: Any, b: Any) -> Tensor:
        return pairwise_distance(widen(a), widen(b), p, eps)

    return _triplet((anchor, positive, negative), distance, margin, swap, how)


@nn_function
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` by a distance function, `pairwise_distance` unless given."""
    how = reduction_of(None, None, reduction)
    distance = distance_function or pairwise_distance
    return _triplet((anchor, positive, negative), distance, margin, swap, how)
