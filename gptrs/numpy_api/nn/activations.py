"""Activation functions. Sources: torch's documentation, and the papers it names."""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.operands import as_float, nn_function, refuse_inplace

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946
"""Source: Klambauer et al., arXiv:1706.02515."""


def _select(condition: Tensor, x: Any, y: Any) -> Tensor:
    return OPS["select"](condition, x, y)


@nn_function
def relu(input: Any, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    refuse_inplace(inplace)
    return OPS["relu"](as_tensor(input))


@nn_function
def relu6(input: Any, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    refuse_inplace(inplace)
    return OPS["relu6"](as_tensor(input))


@nn_function
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above the threshold, ``value`` elsewhere; NaN stays."""
    refuse_inplace(inplace)
    x = as_tensor(input)
    return _select(x <= threshold, value, x)


@nn_function
def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """min(max(x, min_val), max_val)."""
    refuse_inplace(inplace)
    return OPS["clamp"](as_float(input), min_val, max_val)


@nn_function
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope · x elsewhere."""
    refuse_inplace(inplace)
    x = as_float(input)
    wide = widen(x)
    return narrow(_select(wide > 0, wide, wide * negative_slope), x)


@nn_function
def prelu(input: Any, weight: Any) -> Tensor:
    """x above 0, weight · x elsewhere, with one weight or one per channel (axis 1)."""
    x, slopes = as_float(input), as_float(weight)
    if slopes.ndim > 1 or (slopes.size != 1 and (x.ndim < 2 or slopes.shape[0] != x.shape[1])):
        raise ShapeError(
            f"weight has shape {slopes.shape}, expected one element or one per channel"
        )
    wide, slopes = widen(x), widen(slopes)
    many = slopes.ndim == 1 and x.ndim > 1
    slopes = slopes.reshape((1, -1, *(1,) * (x.ndim - 2)) if many else ())
    return narrow(_select(wide > 0, wide, wide * slopes), x)


def _elu(wide: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    """scale · x above 0, scale · alpha · (exp(input_scale · x) − 1) elsewhere."""
    below = OPS["expm1"](OPS["minimum"](wide * input_scale, 0.0)) * (alpha * scale)
    return _select(wide > 0, wide * scale, below)


@nn_function
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha · (eˣ − 1) elsewhere. Source: Clevert et al., arXiv:1511.07289."""
    refuse_inplace(inplace)
    x = as_float(input)
    return narrow(_elu(widen(x), alpha, 1.0, 1.0), x)


@nn_function
def selu(input: Any, inplace: bool = False) -> Tensor:
    """`elu` scaled so that mean 0 and variance 1 are kept."""
    refuse_inplace(inplace)
    x = as_float(input)
    return narrow(_elu(widen(x), _SELU_ALPHA, _SELU_SCALE, 1.0), x)


@nn_function
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(x, 0) + min(alpha · (e^(x/alpha) − 1), 0). Source: Barron, arXiv:1704.07483."""
    refuse_inplace(inplace)
    x = as_float(input)
    return narrow(_elu(widen(x), alpha, 1.0, 1.0 / alpha), x)


@nn_function
def sigmoid(input: Any) -> Tensor:
    """1 / (1 + e⁻ˣ)."""
    return OPS["sigmoid"](as_float(input))


@nn_function
def tanh(input: Any) -> Tensor:
    """tanh x."""
    return OPS["tanh"](as_float(input))


@nn_function
def silu(input: Any, inplace: bool = False) -> Tensor:
    """x · sigmoid(x)."""
    refuse_inplace(inplace)
    return OPS["silu"](as_float(input))


@nn_function
def gelu(input: Any, approximate: str = "none") -> Tensor:
    """x · Φ(x), or with ``approximate="tanh"`` its approximation by tanh."""
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"approximate is {approximate!r}, expected 'none' or 'tanh'")
    return OPS["gelu" if approximate == "none" else "gelu_tanh"](as_float(input))


@nn_function
def mish(input: Any, inplace: bool = False) -> Tensor:
    """x · tanh(softplus(x)). Source: Misra, arXiv:1908.08681.

    With n = eˣ (eˣ + 2), which subtracts nothing, tanh(log(1 + eˣ)) is n / (n + 2).
    """
    refuse_inplace(inplace)
    x = as_float(input)
    wide = widen(x)
    e = OPS["exp"](OPS["minimum"](wide, 20.0))  # from there on n / (n + 2) is 1, also in f64
    n = e * (e + 2.0)
    return narrow(wide * (n / (n + 2.0)), x)


@nn_function
def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    refuse_inplace(inplace)
    x = as_float(input)
    return narrow(OPS["clamp"](widen(x) + 3.0, 0.0, 6.0) / 6.0, x)


@nn_function
def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """x · min(max(x + 3, 0), 6) / 6. Source: Howard et al., arXiv:1905.02244."""
    refuse_inplace(inplace)
    x = as_float(input)
    wide = widen(x)
    return narrow(wide * OPS["clamp"](wide + 3.0, 0.0, 6.0) / 6.0, x)


@nn_function
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + e^(beta · x)) / beta; x itself where beta · x is above the threshold."""
    x = as_float(input)
    wide = widen(x)
    scaled = wide * beta
    soft = OPS["log1p"](OPS["exp"](OPS["minimum"](scaled, threshold))) / beta
    return narrow(_select(scaled > threshold, wide, soft), x)


@nn_function
def logsigmoid(input: Any) -> Tensor:
    """log sigmoid(x) = min(x, 0) − log(1 + e^−|x|)."""
    x = as_float(input)
    wide = widen(x)
    tail = OPS["log1p"](OPS["exp"](-OPS["abs"](wide)))
    return narrow(OPS["minimum"](wide, 0.0) - tail, x)


@nn_function
def softsign(input: Any) -> Tensor:
    """x / (1 + |x|)."""
    x = as_float(input)
    wide = widen(x)
    return narrow(wide / (OPS["abs"](wide) + 1.0), x)


@nn_function
def tanhshrink(input: Any) -> Tensor:
    """x − tanh x."""
    x = as_float(input)
    return x - OPS["tanh"](x)


@nn_function
def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by ``lambd``; 0 within it."""
    if lambd < 0:
        raise ArgumentError(f"lambd is {lambd}, expected at least 0")
    x = as_float(input)
    wide = widen(x)
    outside = OPS["logical_not"](OPS["abs"](wide) <= lambd)
    moved = wide - OPS["sign"](wide) * lambd
    return narrow(_select(outside, moved, wide * 0.0), x)


@nn_function
def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """x where |x| is above ``lambd``, else 0; NaN stays."""
    x = as_float(input)
    return _select(OPS["abs"](x) <= lambd, 0.0, x)


def _soft_axis(x: Tensor, dim: int | None) -> int:
    """torch's axis where none is given: 0 for ranks 0, 1 and 3, else 1."""
    if dim is None:
        return 0 if x.ndim in (0, 1, 3) else 1
    return dim


def _normalized(op: str, x: Tensor, dim: int | None, dtype: Any) -> Tensor:
    x = x if dtype is None else x.astype(dtype)
    if not x.ndim:
        normal_axis(_soft_axis(x, dim), 1)
        return OPS[op](x.reshape(1), axis=0).reshape(())
    return OPS[op](x, axis=_soft_axis(x, dim))


@nn_function
def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """eˣ / Σ eˣ along ``dim``, after a cast to ``dtype`` if it is given."""
    return _normalized("softmax", as_float(input), dim, dtype)


@nn_function
def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """`softmax` of −x."""
    return _normalized("softmax", -as_float(input), dim, dtype)


@nn_function
def log_softmax(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """log softmax(x), without underflow."""
    return _normalized("log_softmax", as_float(input), dim, dtype)


@nn_function
def glu(input: Any, dim: int = -1) -> Tensor:
    """a · sigmoid(b), with a and b the halves of x along ``dim``. Source: Dauphin et al.,
    arXiv:1612.08083."""
    x = as_float(input)
    axis = normal_axis(dim, x.ndim)
    extent = x.shape[axis]
    if not isinstance(extent, Dim) and extent % 2:
        raise ShapeError(f"axis {dim} has extent {extent}, expected an even number")
    keys, half = (slice(None),) * axis, extent // 2
    first, gate = x[(*keys, slice(None, half))], x[(*keys, slice(half, None))]
    return narrow(widen(first) * OPS["sigmoid"](widen(gate)), x)
