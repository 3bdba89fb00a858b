"""Complex numbers and their parts, of real operands too."""

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import NUMBERS, promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import f32, f64
from gptrs.numpy_api.function import as_tensor, public

__all__ = ["angle", "complex", "conj", "imag", "polar", "real"]

Operand = Any
"""A Tensor, an array or a Python number."""


@public
def complex(real: Operand, imag: Operand) -> Tensor:
    """real + i·imag: cf64 where a part is f64, else cf32. Shapes broadcast."""
    parts = [x if isinstance(x, NUMBERS) else as_tensor(x) for x in (real, imag)]
    wide = any(isinstance(x, Tensor) and x.dtype is f64 for x in parts)
    dtype = f64 if wide else f32
    if not any(isinstance(x, Tensor) for x in parts):
        parts[0] = as_tensor(parts[0])
    cast = [OPS["cast"](x, dtype=dtype) if isinstance(x, Tensor) else x for x in parts]
    return OPS["complex"](*cast)


@public(op="complex")
def polar(abs: Operand, angle: Operand) -> Tensor:
    """The complex numbers of these sizes and arguments in radians."""
    size, angle = (as_tensor(x) for x in promote((as_tensor(abs), as_tensor(angle)), ("float",)))
    parts = (OPS["mul"](size, OPS[name](angle)) for name in ("cos", "sin"))
    return OPS["complex"](*parts)


@public
def real(x: Operand) -> Tensor:
    """The real part, a float; a real ``x`` itself."""
    x = as_tensor(x)
    return OPS["real"](x) if x.dtype.is_complex else x


@public
def imag(x: Operand) -> Tensor:
    """The imaginary part, a float; zeros for a real ``x``."""
    x = as_tensor(x)
    return OPS["imag"](x) if x.dtype.is_complex else _zeros(x)


@public
def conj(x: Operand) -> Tensor:
    """The complex conjugate; a real ``x`` itself."""
    x = as_tensor(x)
    return OPS["conj"](x) if x.dtype.is_complex else x


@public(op="atan2")
def angle(x: Operand, deg: bool = False) -> Tensor:
    """The argument of a complex number, in [−π, π]; in degrees with ``deg``. Of a real ``x`` it is
    0, or π where the sign is −."""
    x = as_tensor(x)
    if x.dtype.is_complex:
        found = OPS["atan2"](OPS["imag"](x), OPS["real"](x))
    else:
        (x,) = promote((x,), ("float",))
        found = OPS["atan2"](_zeros(x), x)
    return OPS["mul"](found, 180.0 / math.pi) if deg else found


def _zeros(x: Tensor) -> Tensor:
    return OPS["full"](shape=x.shape, value=False if x.dtype.is_bool else 0, dtype=x.dtype)
