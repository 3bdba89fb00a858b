"""Image layouts: [N, C, H, W] inputs converted to [N, H, W, C], the layout that models compute in.

The layout is inferred from the number of channels; an ambiguous shape is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from gptrs import ptir
from gptrs.errors import ShapeError
from gptrs.ir.dims import DimLike
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text


def channels_last(images: Tensor, channels: int) -> Tensor:
    """``images`` [N, H, W, C] as they are, [N, C, H, W] transposed to that.

    Raises `ShapeError` for another shape, and for one that could be either.
    """
    if images.ndim != 4:
        raise ShapeError(
            f"images have rank {images.ndim}, expected 4: [N, H, W, {channels}] or"
            f" [N, {channels}, H, W]",
            fix="images[None] adds the axis N to one image",
        )
    if is_channels_first(images.shape[1:], channels):
        return ptir.transpose(images, perm=(0, 2, 3, 1))
    return images


def is_channels_first(image: Sequence[DimLike], channels: int) -> bool:
    """Whether an image is [C, H, W] rather than [H, W, C]. Raises `ShapeError` unless it is one."""
    first, _, last = (extent == channels for extent in image)
    if first and last:
        raise ShapeError(
            f"images of shape {shape_text(tuple(image))} have {channels} channels first or last:"
            " which is meant cannot be told",
            fix=f"choose a height and a width other than {channels}",
        )
    if not first and not last:
        raise ShapeError(
            f"images have shape {shape_text(tuple(image))} each, expected [H, W, {channels}] or"
            f" [{channels}, H, W]"
        )
    return first
