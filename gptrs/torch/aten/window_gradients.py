"""The gradients of convolutions, poolings and padding, in torch's layouts (N, C, ...)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gptrs.ir.dims import DimLike
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from gptrs.torch.aten.table import UnsupportedError, aten, enter_all, ptir
from gptrs.torch.aten.windows import CONVOLUTIONS, TRANSPOSED, Ints, each_axis

Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]


@aten("convolution_backward")
def convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Ints | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    output_mask: Sequence[bool],
) -> Gradients:
    """The gradients of the operand, of the weight and of the bias."""
    rank = weight.ndim - 2
    stride, padding, dilation = (each_axis(v, rank) for v in (stride, padding, dilation))
    is_single = x.ndim == rank + 1
    if is_single:
        x, grad = ptir.unsqueeze(x, 0), ptir.unsqueeze(grad, 0)
    of_x = of_weight = of_bias = None
    if output_mask[0]:
        of = _of_transposed if transposed else _of_operand
        of_x = of(grad, x, weight, stride, padding, dilation, groups)
        of_x = ptir.squeeze(of_x, 0) if is_single else of_x
    if output_mask[1]:
        # A transposed convolution is the gradient of one: operand and result change places.
        read, seen = (x, grad) if transposed else (grad, x)
        of_weight = _of_weight(read, seen, weight, stride, padding, dilation, groups)
    if output_mask[2]:
        of_bias = ptir.sum(grad, axis=(0, *range(2, 2 + rank)))
    return of_x, of_weight, of_bias


def _of_operand(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    """What each element of the operand gave to the results, by a transposed convolution."""
    rank = weight.ndim - 2
    reached = [
        (grad.shape[i + 2] - 1) * stride[i]
        - 2 * padding[i]
        + dilation[i] * (weight.shape[i + 2] - 1)
        + 1
        for i in range(rank)
    ]
    missing = tuple(n - m for n, m in zip(x.shape[2:], reached, strict=True))
    run = TRANSPOSED[rank]
    made: Tensor = run(grad, weight, None, stride, padding, missing, groups, dilation)
    return made


def _of_transposed(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    """The same of a transposed convolution, by a plain one. Where the output was padded by a
    stride or more, that has windows which no element of ``x`` was in."""
    run = CONVOLUTIONS[weight.ndim - 2]
    made: Tensor = run(grad, weight, None, stride, padding, dilation, groups)
    return made[(slice(None), slice(None), *(slice(0, n) for n in x.shape[2:]))]


def _of_weight(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    """The correlation of ``x`` and ``grad``: a convolution that sums over the batch, in which
    strides and dilations change places."""
    rank = weight.ndim - 2
    batch, channels = x.shape[:2]
    outputs = grad.shape[1]
    inner = channels // groups
    space = tuple(x.shape[2:])
    # [inner, groups · batch, ...] by [outputs, batch, ...], each group by its own.
    x = ptir.reshape(x, shape=(batch, groups, inner, *space))
    x = ptir.transpose(x, perm=(2, 1, 0, *range(3, 3 + rank)))
    x = ptir.reshape(x, shape=(inner, groups * batch, *space))
    grad = ptir.swapaxes(grad, 0, 1)
    made = CONVOLUTIONS[rank](x, grad, None, dilation, padding, stride, groups)
    made = made[(slice(None), slice(None), *(slice(0, n) for n in weight.shape[2:]))]
    made = ptir.swapaxes(made, 0, 1)
    return ptir.reshape(made, shape=(outputs, inner, *weight.shape[2:]))


def _of_greatest(grad: Tensor, x: Tensor, *windows: Any, rank: int) -> Tensor:
    """Each gradient goes to the element that was the greatest of its window; the indices, behind
    what says the windows, count these in the last ``rank`` axes of ``x``."""
    indices: Tensor = windows[-1]
    zeros = ptir.flatten(ptir.zeros(x.shape, dtype=grad.dtype), -rank, -1)
    at, given = ptir.flatten(indices, -rank, -1), ptir.flatten(grad, -rank, -1)
    return ptir.reshape(ptir.scatter_add(zeros, -1, at, given), shape=x.shape)


def _of_average(
    grad: Tensor,
    x: Tensor,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    *,
    rank: int,
) -> Tensor:
    """Each gradient goes in equal parts to the elements of its window."""
    kernel_size, padding = each_axis(kernel_size, rank), each_axis(padding, rank)
    stride = each_axis(stride, rank) if len(stride) else kernel_size
    shares: list[Array] = []
    for window, step, border, read, made in zip(
        *(kernel_size, stride, padding, _space(x, rank), _space(grad, rank)), strict=True
    ):
        first = np.arange(made) * step - border
        last = np.minimum(first + window, read + border)
        inside = _between(np.maximum(first, 0), np.minimum(last, read), read)
        if divisor_override is None:
            counted = last - first if count_include_pad else inside.sum(1)
            inside = inside / np.maximum(counted, 1)[:, None]
        shares.append(inside)
    return _spread(grad / divisor_override if divisor_override else grad, shares)


def _of_adaptive_average(grad: Tensor, x: Tensor, *, rank: int) -> Tensor:
    """The same of windows that make up a size."""
    shares: list[Array] = []
    for read, made in zip(_space(x, rank), _space(grad, rank), strict=True):
        place = np.arange(made)
        inside = _between(place * read // made, -(-(place + 1) * read // made), read)
        shares.append(inside / inside.sum(1, keepdims=True))
    return _spread(grad, shares)


def _space(x: Tensor, rank: int) -> tuple[int, ...]:
    found = x.shape[x.ndim - rank :]
    if not all(isinstance(extent, int) for extent in found):
        raise UnsupportedError("the gradient of an average over axes of symbolic sizes")
    return tuple(int(extent) for extent in found)


def _between(first: Array, last: Array, extent: int) -> Array:
    """1.0 at the elements of each window, [windows, extent]."""
    at = np.arange(extent)
    return ((at >= first[:, None]) & (at < last[:, None])).astype(np.float64)


def _spread(grad: Tensor, shares: Sequence[Array]) -> Tensor:
    """``grad`` to the elements of its windows: of the axis i from the end, window w gives the share
    ``shares[i][w, e]`` to element e.

    Elements read the windows that they are in, one after the other. A product with the matrix of
    shares would multiply infinite gradients by zeros.
    """
    for axis, share in zip(range(-len(shares), 0), shares, strict=True):
        extent = share.shape[1]
        # Of each element its windows first, in order.
        order = np.argsort(share == 0, axis=0, kind="stable")
        parts = np.take_along_axis(share, order, 0)
        wide = (extent, *(1,) * (-1 - axis))
        total: Tensor | None = None
        for window, part in zip(order, parts, strict=True):
            if not part.any():
                break
            given = ptir.take(grad, ptir.constant(window), axis=axis)
            weight = ptir.constant(part.astype(np.float32).reshape(wide))
            given = given * ptir.cast(weight, dtype=grad.dtype)
            if not part.all():
                given = ptir.where(ptir.constant((part != 0).reshape(wide)), given, 0.0)
            total = given if total is None else total + given
        shape = (*grad.shape[:axis], extent, *grad.shape[grad.ndim + axis + 1 :])
        grad = ptir.zeros(shape, dtype=grad.dtype) if total is None else total
    return grad


for _rank in (2, 3):
    enter_all(
        {
            f"max_pool{_rank}d_with_indices_backward adaptive_max_pool{_rank}d_backward": partial(
                _of_greatest, rank=_rank
            ),
            f"avg_pool{_rank}d_backward": partial(_of_average, rank=_rank),
            f"_adaptive_avg_pool{_rank}d_backward": partial(_of_adaptive_average, rank=_rank),
        }
    )


@aten(*(f"replication_pad{rank}d_backward" for rank in (1, 2, 3)))
def replication_pad_backward(grad: Tensor, x: Tensor, padding: Ints) -> Tensor:
    """The elements at the borders have the gradients of their copies, too."""
    if any(width < 0 for width in padding):
        raise UnsupportedError("the gradient of padding that cuts off")
    for number, (first, last) in enumerate(zip(padding[::2], padding[1::2], strict=True)):
        axis = x.ndim - 1 - number
        if not first and not last:
            continue
        extent = x.shape[axis]
        if extent == 1:
            grad = ptir.sum(grad, axis=axis, keepdims=True)
            continue
        ends = [
            ptir.sum(_cut(grad, axis, 0, first + 1), axis=axis, keepdims=True),
            _cut(grad, axis, first + 1, first + extent - 1),
            ptir.sum(_cut(grad, axis, first + extent - 1, None), axis=axis, keepdims=True),
        ]
        grad = ptir.concat(ends, axis=axis)
    return grad


def _cut(x: Tensor, axis: int, first: DimLike, last: DimLike | None) -> Tensor:
    return x[(*(slice(None),) * axis, slice(first, last))]
