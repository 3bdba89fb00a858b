"""Products of vectors, matrices and arrays: vecdot, tensordot, dot, inner, outer, cross, kron.

``matmul`` is an op, which ``@`` and ``ptir.matmul`` call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import same
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import is_strict, promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, dim_text, normal_axis, shape_text
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.manipulation import moveaxis

__all__ = [
    "cross",
    "dot",
    "inner",
    "kron",
    "matvec",
    "outer",
    "tensordot",
    "vdot",
    "vecdot",
    "vecmat",
]

Axes = int | tuple[int | Sequence[int], int | Sequence[int]]


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate; ``x`` itself where it is real."""
    return OPS["conj"](x) if x.dtype.is_complex else x


def modulus(x: Tensor) -> Tensor:
    """|x|, also of complex numbers."""
    if x.dtype.is_complex:
        return OPS["hypot"](OPS["real"](x), OPS["imag"](x))
    return OPS["abs"](x)


def _pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Two operands as tensors of the dtype that they share."""
    pair = as_tensor(x), as_tensor(y)
    return pair if is_strict() else cast("tuple[Tensor, Tensor]", promote(pair))


@public(other_names={"x1": "x", "x2": "y", "dim": "axis"})
def vecdot(x: Any, y: Any, axis: int = -1) -> Tensor:
    """Σ conj(x) · y along ``axis``; the other axes broadcast."""
    x, y = _pair(x, y)
    if not x.ndim or not y.ndim:
        raise ShapeError("vecdot takes vectors, found an operand of rank 0")
    x = moveaxis(x, normal_axis(axis, x.ndim), -1)
    y = moveaxis(y, normal_axis(axis, y.ndim), -1)
    if not same(x.shape[-1], y.shape[-1]):
        raise ShapeError(
            f"the vectors have {dim_text(x.shape[-1])} and {dim_text(y.shape[-1])} elements"
        )
    batch = broadcast_shapes(x.shape[:-1], y.shape[:-1])
    x, y = (OPS["broadcast_to"](t, shape=(*batch, t.shape[-1])) for t in (conjugate(x), y))
    axes = tuple(range(len(batch)))
    return OPS["dot_general"](
        x, y, batch_lhs=axes, batch_rhs=axes, contract_lhs=(-1,), contract_rhs=(-1,)
    )


@public(op="matmul", other_names={"x1": "x", "x2": "y"})
def matvec(x: Any, y: Any) -> Tensor:
    """Matrices x [..., M, N] times vectors y [..., N]: [..., M]; leading axes broadcast."""
    x, y = _pair(x, y)
    if x.ndim < 2 or not y.ndim:
        raise ShapeError(
            f"found shapes {shape_text(x.shape)} and {shape_text(y.shape)}, expected matrices"
            " [..., M, N] and vectors [..., N]"
        )
    return OPS["matmul"](x, y[..., None])[..., 0]


@public(op="matmul", other_names={"x1": "x", "x2": "y"})
def vecmat(x: Any, y: Any) -> Tensor:
    """Vectors conj x [..., M] times matrices y [..., M, N]: [..., N]; leading axes broadcast."""
    x, y = _pair(x, y)
    if not x.ndim or y.ndim < 2:
        raise ShapeError(
            f"found shapes {shape_text(x.shape)} and {shape_text(y.shape)}, expected vectors"
            " [..., M] and matrices [..., M, N]"
        )
    return OPS["matmul"](conjugate(x)[..., None, :], y)[..., 0, :]


@public(other_names={"x1": "x", "x2": "y", "a": "x", "b": "y", "dims": "axes"})
def tensordot(x: Any, y: Any, axes: Axes = 2) -> Tensor:
    """The sum of products over ``axes``: the last so many of ``x`` and the first of ``y``, or the
    pair (axes of x, axes of y). The result has the other axes of ``x``, then those of ``y``."""
    x, y = _pair(x, y)
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise ArgumentError(
                f"axes is {axes}, expected 0 to {min(x.ndim, y.ndim)}, the lesser rank"
            )
        left, right = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    else:
        left, right = ((a,) if isinstance(a, int) else tuple(a) for a in axes)
    return OPS["dot_general"](x, y, contract_lhs=left, contract_rhs=right)


@public(other_names={"a": "x", "b": "y", "other": "y"})
def dot(x: Any, y: Any) -> Tensor:
    """x · y as in NumPy: a product of numbers, of vectors or of matrices; of more axes the sum over
    the last of ``x`` and the last but one of ``y``, for all pairs of the others."""
    x, y = _pair(x, y)
    if not x.ndim or not y.ndim:
        return x * y
    return tensordot(x, y, ((-1,), (-1 if y.ndim == 1 else -2,)))


@public(other_names={"a": "x", "b": "y", "other": "y"})
def inner(x: Any, y: Any) -> Tensor:
    """The sum of products over the last axes of both, for all pairs of their other axes."""
    x, y = _pair(x, y)
    if not x.ndim or not y.ndim:
        return x * y
    return tensordot(x, y, ((-1,), (-1,)))


@public(other_names={"a": "x", "b": "y", "other": "y"})
def vdot(x: Any, y: Any) -> Tensor:
    """Σ conj(x) · y over all elements of both."""
    return vecdot(as_tensor(x).reshape(-1), as_tensor(y).reshape(-1))


@public(other_names={"x1": "x", "x2": "y", "a": "x", "b": "y", "vec2": "y"})
def outer(x: Any, y: Any) -> Tensor:
    """x[i] · y[j] of all elements of both, [size of x, size of y]."""
    x, y = _pair(x, y)
    return x.reshape((-1, 1)) * y.reshape((1, -1))


@public(other_names={"x1": "x", "x2": "y", "a": "x", "b": "y", "other": "y"})
def cross(
    x: Any,
    y: Any,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Tensor:
    """The cross product of vectors of 3 elements along ``axis``, or along ``axisa`` of ``x`` and
    ``axisb`` of ``y`` with the result along ``axisc``; the other axes broadcast."""
    x, y = _pair(x, y)
    left, right, out = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    for operand, along in ((x, left), (y, right)):
        if not operand.ndim or not same(operand.shape[normal_axis(along, operand.ndim)], 3):
            raise ShapeError(
                f"axis {along} of an operand of shape {shape_text(operand.shape)} has no extent of"
                " 3"
            )
    x, y = moveaxis(x, left, -1), moveaxis(y, right, -1)
    (x0, x1, x2), (y0, y1, y2) = ([v[..., i] for i in range(3)] for v in (x, y))
    parts = [x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0]
    result = FUNCTIONS["stack"](parts, axis=-1)
    return moveaxis(result, -1, out)


@public(other_names={"a": "x", "b": "y", "other": "y"})
def kron(x: Any, y: Any) -> Tensor:
    """The Kronecker product: a block x[i, j] · y for each element of ``x``."""
    x, y = _pair(x, y)
    rank = max(x.ndim, y.ndim)
    left, right = ((1,) * (rank - t.ndim) + tuple(t.shape) for t in (x, y))
    x = x.reshape(tuple(n for extent in left for n in (extent, 1)))
    y = y.reshape(tuple(n for extent in right for n in (1, extent)))
    return (x * y).reshape(tuple(n * m for n, m in zip(left, right, strict=True)))
