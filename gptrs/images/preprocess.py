"""Image preprocessing: resize, crop, rescale and normalise, as during the training of a model.

Follows the image processors of Hugging Face transformers: Pillow's resampling filters, rescaling in
f64 rounded once to f32, normalisation in f32.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gptrs import settings
from gptrs.errors import ArgumentError
from gptrs.extras import needed_for
from gptrs.images.decode import MODES, Pixels, decode
from gptrs.images.preprocessor_config import PreprocessorConfig

if TYPE_CHECKING:
    from gptrs.images.decode import ImageSource


class Preprocessor:
    """Preprocesses images for a model, as the image processors of Hugging Face transformers do."""

    def __init__(self, config: PreprocessorConfig, channels: int = 3) -> None:
        if channels not in MODES:
            raise ArgumentError(f"channels is {channels!r}, expected 1 (grey) or 3 (RGB)")
        self.config = config
        self.channels = channels

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of every result; None where they depend on the image."""
        return self.config.crops[-1] if self.config.crops else self.config.size

    def __call__(self, images: Iterable[ImageSource]) -> NDArray[np.float32]:
        """Preprocessed images: f32 [images, height, width, channels].

        Each is a path, a Pillow image, or an array [height, width, channels] of uint8 or of floats
        from 0 to 1. Raises `ArgumentError` and `LoadError` naming the image.
        """
        array = cast("object", images)  # several of one size may be one array
        one = array.ndim < 4 if isinstance(array, np.ndarray) else isinstance(images, str | bytes)
        if one or not isinstance(images, Iterable):
            raise ArgumentError(
                f"images is a {type(images).__name__}, expected several images",
                fix="put the image in a list",
            )
        ready = [self._prepare(image, f"images[{i}]") for i, image in enumerate(images)]
        if not ready:
            raise ArgumentError("images is empty, expected at least one image")
        for number, image in enumerate(ready):
            if image.shape != ready[0].shape:
                first, other = ("×".join(map(str, x.shape[:2])) for x in (ready[0], image))
                raise ArgumentError(
                    f"images[{number}] becomes {other} pixels and images[0] {first},"
                    " expected images of one size: this model's preprocessing does not crop them",
                    fix="pass them one by one",
                )
        return np.stack(ready)

    def _prepare(self, source: ImageSource, name: str) -> NDArray[np.float32]:
        config = self.config
        pixels = decode(source, self.channels, name)
        name = name if not isinstance(source, str | os.PathLike) else os.fspath(source)
        height, width = pixels.shape[:2]
        if config.shortest_edge is not None:
            short, long = config.shortest_edge, max(height, width)
            longer = int(short * long / min(height, width))
            size = (longer, short) if width <= height else (short, longer)
            pixels = _resized(pixels, size, config.resample, name)
        elif config.size is not None:
            pixels = _resized(pixels, config.size, config.resample, name)
        for size in config.crops:
            pixels = _cropped(pixels, size)
        return _scaled(pixels, config)


def _resized(pixels: Pixels, size: tuple[int, int], resample: int, name: str) -> Pixels:
    with needed_for(f"resizing {name}"):
        from PIL import Image  # slow to import

    height, width = size
    if height * width > (most := settings.max_pixels()):
        raise ArgumentError(
            f"{name} is {pixels.shape[1]} by {pixels.shape[0]} pixels, and resized"
            f" {width} by {height}, expected at most {most} pixels",
            fix="cut the part out that the model shall see",
        )
    how = Image.Resampling(resample)
    if pixels.dtype == np.uint8:
        whole = Image.fromarray(pixels if pixels.shape[2] > 1 else pixels[:, :, 0])
        return np.asarray(whole.resize((width, height), how)).reshape(height, width, -1)
    planes = [
        np.asarray(Image.fromarray(np.ascontiguousarray(plane)).resize((width, height), how))
        for plane in np.moveaxis(pixels, 2, 0)
    ]
    return np.stack(planes, axis=2).clip(0, 1)  # as for uint8: some filters overshoot


def _cropped(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Centre crop, or centred padding with zeros. Of an odd rest, one more row is cut off at the
    end, or added at the beginning."""
    made = np.zeros((*size, pixels.shape[2]), pixels.dtype)
    kept: list[slice] = []
    placed: list[slice] = []
    for have, want in zip(pixels.shape, size, strict=False):
        cut, added = max(have - want, 0) // 2, (max(want - have, 0) + 1) // 2
        count = min(have, want)
        kept.append(slice(cut, cut + count))
        placed.append(slice(added, added + count))
    made[tuple(placed)] = pixels[tuple(kept)]
    return made


def _scaled(pixels: Pixels, config: PreprocessorConfig) -> NDArray[np.float32]:
    """Rescale and normalise; each of the two rounds once."""
    values: NDArray[Any] = pixels
    factor = 1.0 if config.scale is None else config.scale
    if pixels.dtype != np.uint8:
        factor *= 255
    if factor != 1.0:
        values = values.astype(np.float64) * factor
    values = values.astype(np.float32)
    if config.mean is not None:
        mean, std = (np.array(each, np.float32) for each in (config.mean, config.std))
        values = (values - mean) / std
    return cast("NDArray[np.float32]", values)
