"""Discrete Fourier transforms along an axis: complex to complex, real to complex, complex to real.

f32, f64, cf32 and cf64 keep their precision. The meaning is that of `numpy.fft`; backends call the
same loops of pocketfft.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import DimLike, surely_greater
from gptrs.ir.hints import wrong_dtype
from gptrs.ir.kinds import OpKind
from gptrs.ir.primitives import Primitive, primitive
from gptrs.ir.program import Attrs
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, Type, cf32, cf64, dim_text, f32, f64, normal_axis

__all__ = ["fft_c2c", "fft_c2r", "fft_r2c"]

Norm: TypeAlias = Literal["backward", "ortho", "forward"]
"""Which transform is scaled: the inverse by 1/n, both by 1/√n, the forward one by 1/n."""

COMPLEX_OF = {f32: cf32, f64: cf64}
REAL_OF = {cf32: f32, cf64: f64}


def _transformed(x: Tensor, axis: int, extent: DimLike, dtype: DType) -> Type:
    shape = list(x.shape)
    shape[normal_axis(axis, x.ndim)] = extent
    return Type(tuple(shape), dtype)


def _check(n: DimLike, norm: str) -> None:
    if surely_greater(1, n):
        raise ShapeError(f"n is {dim_text(n)}, expected a transform of at least 1 point")
    if norm not in get_args(Norm):
        raise ArgumentError(f"norm is {norm!r}, expected 'backward', 'ortho' or 'forward'")


@primitive(kind=OpKind.ROWWISE)
def fft_c2c(
    x: Tensor, *, n: DimLike, axis: int, inverse: bool = False, norm: Norm = "backward"
) -> Type:
    """Σⱼ xⱼ·exp(∓2πi·jk/n) for k < n along ``axis``, with + if ``inverse``.

    ``x`` is cf32 or cf64, cut to n elements along the axis or continued by zeros. ``norm`` says
    which direction is scaled by 1/n ("backward": the inverse), or "ortho": both by 1/√n.
    """
    if x.dtype not in REAL_OF:
        raise wrong_dtype(f"found dtype {x.dtype}, expected cf32 or cf64", x, "cf32")
    _check(n, norm)
    return _transformed(x, axis, n, x.dtype)


@fft_c2c.numpy
def _(x: Array, *, n: int, axis: int, inverse: bool, norm: Norm) -> Array:
    return (np.fft.ifft if inverse else np.fft.fft)(x, n, axis, norm)


@primitive(kind=OpKind.ROWWISE)
def fft_r2c(x: Tensor, *, n: DimLike, axis: int, norm: Norm = "backward") -> Type:
    """The elements k ≤ ⌊n/2⌋ of the forward transform of real ``x``, f32 or f64: the others are
    their conjugates. ``n`` and ``norm`` as in `fft_c2c`."""
    if x.dtype not in COMPLEX_OF:
        raise wrong_dtype(f"found dtype {x.dtype}, expected f32 or f64", x, "f32")
    _check(n, norm)
    return _transformed(x, axis, n // 2 + 1, COMPLEX_OF[x.dtype])


@fft_r2c.numpy
def _(x: Array, *, n: int, axis: int, norm: Norm) -> Array:
    return np.fft.rfft(x, n, axis, norm)


@primitive(kind=OpKind.ROWWISE)
def fft_c2r(x: Tensor, *, n: DimLike, axis: int, norm: Norm = "backward") -> Type:
    """The n real numbers whose `fft_r2c` is ``x``, cf32 or cf64, cut to ⌊n/2⌋ + 1 elements or
    continued by zeros. The imaginary parts of the first element and, for even n, of the last one
    are not read."""
    if x.dtype not in REAL_OF:
        raise wrong_dtype(f"found dtype {x.dtype}, expected cf32 or cf64", x, "cf32")
    _check(n, norm)
    return _transformed(x, axis, n, REAL_OF[x.dtype])


@fft_c2r.numpy
def _(x: Array, *, n: int, axis: int, norm: Norm) -> Array:
    if not x.shape[axis]:  # NumPy would read what is not there
        x = np.zeros((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)
    return np.fft.irfft(x, n, axis, norm)


def real_of(dtype: DType) -> DType:
    """The dtype of the parts of a number."""
    return REAL_OF.get(dtype, dtype)


def _canonical(x: Tensor, *, axis: int, **_: object) -> Attrs:
    return {"axis": normal_axis(axis, x.ndim)}


_ALL: tuple[Primitive[..., Tensor], ...] = (fft_c2c, fft_r2c, fft_c2r)
for _op in _ALL:
    _op.canonical(_canonical)
