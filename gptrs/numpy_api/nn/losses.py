"""Losses. ``reduction`` is "mean", "sum" or "none"."""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import widen
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.linear_maps import linear
from gptrs.numpy_api.nn.operands import as_float, fixed, nn_function
from gptrs.numpy_api.nn.reductions import float_pair, reduced, reduction_of, weighted

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]


@nn_function
def mse_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    """(x − y)²."""
    x, a, b = float_pair(input, target)
    error = a - b
    return weighted(error * error, x, weight, reduction_of(size_average, reduce, reduction))


@nn_function
def l1_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    """|x − y|."""
    x, a, b = float_pair(input, target)
    return weighted(OPS["abs"](a - b), x, weight, reduction_of(size_average, reduce, reduction))


@nn_function
def smooth_l1_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """½ d² / beta where d = |x − y| is below beta, else d − ½ beta."""
    if beta < 0:
        raise ArgumentError(f"beta is {beta}, expected at least 0")
    x, a, b = float_pair(input, target)
    distance = OPS["abs"](a - b)
    loss = distance
    if beta:
        near = distance * distance * (0.5 / beta)
        loss = OPS["select"](distance < beta, near, distance - 0.5 * beta)
    return reduced(loss, x, reduction_of(size_average, reduce, reduction))


@nn_function
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Tensor:
    """½ d² where d = |x − y| is at most delta, else delta · (d − ½ delta)."""
    if delta <= 0:
        raise ArgumentError(f"delta is {delta}, expected above 0")
    x, a, b = float_pair(input, target)
    distance = OPS["abs"](a - b)
    far = (distance - 0.5 * delta) * delta
    loss = OPS["select"](distance <= delta, distance * distance * 0.5, far)
    return weighted(loss, x, weight, reduction_of(None, None, reduction))


@nn_function
def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """−y log x − (1 − y) log(1 − x) for probabilities x; the logarithms are at least −100."""
    x, p, y = float_pair(input, target)
    present = OPS["maximum"](OPS["log"](p), -100.0)
    absent = OPS["maximum"](OPS["log1p"](-p), -100.0)
    loss = (y - 1.0) * absent - y * present
    if weight is not None:
        loss = loss * widen(as_float(weight))
    return reduced(loss, x, reduction_of(size_average, reduce, reduction))


@nn_function
def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid x; ``pos_weight`` scales the first term."""
    x, z, y = float_pair(input, target)
    negative = OPS["maximum"](-z, 0.0) + OPS["log1p"](OPS["exp"](-OPS["abs"](z)))
    scale = 1.0 if pos_weight is None else (widen(as_float(pos_weight)) - 1.0) * y + 1.0
    loss = (1.0 - y) * z + scale * negative
    if weight is not None:
        loss = loss * widen(as_float(weight))
    return reduced(loss, x, reduction_of(size_average, reduce, reduction))


@nn_function
def kl_div(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """y (log y − x) for logarithms x of probabilities; with ``log_target`` the target is given as
    its logarithm too. ``reduction="batchmean"`` divides the sum by the first extent."""
    x, a, b = float_pair(input, target)
    if log_target:
        loss = OPS["exp"](b) * (b - a)
    else:
        entropy = OPS["select"](b == 0, 0.0, b * OPS["log"](b))
        loss = entropy - b * a
    return reduced(loss, x, reduction_of(size_average, reduce, reduction))


def _classes_last(x: Tensor) -> Tensor:
    if not x.ndim:
        raise ShapeError("input has rank 0, expected [C] or [N, C, ...]")
    return x if x.ndim < 3 else OPS["transpose"](x, perm=(0, *range(2, x.ndim), 1))


def _of_classes(
    log_p: Tensor, target: Tensor, weight: Any, ignore_index: int, smoothing: float, mean: bool
) -> Tensor:
    """The loss of each row of log_p [..., C]; for a mean divided by the weights of all rows."""
    classes = target.astype("si64")
    kept = classes != ignore_index
    safe = OPS["select"](kept, classes, 0)
    loss: Tensor = -OPS["gather"](log_p, safe.unsqueeze(-1), axis=-1).squeeze(-1)
    shares = kept.astype(log_p.dtype)
    smooth = -log_p
    if weight is not None:
        given = widen(as_float(weight))
        rows = OPS["take"](given, safe)
        loss, shares, smooth = loss * rows, shares * rows, smooth * given
    if smoothing:
        even = OPS["reduce_sum"](smooth, axes=-1) * smoothing / log_p.shape[-1]
        loss = loss * (1 - smoothing) + even
    loss = OPS["select"](kept, loss, 0.0)
    return OPS["reduce_sum"](loss) / OPS["reduce_sum"](shares) if mean else loss


@nn_function
def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """−weight[y] · x[y] for log-probabilities x [N, C, ...] and classes y [N, ...]; a mean divides
    by the weights of the classes that are not ``ignore_index``."""
    x = as_float(input)
    how = reduction_of(size_average, reduce, reduction)
    rows = widen(_classes_last(x))
    loss = _of_classes(rows, as_tensor(target), weight, ignore_index, 0.0, how == "mean")
    return reduced(loss, x, "none" if how == "mean" else how)


@nn_function
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """−log softmax(x)[y] for logits x [N, C, ...] and classes y [N, ...], or −Σ y log softmax(x)
    for probabilities y [N, C, ...].

    ``weight`` [C] scales classes, ``label_smoothing`` mixes the target with equal probabilities.
    """
    x, y = as_float(input), as_tensor(target)
    how = reduction_of(size_average, reduce, reduction)
    rows = _classes_last(x)
    if y.dtype.is_integer and weight is None and not label_smoothing:
        return OPS["cross_entropy"](rows, y, reduction=how, ignore_index=ignore_index)
    log_p: Tensor = OPS["log_softmax"](widen(rows), axis=-1)
    if y.dtype.is_integer:
        loss = _of_classes(log_p, y, weight, ignore_index, label_smoothing, how == "mean")
        return reduced(loss, x, "none" if how == "mean" else how)
    wanted = widen(_classes_last(y))
    if label_smoothing:
        even = label_smoothing / fixed(rows.shape[-1:], "input")[0]
        wanted = wanted * (1 - label_smoothing) + even
    terms = log_p * wanted
    if weight is not None:
        terms = terms * widen(as_float(weight))
    return reduced(-OPS["reduce_sum"](terms, axes=-1), x, how)


@nn_function
def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of the logits x [N, in] · linear_weightᵀ + linear_bias, with linear_weight
    [C, in], or [C, ..., in] for logits [N, C, ...]. ``options`` are about torch's memory: no
    effect."""
    x, w = as_float(input), as_float(linear_weight)
    *outputs, width = w.shape
    bias = None if linear_bias is None else as_float(linear_bias).reshape(-1)
    flat = linear(x, w.reshape([-1, width]), bias)
    logits = flat.reshape([*x.shape[:-1], *outputs])
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits,
        target,
        weight,
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
