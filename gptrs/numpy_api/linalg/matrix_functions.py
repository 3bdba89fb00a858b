"""The exponential of matrices, logarithms of determinants, uses of a Cholesky factor."""

from __future__ import annotations

import math
from typing import Any

from gptrs.errors import ShapeError
from gptrs.ir.dims import same
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import public
from gptrs.numpy_api.linalg.equations import adjoint, solve_triangular
from gptrs.numpy_api.linalg.factorisations import floating, matrices
from gptrs.numpy_api.products import modulus

__all__ = ["cholesky_inverse", "cholesky_solve", "logdet", "matrix_exp"]

# Numerator of the Padé approximant of degree 13 of exp. Source: N. J. Higham, The Scaling and
# Squaring Method for the Matrix Exponential Revisited, 2005.
_PADE = tuple(math.comb(13, k) / math.perm(26, k) for k in range(14))
_NORM = 5.371920351148152
"""Up to this 1-norm the approximant is exp to double precision."""
_MOST_SQUARINGS = 1100.0


def _pade(x: Tensor) -> Tensor:
    """The approximant at matrices of a norm below `_NORM`."""
    b = _PADE
    eye = FUNCTIONS["eye"](x.shape[-1], dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = (
        x6 @ (x6 * b[13] + x4 * b[11] + x2 * b[9]) + x6 * b[7] + x4 * b[5] + x2 * b[3] + eye * b[1]
    )
    even = x6 @ (x6 * b[12] + x4 * b[10] + x2 * b[8]) + x6 * b[6] + x4 * b[4] + x2 * b[2] + eye
    odd = x @ odd
    return OPS["solve"](even - odd, even + odd)


@public(namespace="linalg", other_names={"A": "x", "a": "x", "input": "x"})
def matrix_exp(x: Any, /) -> Tensor:
    """Σ xᵏ / k! of each matrix of x [..., N, N]: eˣ by products, not element by element.

    Computed in f64 by scaling and squaring.
    """
    given = matrices(x)
    if not same(given.shape[-1], given.shape[-2]):
        raise ShapeError(f"found shape {shape_text(given.shape)}, expected square matrices")
    if given.shape[-1] == 0:
        return given
    x = given.astype("cf64" if given.dtype.is_complex else "f64")
    norm = FUNCTIONS["max"](FUNCTIONS["sum"](modulus(x), axis=-2), axis=-1)
    squarings = OPS["ceil"](OPS["log2"](OPS["maximum"](norm / _NORM, 1.0)))
    squarings = OPS["select"](OPS["is_finite"](squarings), squarings, 0.0)
    squarings = OPS["minimum"](squarings, _MOST_SQUARINGS)[..., None, None]
    half = OPS["exp2"](squarings * -0.5)  # 2⁻ˢ itself may be no normal number
    found = _pade(x * half.astype(x.dtype) * half.astype(x.dtype))

    def unfinished(state: tuple[Tensor, Tensor]) -> Tensor:
        return OPS["reduce_any"](OPS["less"](state[0], squarings))

    def squared(state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        done, found = state
        product = found @ found
        more = OPS["broadcast_to"](OPS["less"](done, squarings), shape=found.shape)
        return done + 1.0, OPS["select"](more, product, found)

    _, found = FUNCTIONS["while_loop"](unfinished, squared, (FUNCTIONS["zeros"]((), "f64"), found))
    return found.astype(given.dtype)


@public(namespace="linalg", other_names={"A": "x", "a": "x", "input": "x"})
def logdet(x: Any, /) -> Tensor:
    """The logarithm of the determinant of each matrix of x [..., N, N]: -inf where it is 0, NaN
    where it is negative or complex and no positive real number.
    """
    sign, size = OPS["slogdet"](matrices(x))
    if sign.dtype.is_complex:
        return OPS["log"](sign) + size
    return OPS["select"](sign < 0, math.nan, size)


@public(namespace="linalg", other_names={"B": "b", "input": "b", "L": "factor", "input2": "factor"})
def cholesky_solve(b: Any, factor: Any, /, upper: bool = False) -> Tensor:
    """X with L·Lᴴ·X = b for b [..., N, K] and a factor L [..., N, N] of `cholesky`; with ``upper``
    Uᴴ·U·X = b."""
    b, factor = promote((matrices(b), matrices(factor)))
    first = adjoint(factor) if upper else factor
    found = solve_triangular(first, b, upper=False)
    return solve_triangular(adjoint(first), found, upper=True)


@public(namespace="linalg", other_names={"input": "factor", "L": "factor"})
def cholesky_inverse(factor: Any, /, upper: bool = False) -> Tensor:
    """The inverse of L·Lᴴ, or of Uᴴ·U, for a factor [..., N, N] of `cholesky`."""
    factor = floating(factor)
    eye = FUNCTIONS["eye"](matrices(factor).shape[-1], dtype=factor.dtype)
    return cholesky_solve(eye, factor, upper)
