"""Padding with constants, edges, reflections or the other side (`pad`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from gptrs.errors import ArgumentError
from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.manipulation import positions, rows_at

__all__ = ["pad"]


PadMode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]


def _pad_widths(width: Any, rank: int) -> list[tuple[int, int]]:
    try:
        pairs = np.broadcast_to(np.asarray(width), (rank, 2))
    except ValueError:
        raise ArgumentError(
            f"pad: pad_width is {width!r}, expected a number, a pair or {rank} pairs"
        ) from None
    return [(int(a), int(b)) for a, b in pairs.tolist()]


@public
def pad(
    x: Any,
    pad_width: Any = None,
    mode: PadMode = "constant",
    constant_values: Any = 0,
    **schema: Any,
) -> Tensor:
    """``x`` with ``pad_width`` (before, after) elements more at the ends of each axis, as in NumPy:
    a constant, or the elements inside by ``mode``. With ``low=`` and ``high=`` the op itself."""
    x = as_tensor(x)
    if pad_width is None:
        return OPS["pad"](x, **schema)
    if schema:
        raise ArgumentError(f"pad: found pad_width and {', '.join(schema)}")
    widths = _pad_widths(pad_width, x.ndim)
    if mode == "constant":
        low, high = tuple(a for a, _ in widths), tuple(b for _, b in widths)
        value = constant_values.item() if hasattr(constant_values, "item") else constant_values
        return OPS["pad"](x, low=low, high=high, value=value)
    if mode not in _PLACES_OUTSIDE:
        raise ArgumentError(
            f"pad: mode is {mode!r}, expected one of constant, {', '.join(_PLACES_OUTSIDE)}"
        )
    for axis, (before, after) in enumerate(widths):
        if before or after:
            extent = x.shape[axis]
            place = positions(extent + before + after) - before
            x = rows_at(x, _PLACES_OUTSIDE[mode](place, extent), axis)
    return x


def _mirrored(place: Tensor, extent: DimLike) -> Tensor:
    """Positions reflected at the first and last element."""
    period = OPS["maximum"](_number(2 * (extent - 1)), 1)
    place = OPS["remainder"](place, period)
    return OPS["minimum"](place, 2 * (extent - 1) - place)


def _mirrored_with_ends(place: Tensor, extent: DimLike) -> Tensor:
    """Positions reflected beyond the first and last element."""
    place = OPS["remainder"](place, 2 * extent)
    return OPS["minimum"](place, (2 * extent - 1) - place)


def _number(n: DimLike) -> Tensor:
    return OPS["full"](shape=(), value=n, dtype="si64")


def _nearest(place: Tensor, extent: DimLike) -> Tensor:
    """The first and last position again and again."""
    return OPS["clamp"](place, 0, extent - 1)


def _around(place: Tensor, extent: DimLike) -> Tensor:
    """Positions from the other end on."""
    return OPS["remainder"](place, extent)


_PLACES_OUTSIDE: dict[str, Callable[[Tensor, DimLike], Tensor]] = {
    "edge": _nearest,
    "reflect": _mirrored,
    "symmetric": _mirrored_with_ends,
    "wrap": _around,
}
