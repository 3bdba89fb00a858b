"""Rows of the composites of language models other than attention."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from tests.cases.sample import LIBM, ORDER, Case, sample
from tests.support.lazy_torch import F, torch

HALVES = ("f32", "f64", "f16", "bf16")


def _rms_norm(x: torch.Tensor, weight: Any = None, *, eps: float = 1e-6) -> torch.Tensor:
    return F.rms_norm(x, x.shape[-1:], weight, eps)


def _rotary(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *, interleaved: bool = False
) -> torch.Tensor:
    """Pairs as complex numbers, each times cos + i·sin; a table with an entry per element has one
    for the real and one for the imaginary part of the result."""
    depth = x.shape[-1]
    order = torch.arange(depth)
    order = order.reshape(-1, 2).T.flatten() if interleaved else order  # real parts first
    real, imaginary = x[..., order].chunk(2, -1)
    if cos.shape[-1] == depth:
        cos = cos[..., order]
    if sin.shape[-1] == depth:
        sin = sin[..., order]
    c, s = ([*t.chunk(2, -1)] if t.shape[-1] == depth else [t, t] for t in (cos, sin))
    turned = torch.cat((real * c[0] - imaginary * s[0], imaginary * c[1] + real * s[1]), -1)
    return turned[..., torch.argsort(order)]


def _cross_entropy(
    logits: torch.Tensor,
    targets: torch.Tensor,
    *,
    reduction: str = "mean",
    ignore_index: int | None = None,
) -> torch.Tensor:
    ignored = -100 if ignore_index is None else ignore_index
    loss = F.cross_entropy(
        logits.reshape(targets.numel(), logits.shape[-1]),
        targets.flatten().long(),
        reduction=reduction,
        ignore_index=ignored,
    )
    return loss.reshape(targets.shape) if reduction == "none" else loss


def _grouped_linear(x: torch.Tensor, ids: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The matrix of each id, which is copied."""
    rows = x if x.ndim > ids.ndim else x.unsqueeze(-2)
    return (weight[ids.long()] @ rows.unsqueeze(-1)).squeeze(-1)


LANGUAGE = (
    Case(
        "rms_norm",
        (
            sample("T[S,7]"),
            sample("T[2,S,16] special", "T[16]", eps=1e-3),
            sample("T[17]", "T[17]"),
            sample("T[3,1]", "T[1]"),
            sample("T[0,3]", "T[3]"),
        ),
        _rms_norm,
        HALVES,
        64,
        magnitude=4,
        why=ORDER,
    ),
    Case(
        "rotary",
        tuple(
            sample(*operands, **attrs)
            for attrs in ({}, {"interleaved": True})
            for operands in (
                ("T[2,3,S,8]", "T[S,4] unit", "T[S,4] unit"),
                ("T[2,3,S,8]", "T[S,8] unit", "T[S,8] unit"),
                ("T[S,3,5,6] special", "T[S,1,5,3] unit", "T[S,1,5,3] unit"),
                ("T[S,3,5,6]", "T[1,5,6] unit", "T[5,3] unit"),
                ("T[5,S,2]", "T[S,1] unit", "T[2] unit"),
                ("T[4]", "T[2] unit", "T[2] unit"),
                ("T[0,3,4]", "T[3,2] unit", "T[3,2] unit"),
            )
        ),
        _rotary,
        HALVES,
        ulps=1,
        magnitude=8,
        why="a kernel may round a product and the sum after it once",
    ),
    Case(
        "grouped_linear",
        (
            sample("T[S,5]", "si64[S,2] 0..3", "T[4,7,5]"),
            sample("T[S,2,5]", "si32[S,2] 0..3", "T[4,7,5]"),
            sample("T[S,2,16]", "si64[S,2,3] 0..7", "T[8,32,16]"),
            sample("T[40,2,16]", "ui8[40,2] 0..2", "T[3,17,16]"),
            sample("T[19,33]", "si64[19,8] 1..1", "T[3,16,33]"),
            sample("T[5]", "si64[3] 0..3", "T[4,1,5]"),
            sample("T[S,1]", "si64[S,2] 0..0", "T[1,3,1]"),
            sample("T[0,4]", "si64[0,2] 0..3", "T[4,3,4]"),
        ),
        _grouped_linear,
        HALVES,
        ulps=64,
        magnitude=4,
        why=ORDER,
    ),
    Case(
        "cross_entropy",
        (
            sample("T[S,7]", "si64[S] 0..6"),
            sample("T[2,S,17]", "si32[2,S] 0..16", reduction="none"),
            sample("T[S,5] special", "ui8[S] 0..4", reduction="sum"),
            sample("T[9,5] special", "ui8[9] 0..4", reduction="none"),
            sample("T[40,3]", "si64[40] 0..2", ignore_index=1),
            sample("T[40,3]", "si16[40] 0..2", ignore_index=0, reduction="none"),
            sample("T[S,3,3]", "si64[S,3] 0..2", ignore_index=2, reduction="sum"),
            sample("T[5,3]", "si64[5] -100..-100", ignore_index=-100, reduction="sum"),
            sample("T[S,3]", "si64[S] 7..7", ignore_index=7),
            sample("T[5,3]", "ui8[5] 0..2", ignore_index=-100),
            sample("T[3]", "si64[] 0..2"),
            sample("T[S,1]", "si64[S] 0..0"),
            sample("T[0,4]", "si64[0] 0..3"),
            sample("T[0,4]", "si64[0] 0..3", reduction="sum"),
        ),
        _cross_entropy,
        HALVES,
        ulps=64,
        magnitude=4,
        why=LIBM,
    ),
)
