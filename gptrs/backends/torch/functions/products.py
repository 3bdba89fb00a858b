"""Tensor contraction and the layers that are one: by `torch.matmul`, in the accumulator's dtype."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

Axes = tuple[int, ...]


def dot_general(
    lhs: Tensor,
    rhs: Tensor,
    batch_lhs: Axes,
    batch_rhs: Axes,
    contract_lhs: Axes,
    contract_rhs: Axes,
    dtype: torch.dtype,
    out: torch.dtype,
) -> Tensor:
    """Σ lhs·rhs over the contracted axes for each position of the batch axes, accumulated in
    ``dtype`` and rounded to ``out``."""
    left_rest = [i for i in range(lhs.ndim) if i not in batch_lhs + contract_lhs]
    right_rest = [i for i in range(rhs.ndim) if i not in batch_rhs + contract_rhs]
    batch = [lhs.shape[i] for i in batch_lhs]
    rows = [lhs.shape[i] for i in left_rest]
    columns = [rhs.shape[i] for i in right_rest]
    depth = prod(lhs.shape[i] for i in contract_lhs)
    left = lhs.permute((*batch_lhs, *left_rest, *contract_lhs)).reshape(*batch, prod(rows), depth)
    right = rhs.permute((*batch_rhs, *contract_rhs, *right_rest))
    right = right.reshape(*batch, depth, prod(columns))
    return _product(left.to(dtype), right.to(dtype)).to(out).reshape([*batch, *rows, *columns])


def _product(left: Tensor, right: Tensor) -> Tensor:
    """The product of matrices. Devices have none of integers, whose products are summed up."""
    whole = not (left.is_floating_point() or left.is_complex())
    if whole and left.device.type not in ("cpu", "meta"):
        return (left.unsqueeze(-1) * right.unsqueeze(-3)).sum(-2, dtype=left.dtype)
    return torch.matmul(left, right)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> Tensor:
    """x · weightᵀ + bias; ``transposed``: the weight is [in, out]."""
    return torch.nn.functional.linear(x, weight.mT if transposed else weight, bias)
