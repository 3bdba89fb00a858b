"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis
from gptrs.numpy_api.function import public
from gptrs.numpy_api.linalg.equations import inv
from gptrs.numpy_api.linalg.factorisations import floating, matrices, svdvals
from gptrs.numpy_api.manipulation import expand_dims, moveaxis
from gptrs.numpy_api.products import modulus

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]

Axis = int | tuple[int, ...] | None


def _squares(x: Tensor) -> Tensor:
    """|x|² of each element."""
    if not x.dtype.is_complex:
        return x * x
    real, imag = OPS["real"](x), OPS["imag"](x)
    return real * real + imag * imag


@public(namespace="linalg", other_names={"p": "ord"})
def vector_norm(x: Any, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """(Σ|x|ᵒʳᵈ)^(1/ord) over ``axis``, or over all elements.

    ``inf`` and ``-inf`` are the greatest and the least modulus, 0 is how many elements are not 0.
    """
    x = floating(x)
    total: dict[str, Any] = {"axes": axis, "keepdims": keepdims}
    if ord == 2:
        return OPS["sqrt"](OPS["reduce_sum"](_squares(x), **total))
    size: Tensor = modulus(x)
    if ord == math.inf:
        return OPS["reduce_max"](size, **total)
    if ord == -math.inf:
        return OPS["reduce_min"](size, **total)
    if ord == 0:
        return OPS["reduce_sum"]((size != 0).astype(size.dtype), **total)
    if ord == 1:
        return OPS["reduce_sum"](size, **total)
    return OPS["reduce_sum"](size**ord, **total) ** (1 / ord)


_Norm = Callable[[Tensor], Tensor]
_OF_VALUES: dict[object, _Norm] = {
    2: lambda s: FUNCTIONS["max"](s, axis=-1),
    -2: lambda s: FUNCTIONS["min"](s, axis=-1),
    "nuc": lambda s: FUNCTIONS["sum"](s, axis=-1),
}
_OF_SUMS: dict[object, tuple[int, str]] = {
    1: (-2, "max"),
    -1: (-2, "min"),
    math.inf: (-1, "max"),
    -math.inf: (-1, "min"),
}
"""The axis that |x| is summed over, and which of the sums is the norm."""


@public(namespace="linalg", other_names={"p": "ord"})
def matrix_norm(
    x: Any, /, *, axis: tuple[int, int] = (-2, -1), keepdims: bool = False, ord: Any = "fro"
) -> Tensor:
    """A norm of each matrix of two axes: "fro" √Σ|x|², "nuc" the sum of singular values, 2 and −2
    the greatest and least of them, 1 and −1 the greatest and least sum of a column's moduli, inf
    and −inf those of a row."""
    x = matrices(x)
    first, second = (normal_axis(a, x.ndim) for a in axis)
    if first == second:
        raise ShapeError(f"axis {axis} names an axis twice")
    x = moveaxis(x, (first, second), (-2, -1))
    if ord == "fro":
        result = OPS["sqrt"](OPS["reduce_sum"](_squares(x), axes=(-2, -1)))
    elif ord in _OF_VALUES:
        result = _OF_VALUES[ord](svdvals(x))
    elif ord in _OF_SUMS:
        along, extreme = _OF_SUMS[ord]
        result = FUNCTIONS[extreme](OPS["reduce_sum"](modulus(x), axes=along), axis=-1)
    else:
        raise ArgumentError(
            f"ord is {ord!r}, expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf for matrices"
        )
    return expand_dims(result, tuple(sorted((first, second)))) if keepdims else result


@public(namespace="linalg", other_names={"p": "ord"})
def norm(x: Any, /, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """A norm as in NumPy: of vectors along one axis, of matrices over two.

    Without ``ord`` √Σ|x|², over all elements if there is no ``axis`` either. With ``ord`` and no
    ``axis`` the operand itself is the vector or the matrix.
    """
    x = floating(x)
    if axis is None and ord is None:
        result = vector_norm(x)
        return result.reshape((1,) * x.ndim) if keepdims else result
    if axis is None:
        if x.ndim not in (1, 2):
            raise ShapeError(
                f"x has rank {x.ndim}", fix="name one axis of vectors, or two of matrices: axis="
            )
        axis = tuple(range(x.ndim))
    axes = (axis,) if isinstance(axis, int) else axis
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ArgumentError(f"ord is {ord!r}, expected a number for vectors")
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ArgumentError(f"axis is {axis}, expected one axis or two")
    return matrix_norm(x, axis=axes, keepdims=keepdims, ord="fro" if ord is None else ord)


@public(namespace="linalg")
def cond(x: Any, /, p: Any = None) -> Tensor:
    """The condition number of each matrix: the greatest singular value over the least one (-2 the
    other way round), or |x|·|x⁻¹| in another norm ``p``."""
    x = matrices(x)
    if p in (None, 2, -2):
        s = svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)
