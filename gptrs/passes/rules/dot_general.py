"""Transposes and reshapes of the operands of dot_general, absorbed into its axes."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import Shape, dim, same_shape
from gptrs.ir.ops.shape import reshape, transpose
from gptrs.ir.rewrite import rewrite
from gptrs.ir.tensor import Tensor
from gptrs.passes.rules.dot_pattern import NONE, PLAIN, dot
from gptrs.passes.rules.shapes import Perm, in_shape

Axes = tuple[int, ...]
M, N, K = dim("m"), dim("n"), dim("k")


@rewrite(
    lambda x, p, y, batch, other, left, right, wide, out: dot(
        transpose(x, perm=p), y, batch, other, left, right, wide, out
    ),
    samples=[
        {"x": "T[k,m]", "p": (1, 0), "y": "T[k,n]", **PLAIN, "left": (1,), "right": (0,)},
        {
            "x": "T[m,2,k]",
            "p": (1, 2, 0),
            "y": "T[2,n,k]",
            **NONE,
            "batch": (0,),
            "other": (0,),
            "left": (1,),
            "right": (2,),
        },
    ],
)
def contract_transposed(
    x: Tensor,
    p: Perm,
    y: Tensor,
    batch: Axes,
    left: Axes,
    other: Any,
    right: Any,
    wide: Any,
    out: Any,
) -> Tensor | None:
    """A transpose of the left operand becomes other axis numbers, if the remaining axes keep their
    order."""
    if not _rest_in_order(p, (*batch, *left)):
        return None
    batch, left = tuple(p[i] for i in batch), tuple(p[i] for i in left)
    return dot(x, y, batch, other, left, right, wide, out)


@rewrite(
    lambda x, y, p, batch, other, left, right, wide, out: dot(
        x, transpose(y, perm=p), batch, other, left, right, wide, out
    ),
    samples=[
        {"x": "T[m,k]", "y": "T[n,k]", "p": (1, 0), **PLAIN, "left": (1,), "right": (0,)},
        {
            "x": "T[2,m,k]",
            "y": "T[n,k,2]",
            "p": (2, 0, 1),
            **NONE,
            "batch": (0,),
            "other": (0,),
            "left": (2,),
            "right": (2,),
        },
    ],
)
def contract_with_transposed(
    x: Tensor,
    y: Tensor,
    p: Perm,
    other: Axes,
    right: Axes,
    batch: Any,
    left: Any,
    wide: Any,
    out: Any,
) -> Tensor | None:
    """A transpose of the right operand becomes other axis numbers, if the remaining axes keep their
    order."""
    if not _rest_in_order(p, (*other, *right)):
        return None
    other, right = tuple(p[i] for i in other), tuple(p[i] for i in right)
    return dot(x, y, batch, other, left, right, wide, out)


def _rest_in_order(perm: Perm, used: Axes) -> bool:
    rest = [axis for i, axis in enumerate(perm) if i not in used]
    return rest == sorted(rest)


@rewrite(
    lambda x, s, y, left, right, wide, out, t: reshape(
        dot(reshape(x, shape=s), y, (), (), left, right, wide, out), shape=t
    ),
    samples=[
        {
            "x": "T[m,3,k]",
            "s": (M * 3, K),
            "y": "T[k,n]",
            "t": (M, 3, N),
            "left": (1,),
            "right": (0,),
            **NONE,
        },
        {
            "x": "T[k]",
            "s": (1, K),
            "y": "T[n,k]",
            "t": (N,),
            "left": (1,),
            "right": (1,),
            **NONE,
        },
    ],
    alone=True,
)
def contract_without_reshape(
    x: Tensor, s: Shape, y: Tensor, left: Axes, right: Axes, wide: Any, out: Any, t: Shape
) -> Tensor | None:
    """Flattening rows before a product and restoring them after it is dropped: the product takes
    any number of row axes."""
    count = len(left)
    last = tuple(range(x.ndim - count, x.ndim))
    if left != tuple(range(len(s) - count, len(s))) or x.ndim < count:
        return None
    if not same_shape(x.shape[x.ndim - count :], s[len(s) - count :]):
        return None
    return in_shape(dot(x, y, (), (), last, right, wide, out), t)
