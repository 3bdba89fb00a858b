"""Linear algebra and Fourier transforms. What has no result is a failed check."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import torch
from torch import Tensor

from gptrs.backends.torch.run import Run


def cholesky(run: Run, x: Tensor, upper: bool) -> Tensor:
    """The triangle whose product with its adjoint is x; not positive definite is an error."""
    found = torch.linalg.cholesky_ex(x.mH.contiguous() if upper else x)
    run.check(found.info != 0)
    return found.L.mH if upper else found.L


def solve(run: Run, a: Tensor, b: Tensor) -> Tensor:
    """X with a·X = b; a singular matrix is an error."""
    found = torch.linalg.solve_ex(a, b)
    run.check(found.info != 0)
    return found.result


def inv(run: Run, x: Tensor) -> Tensor:
    """The inverse; a singular matrix is an error."""
    found = torch.linalg.inv_ex(x)
    run.check(found.info != 0)
    return found.inverse


def slogdet(x: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of the determinant and the logarithm of its modulus; 1 beside NaN."""
    found = torch.linalg.slogdet(x)
    if x.is_complex():
        return found.sign, found.logabsdet
    return torch.where(found.logabsdet.isnan(), 1.0, found.sign), found.logabsdet


def fft_c2c(x: Tensor, n: int, axis: int, inverse: bool, norm: str) -> Tensor:
    """The transform of complex numbers."""
    x = _cut(x, n, axis)
    return (torch.fft.ifft if inverse else torch.fft.fft)(x, n, axis, norm) if x.numel() else x


def fft_r2c(x: Tensor, n: int, axis: int, norm: str) -> Tensor:
    """The first half of the transform of real numbers."""
    x = _cut(x, n, axis)
    if not x.numel():
        return x.narrow(axis, 0, n // 2 + 1).to(x.dtype.to_complex())
    return torch.fft.rfft(x, n, axis, norm)


def fft_c2r(x: Tensor, n: int, axis: int, norm: str) -> Tensor:
    """The real numbers whose transform's first half is x."""
    x = _cut(x, n // 2 + 1, axis)
    return torch.fft.irfft(x, n, axis, norm) if x.numel() else _cut(x.real, n, axis)


def _cut(x: Tensor, n: int, axis: int) -> Tensor:
    """x of n elements along an axis: cut, or continued by zeros, also from nothing."""
    extent = x.shape[axis]
    if extent >= n:
        return x.narrow(axis, 0, n)
    shape = list(x.shape)
    shape[axis] = n - extent
    return torch.cat((x, x.new_zeros(shape)), axis)
