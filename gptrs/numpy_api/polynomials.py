"""Polynomials as rows of coefficients, that of the highest power first: sums, products, quotients,
derivatives, integrals, roots, fits.

Results keep leading zeros, as in JAX, so that shapes do not depend on values; NumPy trims them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gptrs.errors import ArgumentError, ShapeError, TraceError
from gptrs.ir.dims import Dim
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import described
from gptrs.ir.types import shape_text
from gptrs.locks import late_import
from gptrs.numpy_api.creation import ones, zeros
from gptrs.numpy_api.data_types import result_type
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.joining import concat
from gptrs.numpy_api.manipulation import atleast_1d
from gptrs.numpy_api.matrices import diag
from gptrs.numpy_api.padding import pad
from gptrs.numpy_api.sampled import convolve, vander
from gptrs.numpy_api.statistics import as_float

__all__ = [
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "roots",
]


def _coefficients(name: str, p: Any) -> tuple[Tensor, int]:
    """A row of coefficients, and how many there are."""
    row = atleast_1d(as_tensor(p))
    if row.ndim != 1 or isinstance(row.shape[0], Dim):
        raise ShapeError(
            f"{name}: coefficients have shape {shape_text(row.shape)}, expected a row of known"
            " length"
        )
    return row, row.shape[0]


def _of_one_length(name: str, a1: Any, a2: Any) -> tuple[Tensor, Tensor]:
    (first, n), (second, m) = _coefficients(name, a1), _coefficients(name, a2)
    length = max(n, m)
    return pad(first, (length - n, 0)), pad(second, (length - m, 0))


@public
def polyadd(a1: Any, a2: Any) -> Tensor:
    """The sum of two polynomials: as many coefficients as the longer one has."""
    first, second = _of_one_length("polyadd", a1, a2)
    return first + second


@public
def polysub(a1: Any, a2: Any) -> Tensor:
    """The difference of two polynomials: as many coefficients as the longer one has."""
    first, second = _of_one_length("polysub", a1, a2)
    return first - second


@public
def polymul(a1: Any, a2: Any) -> Tensor:
    """The product of two polynomials of n and m coefficients, n + m − 1."""
    return convolve(_coefficients("polymul", a1)[0], _coefficients("polymul", a2)[0])


@public
def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """Quotient and remainder of polynomials of n and m coefficients: n − m + 1 and m − 1, at least
    one each. The first coefficient of ``v`` must not be 0."""
    (rest, n), (divisor, m) = _coefficients("polydiv", as_float(u)), _coefficients("polydiv", v)
    dtype = result_type(rest, as_float(divisor))
    rest, divisor = rest.astype(dtype), divisor.astype(dtype)
    if n < m:
        return zeros(1, dtype=dtype), rest
    quotient: list[Tensor] = []
    for _ in range(n - m + 1):
        factor = rest[:1] / divisor[:1]
        quotient.append(factor)
        rest = concat([rest[1:m] - factor * divisor[1:], rest[m:]])
    return concat(quotient), rest if m > 1 else zeros(1, dtype=dtype)


@public
def polyder(p: Any, m: int = 1) -> Tensor:
    """The ``m``-th derivative: ``m`` coefficients fewer."""
    row, count = _coefficients("polyder", p)
    if m < 0:
        raise ArgumentError(f"polyder: m is {m}, expected an integer of at least 0")
    for left in range(count, max(count - m, 0), -1):
        powers = np.arange(left - 1, 0, -1)
        row = row[:-1] * tensor_of(powers, row.dtype)
    return row


@public
def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """The ``m``-th integral: ``m`` coefficients more. ``k`` are the constants, of the first
    integral first: 0, one for all, or ``m``."""
    row, count = _coefficients("polyint", as_float(p))
    if m < 0:
        raise ArgumentError(f"polyint: m is {m}, expected an integer of at least 0")
    constants = atleast_1d(as_tensor(0 if k is None else k)).astype(row.dtype)
    if constants.shape not in ((1,), (m,)):
        raise ShapeError(f"polyint: k has shape {shape_text(constants.shape)}, expected [{m}]")
    for i in range(m):
        powers = as_tensor(np.arange(count + i, 0, -1)).astype(row.dtype)
        last = constants[i % constants.shape[0]].reshape(1)
        row = concat([row / powers, last])
    return row


@public
def poly(seq_of_zeros: Any) -> Tensor:
    """The polynomial, with the highest coefficient 1, that has the roots of a row, or the
    eigenvalues of a square matrix."""
    given = as_float(seq_of_zeros)
    found = given
    if given.ndim == 2:
        found = late_import("gptrs.numpy_api.linalg").eigvals(given)
    zeros_of, count = _coefficients("poly", found)
    made = ones(1, dtype=zeros_of.dtype)
    for i in range(count):
        made = concat([made, zeros((1,), dtype=made.dtype)]) - pad(made * zeros_of[i], (1, 0))
    is_real = given.ndim == 2 and not given.dtype.is_complex
    return OPS["real"](made) if is_real and made.dtype.is_complex else made


@public
def roots(p: Any, *, strip_zeros: bool = True) -> Tensor:
    """The complex roots of a polynomial: the eigenvalues of its companion matrix.

    Leading zeros lower the degree, and trailing ones are roots 0; how many there are depends on
    values, so a traced function needs ``strip_zeros=False``, and a first coefficient other than 0.
    """
    row, count = _coefficients("roots", as_float(p))
    trailing = 0
    if strip_zeros:
        if row.is_traced:
            raise TraceError(
                f"the number of roots depends on values ({described(row)})",
                fix="roots(p, strip_zeros=False) takes the first coefficient for one other than 0",
            )
        present = np.flatnonzero(row.numpy())
        first, last = (present[0], present[-1]) if present.size else (count - 1, count - 1)
        row, trailing, count = row[first : last + 1], count - 1 - int(last), int(last - first) + 1
        trailing = trailing if present.size else 0
    dtype = result_type(row, "cf32")
    if count < 2:
        return zeros((trailing,), dtype=dtype)
    companion = diag(ones((count - 2,), dtype=row.dtype), -1)
    companion = concat([(-row[1:] / row[0]).reshape(1, -1), companion[1:]])
    found = late_import("gptrs.numpy_api.linalg").eigvals(companion).astype(dtype)
    return concat([found, zeros((trailing,), dtype=dtype)]) if trailing else found


class PolyfitResult(NamedTuple):
    """The results of `polyfit` with ``full``."""

    coefficients: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
    rcond: float


@public
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of degree ``deg`` that makes Σ wᵢ² |p(xᵢ) − yᵢ|² least, for x [N] and y [N]
    or [N, K].

    With ``full`` also the residuals, the rank, the singular values and ``rcond`` of `lstsq`; with
    ``cov`` also the covariances of the coefficients, scaled by χ² per degree of freedom unless it
    is "unscaled".
    """
    at, values = as_float(x), as_float(y)
    dtype = result_type(at, values)
    at, values = at.astype(dtype), values.astype(dtype)
    if deg < 0:
        raise ArgumentError(f"polyfit: deg is {deg}, expected an integer of at least 0")
    count = at.shape[0] if at.ndim == 1 else None
    if not isinstance(count, int) or values.ndim not in (1, 2) or values.shape[0] != count:
        raise ShapeError(
            f"polyfit: x and y have shapes {shape_text(at.shape)} and {shape_text(values.shape)},"
            " expected [N] and [N] or [N, K]"
        )
    powers = vander(at, deg + 1)
    if w is not None:
        weights = as_float(w).astype(dtype)
        powers = powers * weights[:, None]
        values = values * (weights if values.ndim == 1 else weights[:, None])
    scale = OPS["sqrt"](OPS["reduce_sum"](OPS["abs"](powers * powers), axes=0))
    epsilon = float(np.finfo(dtype.numpy).eps)
    cutoff = count * epsilon if rcond is None else rcond
    linalg = late_import("gptrs.numpy_api.linalg")
    scaled = powers / scale
    found, residuals, rank, singular = linalg.lstsq(scaled, values, cutoff)
    found = found / (scale if found.ndim == 1 else scale[:, None])
    if full:
        return PolyfitResult(found, residuals, rank, singular, cutoff)
    if not cov:
        return found
    base = linalg.inv(OPS["transpose"](scaled, perm=(1, 0)) @ scaled)
    base = base / (scale[:, None] * scale)
    if cov == "unscaled":
        return found, base
    if count <= deg + 1:
        raise ArgumentError(
            f"polyfit: {count} points leave no degree of freedom for a covariance",
            fix="cov='unscaled', or more than deg + 1 points",
        )
    factor = residuals / (count - deg - 1)
    return found, base[:, :, None] * factor if values.ndim == 2 else base * factor.reshape(())
