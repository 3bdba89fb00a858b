"""`conv_general_dilated`: JAX's convolution, of one to three axes in any order of the axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.locks import late_import
from gptrs.numpy_api.function import public
from gptrs.numpy_api.statistics import as_float

__all__ = ["conv_general_dilated"]

Numbers = tuple[str, str, str]


@public
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Numbers | None = None,
    feature_group_count: int = 1,
) -> Tensor:
    """The convolution of images ``lhs`` with a kernel ``rhs``.

    ``dimension_numbers`` name the axes of lhs, rhs and the result: ("NHWC", "HWIO", "NHWC"); by
    default channels come second, and the kernel is [O, I, window...]. ``padding`` is "VALID",
    "SAME", "SAME_LOWER" or (low, high) for each axis. ``lhs_dilation`` puts zeros between the
    elements of lhs, ``rhs_dilation`` between those of the kernel. With ``feature_group_count``
    each group of channels gives its part of the outputs.
    """
    x, w = promote((as_float(lhs), as_float(rhs)))
    rank = x.ndim - 2
    if not 1 <= rank <= 3 or w.ndim != x.ndim:
        raise ShapeError(f"lhs has rank {x.ndim} and rhs {w.ndim}, expected one of 3 to 5 for both")
    axes = "DHW"[3 - rank :]
    names = dimension_numbers or (f"NC{axes}", f"OI{axes}", f"NC{axes}")
    spatial = "".join(name for name in names[1] if name not in "OI")
    wanted = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    for given, order in zip(names, wanted, strict=True):
        if sorted(given) != sorted(order):
            raise ArgumentError(
                f"dimension_numbers are {names}, expected names of {x.ndim} axes: N, C and spatial"
                " ones, O, I and these, N, C and these"
            )
    x = OPS["transpose"](x, perm=tuple(names[0].index(name) for name in wanted[0]))
    w = OPS["transpose"](w, perm=tuple(names[1].index(name) for name in wanted[1]))
    ones = (1,) * rank
    strides, dilation = tuple(window_strides), tuple(rhs_dilation or ones)
    between = tuple(n - 1 for n in lhs_dilation or ones)
    if any(between):
        none = (0,) * x.ndim
        x = OPS["pad"](x, low=none, high=none, interior=(0, *between, 0))
    pairs = _padding(padding, x.shape[1:-1], w.shape[:-2], strides, dilation)
    y = _convolved(x, w, strides, pairs, dilation, feature_group_count)
    return OPS["transpose"](y, perm=tuple(wanted[2].index(name) for name in names[2]))


def _padding(
    padding: str | Sequence[tuple[int, int]],
    extents: Sequence[Any],
    window: Sequence[Any],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> tuple[tuple[int, int], ...]:
    """(low, high) of each axis. "SAME" gives ⌈extent / stride⌉ results, the odd zero at the end."""
    if not isinstance(padding, str):
        return tuple((low, high) for low, high in padding)
    if padding.upper() not in ("VALID", "SAME", "SAME_LOWER"):
        raise ArgumentError(
            f"padding is {padding!r}, expected 'VALID', 'SAME', 'SAME_LOWER' or pairs"
        )
    if padding.upper() == "VALID":
        return ((0, 0),) * len(window)
    if not all(isinstance(n, int) for n in extents):
        raise ShapeError("padding 'SAME' needs known extents", fix="give pairs of numbers")
    pairs: list[tuple[int, int]] = []
    for extent, taps, stride, spread in zip(extents, window, strides, dilation, strict=True):
        reach = (-(-extent // stride) - 1) * stride + (taps - 1) * spread + 1
        around = max(cast("int", reach - extent), 0)
        low = around // 2 if padding.upper() == "SAME" else around - around // 2
        pairs.append((low, around - low))
    return tuple(pairs)


def _convolved(
    x: Tensor,
    w: Tensor,
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Tensor:
    """x [N, spatial..., C] with w [window..., C/groups, O]."""
    if len(strides) == 3:
        low, high = ((0, *(pair[side] for pair in padding), 0) for side in (0, 1))
        padded = OPS["transpose"](OPS["pad"](x, low=low, high=high), perm=(0, 4, 1, 2, 3))
        weight = OPS["transpose"](w, perm=(4, 3, 0, 1, 2))
        conv3d = late_import("gptrs.numpy_api.nn").conv3d
        y = conv3d(padded, weight, stride=strides, dilation=dilation, groups=groups)
        return OPS["transpose"](y, perm=(0, 2, 3, 4, 1))
    is_row = len(strides) == 1
    if is_row:
        x, w = x.unsqueeze(1), w.unsqueeze(0)
        strides, padding, dilation = (1, *strides), ((0, 0), *padding), (1, *dilation)
    y = OPS["conv2d"](x, w, strides=strides, padding=padding, dilation=dilation, groups=groups)
    return y.squeeze(1) if is_row else y
