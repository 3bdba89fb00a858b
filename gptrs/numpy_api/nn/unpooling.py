"""max_unpool: the elements that max pooling chose, back at their positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gptrs.errors import ShapeError
from gptrs.ir.dims import same_shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.operands import fixed, per_axis
from gptrs.numpy_api.nn.pool_windows import Ints
from gptrs.numpy_api.nn.spatial import at_rank, batched

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]


def max_unpool_nd(
    rank: int,
    input: Any,
    indices: Any,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """x [N, C, spatial...] at the positions that `max_pool2d` gave with ``return_indices``, zeros
    elsewhere.

    The extents are (extent − 1)·stride − 2·padding + kernel_size, or ``output_size``, which differs
    from them by less than the stride. A position outside is an `ElementError`.
    """
    x, has_batch = batched(as_tensor(input), rank)
    places, _ = batched(as_tensor(indices), rank)
    if not same_shape(x.shape, places.shape):
        raise ShapeError(
            f"indices have shape {shape_text(places.shape)}, expected {shape_text(x.shape)}"
        )
    window = per_axis("kernel_size", kernel_size, rank)
    given = stride is None or (not isinstance(stride, int) and not tuple(stride))
    strides = window if given else per_axis("stride", stride, rank)  # type: ignore[arg-type]
    low = per_axis("padding", padding, rank)
    extents = fixed(x.shape[2:], "input")
    sizes = tuple(
        (n - 1) * s - 2 * p + k for n, s, p, k in zip(extents, strides, low, window, strict=True)
    )
    if output_size is not None:
        wanted = tuple(int(n) for n in output_size)[-rank:]
        if len(wanted) != rank or any(
            abs(n - m) >= s for n, m, s in zip(wanted, sizes, strides, strict=True)
        ):
            raise ShapeError(
                f"output_size is {tuple(output_size)}, expected within {strides} of {sizes}"
            )
        sizes = wanted
    outer = x.shape[:2]
    zeros = OPS["full"](shape=(*outer, math.prod(sizes)), value=0, dtype=x.dtype)
    flat = places.reshape([*outer, -1]), x.reshape([*outer, -1])
    placed: Tensor = OPS["scatter_reduce"](zeros, *flat, axis=-1, reduce="replace")
    y = placed.reshape([*outer, *sizes])
    return y if has_batch else y.squeeze(0)


max_unpool1d, max_unpool2d, max_unpool3d = (at_rank(max_unpool_nd, n) for n in (1, 2, 3))
