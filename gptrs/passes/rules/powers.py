"""Strength reduction of reciprocals, powers and roots."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import same_shape
from gptrs.ir.ops.elementwise import div, mul, pow_, reciprocal, rsqrt, sqrt
from gptrs.ir.rewrite import rewrite
from gptrs.ir.tensor import Tensor
from gptrs.passes.rules.numbers import has_infinity
from gptrs.passes.rules.shapes import filled


@rewrite(lambda x: div(1, x), samples=[{"x": "F[*]"}])
def reciprocal_for_quotient(x: Tensor) -> Tensor | None:
    """1 / x as the op reciprocal."""
    return reciprocal(x) if x.dtype.is_float else None


@rewrite(lambda x: reciprocal(sqrt(x)), samples=[{"x": "W[*]"}])
def fuse_rsqrt(x: Tensor) -> Tensor | None:
    """1 / √x as rsqrt, which computes just that; not in narrow dtypes, where √x is rounded in
    between."""
    return rsqrt(x) if x.dtype.is_float and x.dtype.compute is x.dtype else None


@rewrite(
    lambda x: reciprocal(rsqrt(x)),
    samples=[{"x": "F[*] positive"}, {"x": "F[*]"}],
    rounds=True,
    ulps=2,
    finite=True,
)
def sqrt_for_reciprocal(x: Tensor) -> Tensor | None:
    """1 / (1/√x) = √x, rounded once instead of three times. 1/√x may lose its last bits where x
    is close to infinite."""
    return sqrt(x) if has_infinity(x.dtype) else None


@rewrite(
    lambda x, y: mul(x, reciprocal(y)),
    samples=[{"x": "F[*]", "y": "F[*] nonzero"}, {"x": 2.5, "y": "F[*] nonzero"}],
    alone=True,
    rounds=True,
    ulps=2,
    finite=True,
)
def divide_for_reciprocal(x: Any, y: Tensor) -> Tensor | None:
    """x · (1/y) = x / y, rounded once instead of twice. 0 / 0 is NaN both ways, but 1/y may be
    infinite, or 0, where x / y is not."""
    return div(x, y) if y.dtype.is_float and _same_size(x, y) else None


def _same_size(x: Any, y: Tensor) -> bool:
    """Whether ``y`` is not broadcast: one reciprocal of a broadcast ``y`` serves a row of
    products."""
    return not isinstance(x, Tensor) or same_shape(x.shape, y.shape)


@rewrite(
    lambda x, y: div(x, reciprocal(y)),
    samples=[{"x": "F[*]", "y": "F[*] nonzero"}],
    rounds=True,
    ulps=2,
    finite=True,
)
def multiply_for_reciprocal(x: Any, y: Tensor) -> Tensor | None:
    """x / (1/y) = x · y, rounded once instead of twice. 1/y may be infinite, or 0."""
    return mul(x, y) if y.dtype.is_float and has_infinity(y.dtype) else None


@rewrite(
    lambda x, y: div(x, rsqrt(y)),
    samples=[{"x": "F[*]", "y": "F[*] positive"}],
    rounds=True,
    ulps=2,
    finite=True,
)
def multiply_by_sqrt(x: Any, y: Tensor) -> Tensor | None:
    """x / (1/√y) = x · √y, rounded twice instead of three times. 1/√y may be infinite."""
    return mul(x, sqrt(y)) if y.dtype.is_float and has_infinity(y.dtype) else None


@rewrite(
    lambda x, y: div(x, sqrt(y)),
    samples=[{"x": "F[m,n]", "y": "F[m,1] positive"}],
    alone=True,
    rounds=True,
    ulps=3,
    finite=True,
)
def divide_a_row_once(x: Tensor, y: Tensor) -> Tensor | None:
    """x / √y = x · (1/√y), rounded once more, where y is repeated: one division serves many
    products. 1/√y may be infinite."""
    return None if same_shape(x.shape, y.shape) or not y.dtype.is_float else mul(x, rsqrt(y))


@rewrite(lambda x: pow_(x, 1), samples=[{"x": "T[*]"}])
def drop_first_power(x: Tensor) -> Tensor | None:
    """x¹ = x."""
    return None if x.dtype.is_complex else x


@rewrite(lambda x: pow_(x, 0), samples=[{"x": "T[*]"}])
def zeroth_power(x: Tensor) -> Tensor | None:
    """x⁰ = 1, of NaN too."""
    return None if x.dtype.is_complex else filled(x, 1)


@rewrite(lambda x: pow_(x, 2), samples=[{"x": "I[*]"}])
def square_integer(x: Tensor) -> Tensor | None:
    """x² = x · x for integers, wrapped or not."""
    return mul(x, x) if x.dtype.is_integer else None


@rewrite(lambda x: pow_(x, 2), samples=[{"x": "F[*]"}], rounds=True, ulps=2)
def square(x: Tensor) -> Tensor | None:
    """x² = x · x: the product is rounded to nearest, which a power need not be."""
    return mul(x, x) if x.dtype.is_float else None


@rewrite(
    lambda x: pow_(x, 3),
    samples=[{"x": "W[*]"}],
    rounds=True,
    ulps=4,
    finite=True,
    larger="two products are faster than a power",
)
def cube(x: Tensor) -> Tensor | None:
    """x³ = x · x · x, rounded twice. x² may lose its last bits, or be infinite, before x³. Narrow
    floats have too few bits for that."""
    return mul(mul(x, x), x) if x.dtype.is_float and x.dtype.compute is x.dtype else None


@rewrite(lambda x: pow_(x, -1), samples=[{"x": "F[*]"}], rounds=True, ulps=2)
def reciprocal_for_power(x: Tensor) -> Tensor | None:
    """x⁻¹ = 1/x: the quotient is rounded to nearest, which a power need not be."""
    return reciprocal(x) if x.dtype.is_float else None
