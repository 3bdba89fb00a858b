"""Random functions: dropout of elements and of channels, rrelu, gumbel_softmax.

There is no hidden state: what draws numbers takes a ``seed``, an integer, or a ``key`` of
``ptir.random``; the same one gives the same numbers again.
"""

from __future__ import annotations

import math
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, normal_axis
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.operands import as_float, nn_function, refuse_inplace

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
    "gumbel_softmax",
    "rrelu",
]

_SELU_FLOOR = -1.7580993408473766
"""−scale · alpha of SELU, its value at −∞. Source: Klambauer et al., arXiv:1706.02515, §3."""


def uniform(
    shape: Any, dtype: DType, key: Any, seed: Any, low: float = 0.0, high: float = 1.0
) -> Tensor:
    """Numbers of the uniform distribution over [low, high). Raises `ArgumentError` without a
    seed."""
    if (key is None) == (seed is None):
        raise ArgumentError(
            "random numbers need one seed" if key is None else "found a key and a seed",
            fix="give seed=, an integer; training=False draws no numbers",
        )
    given = as_tensor(seed if key is None else key)
    return OPS["rng_uniform"](given, shape=tuple(shape), dtype=dtype, low=low, high=high)


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"p is {p}, expected a probability, from 0 to 1")


def _kept(shape: Any, p: float, key: Any, seed: Any) -> Tensor:
    """Whether each element stays, with probability 1 − p."""
    return OPS["greater_equal"](uniform(shape, DEFAULT_FLOAT, key, seed), p)


def dropped(x: Tensor, p: float, shape: Any = None, *, key: Any = None, seed: Any = None) -> Tensor:
    """0 with probability p, else x / (1 − p); one draw for each element of ``shape``, which
    broadcasts to that of x."""
    _check_probability(p)
    if not p:
        return x
    if p == 1:
        return x * 0.0
    kept = _kept(x.shape if shape is None else shape, p, key, seed)
    return narrow(OPS["select"](kept, widen(x) * (1 / (1 - p)), 0.0), x)


@nn_function
def dropout(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    key: Any = None,
    seed: Any = None,
) -> Tensor:
    """0 with probability p, else x / (1 − p); x itself without ``training``. Source: Srivastava et
    al., JMLR 15 (2014)."""
    refuse_inplace(inplace)
    x = as_float(input)
    _check_probability(p)
    return dropped(x, p, key=key, seed=seed) if training else x


def _of_channels(
    rank: int, input: Any, p: float, training: bool, inplace: bool, key: Any, seed: Any
) -> Tensor:
    refuse_inplace(inplace)
    x = as_float(input)
    _check_probability(p)
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"input has rank {x.ndim}, expected {rank + 2}, or {rank + 1} of one")
    # torch takes rank 3 in dropout2d as [N, C, L]
    whole = x.ndim == rank + 2 or rank == 2
    shape = _per_channel(x.shape if whole else (1, *x.shape))
    return dropped(x, p, shape if whole else shape[1:], key=key, seed=seed) if training else x


def _per_channel(shape: tuple[DimLike, ...]) -> tuple[DimLike, ...]:
    return (*shape[:2], *(1,) * (len(shape) - 2))


@nn_function
def dropout1d(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    key: Any = None,
    seed: Any = None,
) -> Tensor:
    """`dropout` of whole channels of x [N, C, L] or [C, L]."""
    return _of_channels(1, input, p, training, inplace, key, seed)


@nn_function
def dropout2d(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    key: Any = None,
    seed: Any = None,
) -> Tensor:
    """`dropout` of whole channels of x [N, C, H, W]; rank 3 is [N, C, L], as in torch."""
    return _of_channels(2, input, p, training, inplace, key, seed)


@nn_function
def dropout3d(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    key: Any = None,
    seed: Any = None,
) -> Tensor:
    """`dropout` of whole channels of x [N, C, D, H, W] or [C, D, H, W]."""
    return _of_channels(3, input, p, training, inplace, key, seed)


def _alpha_dropped(x: Tensor, p: float, shape: Any, key: Any, seed: Any) -> Tensor:
    """SELU's floor with probability p, then scaled so that mean 0 and variance 1 are kept."""
    _check_probability(p)
    if not p:
        return x
    if p == 1:
        return x * 0.0
    a = 1 / math.sqrt((_SELU_FLOOR**2 * p + 1) * (1 - p))
    shift = -a * _SELU_FLOOR * p
    kept = _kept(shape, p, key, seed)
    return narrow(OPS["select"](kept, widen(x) * a + shift, a * _SELU_FLOOR + shift), x)


@nn_function
def alpha_dropout(
    input: Any,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    key: Any = None,
    seed: Any = None,
) -> Tensor:
    """`dropout` that keeps mean and variance behind `selu`. Source: arXiv:1706.02515."""
    refuse_inplace(inplace)
    x = as_float(input)
    _check_probability(p)
    return _alpha_dropped(x, p, x.shape, key, seed) if training else x


@nn_function
def feature_alpha_dropout(
    input: Any,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    key: Any = None,
    seed: Any = None,
) -> Tensor:
    """`alpha_dropout` of whole channels of x [N, C, ...]."""
    refuse_inplace(inplace)
    x = as_float(input)
    _check_probability(p)
    if not training:
        return x
    if x.ndim < 2:
        raise ShapeError(f"input has rank {x.ndim}, expected [N, C, ...]")
    return _alpha_dropped(x, p, _per_channel(x.shape), key, seed)


@nn_function
def rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    key: Any = None,
    seed: Any = None,
) -> Tensor:
    """x from 0 on, a · x below, with a drawn from [lower, upper) in ``training``, else their mean.
    Source: Xu et al., arXiv:1505.00853."""
    refuse_inplace(inplace)
    x = as_float(input)
    if lower > upper:
        raise ArgumentError(f"lower is {lower} and upper {upper}, expected lower <= upper")
    wide = widen(x)
    slope: Any = (lower + upper) / 2
    if training and lower < upper:
        slope = uniform(x.shape, wide.dtype, key, seed, lower, upper)
    return narrow(OPS["select"](wide >= 0, wide, wide * slope), x)


@nn_function
def gumbel_softmax(
    logits: Any,
    tau: float = 1,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    key: Any = None,
    seed: Any = None,
) -> Tensor:
    """softmax((x + g) / tau) with g of the Gumbel distribution; with ``hard`` its greatest element
    as 1 and the others 0. ``eps`` has no effect, as in torch. Source: Jang et al.,
    arXiv:1611.01144."""
    x = as_float(logits)
    axis = normal_axis(dim, x.ndim)
    wide = widen(x)
    # 1 − u lies in (0, 1], where u = 0 gives log 1: the least exponential variable is half a step
    u = uniform(x.shape, wide.dtype, key, seed)
    step = 2.0**-54 if wide.dtype.bits == 64 else 2.0**-25
    exponential = -OPS["log1p"](-OPS["maximum"](u, step))
    soft: Tensor = OPS["softmax"]((wide - OPS["log"](exponential)) / tau, axis=axis)
    if hard:
        best = OPS["argmax"](soft, axis=axis, keepdims=True)
        soft = (OPS["iota"](shape=x.shape, axis=axis, dtype="si64") == best).astype(wide.dtype)
    return narrow(soft, x)
