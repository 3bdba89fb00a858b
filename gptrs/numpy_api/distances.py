"""Distances between vectors and lengths of them, in torch's words: cdist, dist, norm, renorm."""

from __future__ import annotations

from typing import Any, Literal

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis, shape_text
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.linalg.norms import matrix_norm, vector_norm
from gptrs.numpy_api.statistics import as_float

__all__ = ["cdist", "dist", "norm", "renorm"]

Mode = Literal[
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"
]
_FEW = 25
"""Rows up to which torch takes differences rather than a product."""


@public(other_names={"x1": "a", "x2": "b"})
def cdist(
    a: Any, b: Any, p: float = 2.0, compute_mode: Mode = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """‖aᵢ − bⱼ‖ₚ of all rows of a [..., P, M] and of b [..., R, M]: [..., P, R]; batches broadcast.

    With p = 2 and more than 25 rows it is √(|aᵢ|² + |bⱼ|² − 2 aᵢ·bⱼ), as in torch: a product of
    matrices, of which small distances between large vectors lose digits. ``compute_mode`` says
    otherwise.
    """
    _check_order("cdist", p)
    if compute_mode not in Mode.__args__:
        raise ArgumentError(f"compute_mode is {compute_mode!r}, expected one of {Mode.__args__}")
    first, second = as_float(a), as_float(b)
    if first.ndim < 2 or second.ndim < 2 or first.shape[-1] != second.shape[-1]:
        raise ShapeError(
            f"cdist takes rows of one length, found {shape_text(first.shape)} and"
            f" {shape_text(second.shape)}"
        )
    like = first if first.dtype is second.dtype else first.reshape(-1)[:1] + second.reshape(-1)[:1]
    first, second = (widen(x.astype(like.dtype)) for x in (first, second))
    many = any(not isinstance(x.shape[-2], int) or x.shape[-2] > _FEW for x in (first, second))
    if p == 2 and _multiplies(compute_mode, many=many):
        return narrow(_euclidean(first, second), like)
    difference = first[..., :, None, :] - second[..., None, :, :]
    return narrow(vector_norm(difference, axis=-1, ord=p), like)


def _multiplies(mode: Mode, *, many: bool) -> bool:
    return mode == "use_mm_for_euclid_dist" or (many and not mode.startswith("donot"))


def _euclidean(a: Tensor, b: Tensor) -> Tensor:
    rows: Tensor = OPS["reduce_sum"](a * a, axes=-1, keepdims=True)
    columns: Tensor = OPS["reduce_sum"](b * b, axes=-1, keepdims=True)
    products = FUNCTIONS["matmul"](a, FUNCTIONS["matrix_transpose"](b))
    squares = rows + FUNCTIONS["matrix_transpose"](columns) - 2 * products
    return OPS["sqrt"](OPS["maximum"](squares, 0))


def _check_order(name: str, p: float) -> None:
    if p < 0:
        raise ArgumentError(f"{name}: p is {p}, expected at least 0")


@public(other_names={"other": "y"})
def dist(x: Any, y: Any, p: float = 2) -> Tensor:
    """‖x − y‖ₚ of all elements; shapes broadcast."""
    return vector_norm(as_float(x) - as_float(y), ord=p)


@public(other_names={"ord": "p", "axis": "dim", "keepdims": "keepdim"})
def norm(
    x: Any,
    p: float | Literal["fro", "nuc"] | None = "fro",
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    dtype: object = None,
) -> Tensor:
    """(Σ|x|ᵖ)^(1/p) over ``dim``, or of all elements in one row, as in torch; "fro" is p = 2, "nuc"
    the sum of the singular values of matrices. `ptir.linalg.norm` has NumPy's norms of matrices."""
    x = as_tensor(x) if dtype is None else tensor_of(x, dtype)
    if p == "nuc":
        axes = (-2, -1) if dim is None else dim
        if not isinstance(axes, tuple) or len(axes) != 2:
            raise ArgumentError(f"norm: dim is {dim}, expected the two axes of matrices")
        return matrix_norm(x, axis=(axes[0], axes[1]), keepdims=keepdim, ord="nuc")
    order = 2.0 if p is None or isinstance(p, str) else p
    return vector_norm(x, axis=dim, keepdims=keepdim, ord=order)


@public(other_names={"axis": "dim"})
def renorm(x: Any, p: float, dim: int, maxnorm: float) -> Tensor:
    """``x`` with the parts along ``dim`` whose p-norm is above ``maxnorm`` scaled down to it."""
    x = as_tensor(x)
    if p <= 0 or maxnorm < 0:
        raise ArgumentError(f"renorm: p is {p} and maxnorm {maxnorm}, expected p > 0, maxnorm ≥ 0")
    axis = normal_axis(dim, x.ndim)
    wide = widen(as_float(x))
    others = tuple(i for i in range(x.ndim) if i != axis)
    size = vector_norm(wide, axis=others, keepdims=True, ord=p)
    scale = OPS["select"](size > maxnorm, maxnorm / (size + 1e-7), 1.0)
    return narrow(wide * scale, x)
