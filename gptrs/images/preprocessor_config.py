"""``preprocessor_config.json``: the preprocessing steps of an image model, read and checked.

Supports the image processors of ViT, ConvNext and MobileNetV2 in transformers; other types are an
error. `imagenet` gives the defaults for models without the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from gptrs.errors import LoadError
from gptrs.lazy_dataclass import dataclass

BILINEAR, BICUBIC = 2, 3  # as Pillow numbers its filters
IMAGENET_MEAN = (0.485, 0.456, 0.406)  # of the training images of ImageNet, each of R, G, B in 0..1
IMAGENET_STD = (0.229, 0.224, 0.225)
_WARPED = 384  # ConvNext: from this size on an image is not cropped (Liu et al. 2022, appendix A)
_LARGEST = 2**12  # pixels a side: more is a slip, and would take up the memory
_MOST = 1e9  # of scales and statistics: f32 has their products with pixels
_FILTERS = range(6)
_AGAIN = "download the file again, or remove it to use what is usual for ImageNet"


@dataclass(frozen=True)
class PreprocessorConfig:
    """The preprocessing steps in their order. Sizes are (height, width) in pixels."""

    shortest_edge: int | None = None
    """Resize so that the shorter side has this length, and keep the proportions."""
    size: tuple[int, int] | None = None
    """Resize to this size."""
    resample: int = BILINEAR
    crops: tuple[tuple[int, int], ...] = ()
    """Cut these sizes out of the middle, one after the other; black where the image is smaller."""
    scale: float | None = None
    """Multiply the values 0 to 255 by this."""
    mean: tuple[float, ...] | None = None
    """Then subtract this, a number for each channel, and divide by ``std``."""
    std: tuple[float, ...] = ()


def imagenet(size: int) -> PreprocessorConfig:
    """The usual preprocessing for ImageNet: shorter side to 256/224 ``size``, then a centre crop.

    Source: the evaluation of torchvision's references/classification.
    """
    return PreprocessorConfig(
        shortest_edge=256 * size // 224,
        crops=((size, size),),
        scale=1 / 255,
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
    )


_COMMON: dict[str, Any] = {
    "do_resize": True,
    "resample": BILINEAR,
    "do_center_crop": False,
    "crop_size": None,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "do_pad": False,
}
# The fields of each type that its file may leave out.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "ConvNext": {"size": {"shortest_edge": 384}, "resample": BICUBIC, "crop_pct": 224 / 256},
    "MobileNetV2": {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": 224},
    "ViT": {"size": {"height": 224, "width": 224}},
}
_SUFFIXES = ("ImageProcessor", "ImageProcessorFast", "ImageProcessorPil", "FeatureExtractor")
_TYPES = {name + suffix: name for name in _DEFAULTS for suffix in _SUFFIXES}


def read_preprocessor_config(
    data: Mapping[str, Any], file: Path, channels: int
) -> PreprocessorConfig:
    """The config that a ``preprocessor_config.json`` holds, for images of ``channels`` channels.

    Raises `LoadError` naming file and field.
    """
    key = "image_processor_type" if "image_processor_type" in data else "feature_extractor_type"
    kind = data.get(key)
    if not isinstance(kind, str) or kind not in _TYPES:
        expected = ", ".join(f"{name}ImageProcessor" for name in _DEFAULTS)
        raise LoadError(
            f"{file}: image_processor_type is {kind!r}, expected one of {expected}",
            fix="prepare the images yourself, and pass the model an array of them",
        )
    name = _TYPES[kind]
    given = {field: value for field, value in data.items() if value is not None}
    fields = _Fields(file, _COMMON | _DEFAULTS[name] | given)
    if fields.flag("do_pad"):
        raise fields.wrong("do_pad", "false")
    crops = [fields.crop_size()] if fields.flag("do_center_crop") else []
    edge, size = None, None
    if fields.flag("do_resize"):
        edge, size = fields.size(square=name == "ViT", needs_edge=name == "ConvNext")
    if edge is not None and name == "ConvNext":
        if edge < _WARPED:
            crops.insert(0, (edge, edge))
            edge = fields.whole(edge)
        else:
            edge, size = None, (edge, edge)
    normalize = fields.flag("do_normalize")
    return PreprocessorConfig(
        edge,
        size,
        fields.resample(),
        tuple(crops),
        fields.number("rescale_factor") if fields.flag("do_rescale") else None,
        fields.channels("image_mean", channels) if normalize else None,
        fields.channels("image_std", channels, positive=True) if normalize else (),
    )


class _Fields:
    """The fields of a file, each checked when it is read."""

    def __init__(self, file: Path, data: Mapping[str, Any]) -> None:
        self.file = file
        self.data = data

    def wrong(self, field: str, expected: str) -> LoadError:
        return LoadError(
            f"{self.file}: {field} is {self.data[field]!r}, expected {expected}", fix=_AGAIN
        )

    def flag(self, field: str) -> bool:
        if type(self.data[field]) is not bool:
            raise self.wrong(field, "true or false")
        return self.data[field]

    def number(self, field: str, most: float = _MOST) -> float:
        value = _finite(self.data[field])
        if value is None or not 0 < value <= most:
            raise self.wrong(field, f"a number above 0, at most {most:g}")
        return value

    def whole(self, middle: int) -> int:
        """The edge of which ``middle`` is the part ``crop_pct``."""
        if (edge := middle / self.number("crop_pct", most=1.0)) > _LARGEST:
            raise self.wrong("crop_pct", f"more, so that images have at most {_LARGEST} a side")
        return int(edge)

    def resample(self) -> int:
        value = self.data["resample"]
        if type(value) is not int or value not in _FILTERS:
            raise self.wrong("resample", f"a filter of Pillow, from 0 to {_FILTERS[-1]}")
        return value

    def channels(self, field: str, count: int, positive: bool = False) -> tuple[float, ...]:
        """A number for each channel; one alone is that of all."""
        value = self.data[field]
        each = cast("list[object]", value if isinstance(value, list) else [value] * count)
        least = 1 / _MOST if positive else -_MOST
        numbers = [n for n in map(_finite, each) if n is not None and least <= n <= _MOST]
        if not len(numbers) == len(each) == count:
            bounds = f"from {least:g} to {_MOST:g}"
            raise self.wrong(field, f"{count} numbers {bounds}, one for each channel")
        return tuple(numbers)

    def size(self, square: bool, needs_edge: bool) -> tuple[int | None, tuple[int, int] | None]:
        """The shortest edge, or the height and width, whichever ``size`` holds."""
        value = self.data["size"]
        if _is_side(value):
            return (None, (value, value)) if square else (value, None)
        sides = _sides(value)
        if sides.keys() == {"shortest_edge"}:
            return sides["shortest_edge"], None
        if sides.keys() == {"height", "width"} and not needs_edge:
            return None, (sides["height"], sides["width"])
        shapes = ["a number of pixels", '{"shortest_edge": pixels}']
        shapes += [] if needs_edge else ['{"height": pixels, "width": pixels}']
        raise self.wrong("size", f"{' or '.join(shapes)}, from 1 to {_LARGEST}")

    def crop_size(self) -> tuple[int, int]:
        value = self.data["crop_size"]
        if _is_side(value):
            return value, value
        sides = _sides(value)
        if sides.keys() == {"height", "width"}:
            return sides["height"], sides["width"]
        expected = 'a number of pixels or {"height": pixels, "width": pixels}'
        raise self.wrong("crop_size", f"{expected}, from 1 to {_LARGEST}")


def _finite(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _is_side(value: object) -> bool:
    return type(value) is int and 1 <= value <= _LARGEST


def _sides(value: object) -> dict[str, int]:
    """The sides that an object names; none if one of them is none."""
    if not isinstance(value, dict):
        return {}
    named = cast("dict[str, Any]", value)
    sides = {name: side for name, side in named.items() if side is not None}
    return sides if all(map(_is_side, sides.values())) else {}
