"""Similarities and distances of vectors: cosine_similarity, pairwise_distance, pdist."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, normal_axis, shape_text
from gptrs.numpy_api.nn.norms import p_norm
from gptrs.numpy_api.nn.operands import as_float, fixed, nn_function
from gptrs.numpy_api.nn.reductions import float_pair

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]


@nn_function
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Σ a b / (max(‖a‖, eps) · max(‖b‖, eps)) along ``dim``; shapes broadcast."""
    x, a, b = float_pair(x1, x2)
    shape = broadcast_shapes(a.shape, b.shape)
    axis = normal_axis(dim, len(shape))
    a, b = (OPS["broadcast_to"](wide, shape=shape) for wide in (a, b))
    sizes = [OPS["maximum"](p_norm(wide, 2, axis, keepdims=True), eps) for wide in (a, b)]
    return narrow(OPS["reduce_sum"]((a / sizes[0]) * (b / sizes[1]), axes=axis), x)


@nn_function
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """‖a − b + eps‖ₚ along the last axis."""
    x, a, b = float_pair(x1, x2)
    return narrow(p_norm(a - b + eps, p, -1, keepdims=keepdim), x)


@nn_function
def pdist(input: Any, p: float = 2) -> Tensor:
    """‖xᵢ − xⱼ‖ₚ of the rows i < j of x [N, M], in row-major order: [N (N − 1) / 2]."""
    x = as_float(input)
    if x.ndim != 2:
        raise ShapeError(f"input has shape {shape_text(x.shape)}, expected [N, M]")
    if p < 0:
        raise ArgumentError(f"p is {p}, expected at least 0")
    (rows,) = fixed(x.shape[:1], "input")
    first, second = np.triu_indices(rows, 1)
    wide = widen(x)
    difference = OPS["take"](wide, Tensor(first)) - OPS["take"](wide, Tensor(second))
    return narrow(p_norm(difference, p, -1, keepdims=False), x)
