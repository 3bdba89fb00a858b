"""Negative logarithms of likelihoods: of Poisson and normal distributions, of sequences (CTC)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import same_shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import tensor_of
from gptrs.numpy_api.nn.operands import as_float, nn_function
from gptrs.numpy_api.nn.reductions import float_pair, reduced, reduction_of

__all__ = ["ctc_loss", "gaussian_nll_loss", "poisson_nll_loss"]


@nn_function
def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """eˣ − y x of logarithms x of rates, or x − y log(x + eps) of rates without ``log_input``;
    ``full`` adds Stirling's y log y − y + ½ log(2πy) where y is above 1."""
    x, a, y = float_pair(input, target)
    loss = OPS["exp"](a) - y * a if log_input else a - y * OPS["log"](a + eps)
    if full:
        stirling = y * OPS["log"](y) - y + OPS["log"](y * (2 * math.pi)) * 0.5
        loss = loss + OPS["select"](y <= 1, 0.0, stirling)
    return reduced(loss, x, reduction_of(size_average, reduce, reduction))


@nn_function
def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """½ (log v + (x − y)² / v) with v = max(var, eps); ``full`` adds ½ log 2π. ``var`` is a number,
    has the shape of x, or one entry for its last axis."""
    x, a, y = float_pair(input, target)
    variance = widen(as_float(var))
    if not variance.is_traced and bool(np.any(variance.numpy() < 0)):
        raise ArgumentError("var has negative entries")
    if variance.ndim and not same_shape(variance.shape, a.shape):
        if same_shape(variance.shape, a.shape[:-1]):
            variance = variance.unsqueeze(-1)
        elif not same_shape(variance.shape, (*a.shape[:-1], 1)):
            raise ShapeError(
                f"var has shape {shape_text(variance.shape)}, expected {shape_text(a.shape)}, or 1"
                " in the last axis"
            )
    variance = OPS["maximum"](variance.astype(a.dtype), eps)
    error = a - y
    loss = (OPS["log"](variance) + error * error / variance) * 0.5
    loss = loss + 0.5 * math.log(2 * math.pi) if full else loss
    return reduced(loss, x, reduction_of(None, None, reduction))


@nn_function
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """−log Σ p(path) over the alignments of a target: connectionist temporal classification.

    ``log_probs`` [T, N, C], ``targets`` [N, S] or one after the other in a row; lengths [N].
    Without N there is one example. A mean divides each loss by the length of its target, at least
    1. ``zero_infinity`` makes the loss 0 of a target that no alignment fits. One pass over T.
    Source: Graves et al., ICML 2006.
    """
    x = as_float(log_probs)
    if x.ndim not in (2, 3):
        raise ShapeError(f"log_probs has shape {shape_text(x.shape)}, expected [T, N, C]")
    batched = x.ndim == 3
    wide = widen(x if batched else x.unsqueeze(1))
    steps, ends = (tensor_of(n, "si64").reshape(-1) for n in (input_lengths, target_lengths))
    labels = _padded(tensor_of(targets, "si64"), ends, batched)
    loss = _alignments(wide, labels, steps, ends, blank)
    if zero_infinity:
        loss = OPS["select"](loss == math.inf, 0.0, loss)
    how = reduction_of(None, None, reduction)
    if how == "mean":
        loss = loss / OPS["maximum"](ends, 1).astype(loss.dtype)
    return reduced(loss if batched else loss.reshape(()), x, how)


def _padded(targets: Tensor, lengths: Tensor, batched: bool) -> Tensor:
    """Targets as [N, S]; entries behind the end of one may be anything."""
    if targets.ndim == 2:
        return targets
    if not batched:
        return targets.reshape(1, -1)
    longest: Any = targets.shape[0]
    if not lengths.is_traced:
        longest = int(np.max(lengths.numpy(), initial=0))
    first = OPS["cumsum"](lengths, axis=0) - lengths
    place = first.unsqueeze(1) + OPS["iota"](shape=(1, longest), axis=1, dtype="si64")
    return OPS["take"](targets, OPS["minimum"](place, targets.shape[0] - 1))


def _alignments(log_p: Tensor, labels: Tensor, steps: Tensor, ends: Tensor, blank: int) -> Tensor:
    """The loss of each example, by the forward variables of its states, blanks and labels in
    turn."""
    count, length = labels.shape
    states = 2 * length + 1
    pairs = OPS["pad"](labels.unsqueeze(2), low=(0, 0, 1), high=(0, 0, 0), value=blank)
    symbols = OPS["pad"](pairs.reshape(count, 2 * length), low=(0, 0), high=(0, 1), value=blank)
    place = OPS["iota"](shape=(1, states), axis=1, dtype="si64")
    inside = place < ends.unsqueeze(1) * 2 + 1
    symbols = OPS["select"](inside, symbols, blank)
    index = OPS["broadcast_to"](symbols, shape=(log_p.shape[0], count, states))
    each: Tensor = OPS["gather"](log_p, index, axis=2)  # [T, N, states]
    skips = OPS["logical_and"](symbols != blank, symbols != _later(symbols, 2, -1))
    start = OPS["select"](place < 2, each[0], -math.inf)
    time = OPS["iota"](shape=(log_p.shape[0] - 1,), dtype="si64") + 1

    def step(alpha: Tensor, at: Any) -> tuple[Tensor, Tensor]:
        emitted, t = at
        jump = OPS["select"](skips, _later(alpha, 2, -math.inf), -math.inf)
        following = _log_sum([alpha, _later(alpha, 1, -math.inf), jump]) + emitted
        return OPS["select"](t < steps.unsqueeze(1), following, alpha), t

    alpha, _ = OPS["scan"](step, start, (each[1:], time))
    last = ends.unsqueeze(1) * 2
    final: Tensor = OPS["gather"](alpha, last, axis=1)
    before: Tensor = OPS["gather"](alpha, OPS["maximum"](last - 1, 0), axis=1)
    before = OPS["select"](last > 0, before, -math.inf)
    return -_log_sum([final, before]).squeeze(1)


def _later(x: Tensor, by: int, value: float) -> Tensor:
    """x [N, states] moved to later states."""
    moved: Tensor = OPS["pad"](x, low=(0, by), high=(0, 0), value=value)
    return moved[:, : x.shape[1]]


def _log_sum(terms: list[Tensor]) -> Tensor:
    """log Σ eˣ; −∞ of nothing but −∞."""
    top = terms[0]
    for term in terms[1:]:
        top = OPS["maximum"](top, term)
    safe = OPS["select"](top == -math.inf, 0.0, top)
    total: Any = 0.0
    for term in terms:
        total = OPS["exp"](term - safe) + total
    return OPS["log"](total) + safe
