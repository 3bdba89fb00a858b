"""Functions of ``jax.nn`` under its names: activations, standardize, logmeanexp,
dot_product_attention."""

from __future__ import annotations

import math
from typing import Any, cast

from gptrs.errors import ShapeError
from gptrs.ir.dims import product
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axes
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.activations import hardsigmoid, hardswish, hardtanh, logsigmoid, softsign
from gptrs.numpy_api.nn.attention import scaled_dot_product_attention
from gptrs.numpy_api.nn.operands import as_float, nn_function

__all__ = [
    "dot_product_attention",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "log1mexp",
    "log_sigmoid",
    "logmeanexp",
    "soft_sign",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
]

Axes = int | tuple[int, ...] | None


@nn_function
def identity(x: Any) -> Tensor:
    """x itself."""
    return as_tensor(x)


@nn_function
def swish(x: Any) -> Tensor:
    """x · sigmoid(x): `silu`."""
    return OPS["silu"](as_float(x))


@nn_function
def hard_sigmoid(x: Any) -> Tensor:
    """min(max(x + 3, 0), 6) / 6: `hardsigmoid`."""
    return hardsigmoid(x)


@nn_function
def hard_silu(x: Any) -> Tensor:
    """x · hard_sigmoid(x): `hardswish`."""
    return hardswish(x)


@nn_function
def hard_swish(x: Any) -> Tensor:
    """x · hard_sigmoid(x): `hardswish`."""
    return hardswish(x)


@nn_function
def hard_tanh(x: Any) -> Tensor:
    """min(max(x, −1), 1): `hardtanh`."""
    return hardtanh(x)


@nn_function
def log_sigmoid(x: Any) -> Tensor:
    """log(1 / (1 + exp(−x))): `logsigmoid`."""
    return logsigmoid(x)


@nn_function
def soft_sign(x: Any) -> Tensor:
    """x / (1 + |x|): `softsign`."""
    return softsign(x)


@nn_function
def squareplus(x: Any, b: Any = 4) -> Tensor:
    """(x + √(x² + b)) / 2."""
    x = as_float(x)
    return (x + OPS["sqrt"](x * x + b)) / 2


@nn_function
def sparse_plus(x: Any) -> Tensor:
    """0 up to −1, (x + 1)² / 4 up to 1, x from there on."""
    x = as_float(x)
    middle = (x + 1) * (x + 1) / 4
    return OPS["select"](x <= -1, 0, OPS["select"](x >= 1, x, middle))


@nn_function
def sparse_sigmoid(x: Any) -> Tensor:
    """(x + 1) / 2 within [0, 1]: the derivative of `sparse_plus`."""
    return OPS["clamp"]((as_float(x) + 1) / 2, 0, 1)


@nn_function
def log1mexp(x: Any) -> Tensor:
    """log(1 − exp(−x)) for x ≥ 0, with all digits near 0 as well as far from it."""
    x = as_float(x)
    near = OPS["log"](-OPS["expm1"](-x))
    return OPS["select"](x < math.log(2), near, OPS["log1p"](-OPS["exp"](-x)))


@nn_function
def logmeanexp(x: Any, axis: Axes = None, where: Any = None, keepdims: bool = False) -> Tensor:
    """log of the mean of exp(x) over ``axis``, without overflow; ``where`` says which elements
    count."""
    x = as_float(x)
    if where is None:
        axes = normal_axes(axis, x.ndim)
        count: Any = OPS["full"](
            shape=(), value=product(tuple(x.shape[i] for i in axes)), dtype=x.dtype
        )
    else:
        mask = OPS["broadcast_to"](as_tensor(where), shape=x.shape)
        count = OPS["reduce_sum"](mask.astype(x.dtype), axes=axis, keepdims=keepdims)
        x = OPS["select"](mask, x, -math.inf)
    return FUNCTIONS["logsumexp"](x, axis, keepdims) - OPS["log"](count)


@nn_function
def standardize(
    x: Any,
    axis: Axes = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 1e-5,
    where: Any = None,
) -> Tensor:
    """(x − mean) / √(variance + ε) along ``axis``; mean and variance are those of x, of the
    elements that ``where`` has, unless given."""
    x = as_float(x)
    if mean is None:
        mean = FUNCTIONS["mean"](x, axis, keepdims=True, where=where)
    if variance is None:
        apart = x - as_tensor(mean)
        variance = FUNCTIONS["mean"](apart * apart, axis, keepdims=True, where=where)
    return (x - as_tensor(mean)) * OPS["rsqrt"](as_tensor(variance) + epsilon)


@nn_function
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
) -> Tensor:
    """softmax(q·kᵀ·scale + bias)·v of q [B, T, N, H], k and v [B, S, K, H], or without B, in the
    shape of q: in JAX's order of axes. K heads of k and v serve N of q, a multiple.

    ``bias`` and ``mask`` (bools: which keys a query sees) broadcast to [B, N, T, S]. With
    ``is_causal`` query i sees the keys j ≤ i; ``local_window_size`` says how many to the left and
    to the right of i. The lengths [B] count the queries and keys of each example that are there. A
    query that sees no key gives 0.
    """
    q, k, v = (as_float(x) for x in (query, key, value))
    if not q.ndim == k.ndim == v.ndim or q.ndim not in (3, 4):
        raise ShapeError(
            f"q, k and v have ranks {q.ndim}, {k.ndim} and {v.ndim}, expected 4 for all, or 3"
        )
    if q.ndim == 3:
        q, k, v = (x.unsqueeze(0) for x in (q, k, v))
    queries, keys = q.shape[1], k.shape[1]
    i: Tensor = OPS["iota"](shape=(queries, 1), axis=0, dtype="si64")
    j: Tensor = OPS["iota"](shape=(1, keys), axis=1, dtype="si64")
    masks = [] if mask is None else [as_tensor(mask)]
    if local_window_size is not None:
        window = local_window_size
        left, right = (window, window) if isinstance(window, int) else window
        masks += [j >= i - left, j <= i + right]
    for lengths, places in ((query_seq_lengths, i), (key_value_seq_lengths, j)):
        if lengths is not None:
            masks.append(places < as_tensor(lengths).reshape(-1, 1, 1, 1))
    only_causal = is_causal and not masks and bias is None
    if is_causal and not only_causal:
        masks.append(j <= i)
    seen: Any = None
    for each in masks:
        seen = each if seen is None else OPS["logical_and"](seen, each)
    if bias is not None:
        added = as_float(bias)
        seen = added if seen is None else OPS["select"](seen, added, -math.inf)
    if seen is not None and seen.ndim < 4:
        seen = cast("Tensor", seen).reshape((*(1,) * (4 - seen.ndim), *seen.shape))
    turned = (OPS["transpose"](x, perm=(0, 2, 1, 3)) for x in (q, k, v))
    found = scaled_dot_product_attention(
        *turned, attn_mask=seen, is_causal=only_causal, scale=scale, enable_gqa=True
    )
    found = OPS["transpose"](found, perm=(0, 2, 1, 3))
    return found.reshape(as_tensor(query).shape[:-1] + found.shape[-1:])
