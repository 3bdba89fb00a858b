"""Tensor contraction: ``dot_general``, the sum of products over shared axes."""

from __future__ import annotations

import math

import numpy as np

from gptrs.errors import ShapeError
from gptrs.ir.checks import one_dtype, sum_dtype
from gptrs.ir.dims import same
from gptrs.ir.kinds import OpKind
from gptrs.ir.primitives import arithmetic
from gptrs.ir.program import Attrs
from gptrs.ir.row_rules import dot_general_rows
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, Type, dim_text, normal_axis

__all__ = ["dot_general"]

Axes = tuple[int, ...]


@arithmetic(OpKind.CONTRACTION, rows=dot_general_rows)
def dot_general(
    lhs: Tensor,
    rhs: Tensor,
    *,
    batch_lhs: Axes = (),
    batch_rhs: Axes = (),
    contract_lhs: Axes,
    contract_rhs: Axes,
    accum_dtype: DType | None = None,
    out_dtype: DType | None = None,
) -> Type:
    """Σ lhs·rhs over the contracted axes, for each position of the batch axes.

    The result has the batch axes, the remaining axes of ``lhs``, then those of ``rhs``. Narrow
    floats are accumulated in f32 (``accum_dtype``); the result has the operands' dtype unless
    ``out_dtype`` is given.
    """
    one_dtype(lhs, rhs)
    dtype = sum_dtype(lhs, accum_dtype, out_dtype)
    for what, left, right in (
        ("batch", batch_lhs, batch_rhs),
        ("contracted", contract_lhs, contract_rhs),
    ):
        if len(left) != len(right):
            raise ShapeError(f"{what} axes {left} and {right} differ in number")
        for i, j in zip(left, right, strict=True):
            if not same(lhs.shape[i], rhs.shape[j]):
                raise ShapeError(
                    f"{what} axes differ: axis {i} of lhs has extent {dim_text(lhs.shape[i])},"
                    f" axis {j} of rhs {dim_text(rhs.shape[j])}",
                    fix="transpose one of them, or check the order of the operands",
                )
    for used, name in ((batch_lhs + contract_lhs, "lhs"), (batch_rhs + contract_rhs, "rhs")):
        if len(set(used)) != len(used):
            raise ShapeError(f"axes {used} of {name} name an axis twice")
    batch = [lhs.shape[i] for i in batch_lhs]
    left_rest = [n for i, n in enumerate(lhs.shape) if i not in batch_lhs + contract_lhs]
    right_rest = [n for i, n in enumerate(rhs.shape) if i not in batch_rhs + contract_rhs]
    return Type((*batch, *left_rest, *right_rest), dtype)


dot_general.promoting("lhs", "rhs")


@dot_general.canonical
def _(
    lhs: Tensor,
    rhs: Tensor,
    *,
    batch_lhs: Axes,
    batch_rhs: Axes,
    contract_lhs: Axes,
    contract_rhs: Axes,
    **_: object,
) -> Attrs:
    return {
        "batch_lhs": tuple(normal_axis(i, lhs.ndim) for i in batch_lhs),
        "batch_rhs": tuple(normal_axis(i, rhs.ndim) for i in batch_rhs),
        "contract_lhs": tuple(normal_axis(i, lhs.ndim) for i in contract_lhs),
        "contract_rhs": tuple(normal_axis(i, rhs.ndim) for i in contract_rhs),
    }


@dot_general.numpy
def _(
    lhs: Array,
    rhs: Array,
    *,
    batch_lhs: Axes,
    batch_rhs: Axes,
    contract_lhs: Axes,
    contract_rhs: Axes,
    accum_dtype: DType | None,
    out_dtype: DType | None,
) -> Array:
    if accum_dtype is not None:
        lhs = lhs.astype(accum_dtype.compute.numpy, copy=False)
        rhs = rhs.astype(accum_dtype.compute.numpy, copy=False)
    left_rest = tuple(i for i in range(lhs.ndim) if i not in batch_lhs + contract_lhs)
    right_rest = tuple(i for i in range(rhs.ndim) if i not in batch_rhs + contract_rhs)
    batch = [lhs.shape[i] for i in batch_lhs]
    depth = math.prod(lhs.shape[i] for i in contract_lhs)
    rows = [lhs.shape[i] for i in left_rest]
    columns = [rhs.shape[i] for i in right_rest]
    left = lhs.transpose(batch_lhs + left_rest + contract_lhs)
    right = rhs.transpose(batch_rhs + contract_rhs + right_rest)
    result = np.matmul(
        _stored(left.reshape(*batch, math.prod(rows), depth)),
        _stored(right.reshape(*batch, depth, math.prod(columns))),
    )
    return result.reshape((*batch, *rows, *columns))


def _stored(array: Array) -> Array:
    """A contiguous copy of an array with broadcast strides: NumPy sums such arrays in another
    order."""
    return np.ascontiguousarray(array) if 0 in array.strides else array
