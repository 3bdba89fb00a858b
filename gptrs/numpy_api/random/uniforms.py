"""Uniform numbers, integers and truth values: uniform, randint, bernoulli, rademacher."""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError, DTypeError
from gptrs.ir.dims import Shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, f32, f64, si64, ui32, ui64
from gptrs.numpy_api.arithmetic import where
from gptrs.numpy_api.creation import Extents, shape_of
from gptrs.numpy_api.function import as_tensor, tensor_of
from gptrs.numpy_api.random.keys import bits
from gptrs.numpy_api.random.operands import (
    as_key,
    common_shape,
    float_dtype,
    integer_dtype,
    random_function,
    real,
)
from gptrs.numpy_api.random.rejection import first_accepted

__all__ = ["bernoulli", "rademacher", "randint", "uniform"]


@random_function
def uniform(
    key: Any, shape: Extents = (), dtype: object = f32, minval: Any = 0.0, maxval: Any = 1.0
) -> Tensor:
    """Numbers of [minval, maxval), in steps of 2⁻²⁴ of it, or 2⁻⁵³ in f64. Raises `ArgumentError`
    where numbers leave it empty; arrays that do give ``minval``."""
    key, kind = as_key(key), float_dtype(dtype)
    if isinstance(minval, int | float) and isinstance(maxval, int | float):
        ends: dict[str, Any] = {"low": float(minval), "high": float(maxval)}
        return OPS["rng_uniform"](key, shape=shape_of(shape), dtype=kind, **ends)
    low, high = tensor_of(minval, kind), tensor_of(maxval, kind)
    u = OPS["rng_uniform"](key, shape=common_shape(shape, minval=low, maxval=high), dtype=kind)
    below = OPS["maximum"](low, OPS["nextafter"](high, low))
    return OPS["minimum"](low + u * (high - low), below)


@random_function
def randint(key: Any, shape: Extents, minval: Any, maxval: Any, dtype: object = si64) -> Tensor:
    """Integers from ``minval`` to ``maxval`` − 1, each as probable as the others (to 2⁻³² of its
    probability where they are at most 2³²). Raises `ArgumentError` where numbers leave none; arrays
    that do give ``minval``."""
    key, kind = as_key(key), integer_dtype(dtype)
    if isinstance(minval, int) and isinstance(maxval, int):
        least, greatest = kind.limits
        if not least <= minval < maxval <= greatest + 1:
            raise ArgumentError(
                f"minval is {minval} and maxval {maxval}, expected minval < maxval of {kind}"
            )
        span = maxval - minval
        drawn = _below(key, shape_of(shape), span if span < 2**64 else None, wide=span > 2**32)
        return (drawn + minval % 2**64).astype(kind)
    low, high = _bound("minval", minval, kind), _bound("maxval", maxval, kind)
    whole = common_shape(shape, minval=low, maxval=high)
    start = low.astype(ui64)
    span = where(high > low, high.astype(ui64) - start, 1)
    return (start + _below(key, whole, span, wide=kind.bits == 64)).astype(kind)


def _bound(name: str, value: Any, dtype: DType) -> Tensor:
    found = as_tensor(value)
    if not found.dtype.is_integer:
        raise DTypeError(f"{name} has type {found.type}, expected integers")
    return found.astype(dtype)


def _below(key: Tensor, shape: Shape, span: Any, *, wide: bool) -> Tensor:
    """Numbers of ui64 below ``span`` (None: 2⁶⁴), which is at most 2³² unless ``wide``."""
    if span is None:
        return bits(key, shape, ui64)
    if not wide:  # ⌊word · span / 2⁶⁴⌋ by two products of 32 bits each
        word = bits(key, shape, ui64)
        return ((word >> 32) * span + ((word & 0xFFFFFFFF) * span >> 32)) >> 32
    if not isinstance(span, Tensor):
        span = OPS["full"](shape=(), value=span, dtype=ui64)
    mask = span - 1  # of as many bits as the greatest number has
    for shift in (1, 2, 4, 8, 16, 32):
        mask = mask | (mask >> shift)

    def propose(key: Tensor) -> tuple[Tensor, Tensor]:
        drawn = bits(key, shape, ui64) & mask
        return drawn, drawn < span

    return first_accepted(key, propose, shape, ui64)


@random_function
def bernoulli(key: Any, p: Any = 0.5, shape: Extents | None = None) -> Tensor:
    """Truth values, True with probability ``p`` (to 2⁻³²); of its shape unless one is given."""
    key, chance = as_key(key), real("p", p)
    words = bits(key, common_shape(shape, p=chance), ui32)
    return words.astype(f64) < chance * 2.0**32


@random_function
def rademacher(key: Any, shape: Extents = (), dtype: object = si64) -> Tensor:
    """−1 or 1, each with probability ½."""
    return where(bits(key, shape, ui32) < 2**31, -1, 1).astype(dtype)
