"""Batch norm folding: batch_norm into the weights of the convolution or linear layer before it.

Applies where weights and statistics are parameters or constants; `hoist` then computes the folded
weights once. Rounds in other places than the definition, so precise programs keep batch_norm.
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.ops.composite import linear
from gptrs.ir.ops.elementwise import rsqrt
from gptrs.ir.ops.vision import batch_norm, conv2d, depthwise_conv2d
from gptrs.ir.rewrite import rewrite
from gptrs.ir.tensor import Tensor
from gptrs.ir.use_def import UseDef

_STATISTICS = {"mean": "W[n] parameter", "var": "W[n] parameter positive", "eps": 1e-3}
_AFFINE = {**_STATISTICS, "gamma": "W[n] parameter", "beta": "W[n] parameter"}
_BARE = {**_STATISTICS, "gamma": None, "beta": None}
_STEPS = {"strides": (2, 1), "padding": ((1, 0), (1, 1)), "dilation": (1, 2)}
_LARGER = "it computes on weights, of which there are fewer than activations"


@rewrite(
    lambda x, w, b, strides, padding, dilation, groups, mean, var, gamma, beta, eps: batch_norm(
        conv2d(x, w, b, strides=strides, padding=padding, dilation=dilation, groups=groups),
        mean,
        var,
        gamma,
        beta,
        eps=eps,
    ),
    samples=[
        {
            "x": "W[m,6,5,3]",
            "w": "W[2,3,3,n] parameter",
            "b": "W[n] parameter",
            **_AFFINE,
            **_STEPS,
            "groups": 1,
        },
        {
            "x": "W[1,5,6,k]",
            "w": "W[3,1,k,n] parameter",
            "b": None,
            **_BARE,
            **_STEPS,
            "groups": 1,
        },
    ],
    alone=True,
    rounds=True,
    ulps=32,
    magnitude=16,
    finite=True,
    larger=_LARGER,
)
def fold_into_conv2d(
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    mean: Tensor,
    var: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    eps: float,
    facts: UseDef,
) -> Tensor | None:
    """(conv(x, w) + b − mean) · s + beta = conv(x, w · s) + (b − mean) · s + beta with s = gamma /
    √(var + eps), rounded elsewhere, where all but x are parameters or constants. What is infinite
    may be NaN after scaling."""
    if not _may_fold(x, facts, w, b, mean, var, gamma, beta):
        return None
    scale, bias = _scale_and_bias(b, mean, var, gamma, beta, eps)
    return conv2d(
        x, w * scale, bias, strides=strides, padding=padding, dilation=dilation, groups=groups
    )


@rewrite(
    lambda x, w, b, strides, padding, dilation, mean, var, gamma, beta, eps: batch_norm(
        depthwise_conv2d(x, w, b, strides=strides, padding=padding, dilation=dilation),
        mean,
        var,
        gamma,
        beta,
        eps=eps,
    ),
    samples=[
        {
            "x": "W[m,6,5,n]",
            "w": "W[2,3,n,1] parameter",
            "b": "W[n] parameter",
            **_AFFINE,
            **_STEPS,
        },
        {
            "x": "W[1,5,6,3]",
            "w": "W[3,1,3,2] parameter",
            "b": None,
            **_STEPS,
            "eps": 1e-5,
            "mean": "W[6] parameter",
            "var": "W[6] parameter positive",
            "gamma": None,
            "beta": "W[6] parameter",
        },
    ],
    alone=True,
    rounds=True,
    ulps=32,
    magnitude=16,
    finite=True,
    larger=_LARGER,
)
def fold_into_depthwise_conv2d(
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    strides: Any,
    padding: Any,
    dilation: Any,
    mean: Tensor,
    var: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    eps: float,
    facts: UseDef,
) -> Tensor | None:
    """As `fold_into_conv2d`, rounded elsewhere too, with a scale for each kernel of each channel.
    What is infinite may be NaN after scaling."""
    if not _may_fold(x, facts, w, b, mean, var, gamma, beta):
        return None
    scale, bias = _scale_and_bias(b, mean, var, gamma, beta, eps)
    weight = w * scale.reshape(w.shape[2], w.shape[3])
    return depthwise_conv2d(x, weight, bias, strides=strides, padding=padding, dilation=dilation)


@rewrite(
    lambda x, w, b, transposed, mean, var, gamma, beta, eps: batch_norm(
        linear(x, w, b, transposed=transposed), mean, var, gamma, beta, eps=eps
    ),
    samples=[
        {
            "x": "W[m,k]",
            "w": "W[n,k] parameter",
            "b": "W[n] parameter",
            **_AFFINE,
            "transposed": False,
        },
        {"x": "W[m,k]", "w": "W[k,n] parameter", "b": None, **_BARE, "transposed": True},
    ],
    alone=True,
    rounds=True,
    ulps=32,
    magnitude=16,
    finite=True,
    larger=_LARGER,
)
def fold_into_linear(
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    transposed: bool,
    mean: Tensor,
    var: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    eps: float,
    facts: UseDef,
) -> Tensor | None:
    """As `fold_into_conv2d`, rounded elsewhere too, with a scale for each output. What is infinite
    may be NaN after scaling."""
    if not _may_fold(x, facts, w, b, mean, var, gamma, beta):
        return None
    scale, bias = _scale_and_bias(b, mean, var, gamma, beta, eps)
    weight = w * (scale if transposed else scale.unsqueeze(1))
    return linear(x, weight, bias, transposed=transposed)


def _may_fold(x: Tensor, facts: UseDef, *stored: Tensor | None) -> bool:
    """Whether the weights are parameters or constants, and wide enough to be rounded once more."""
    return x.dtype.is_float and x.dtype.compute is x.dtype and facts.is_stable(*stored)


def _scale_and_bias(
    b: Tensor | None,
    mean: Tensor,
    var: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor]:
    scale = rsqrt(var + eps)
    if gamma is not None:
        scale = scale * gamma
    shift = (-mean if b is None else b - mean) * scale
    return scale, shift if beta is None else shift + beta
