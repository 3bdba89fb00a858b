"""Image decoding: file, Pillow image or array → pixels [height, width, channels].

Files are untrusted: only `FORMATS` are opened, and images above GPTRS_MAX_PIXELS are refused before
they are decoded. Pillow is imported on first use.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gptrs import settings
from gptrs.errors import ArgumentError, LoadError
from gptrs.extras import needed_for
from gptrs.ir.types import as_dtype

if TYPE_CHECKING:  # importing it takes longer than the rest of this package
    from PIL import Image

    ImageSource: TypeAlias = str | os.PathLike[str] | Image.Image | NDArray[Any]

Pixels: TypeAlias = NDArray[Any]
"""[height, width, channels], of uint8 from 0 to 255 or of float32 from 0 to 1."""

MODES = {1: "L", 3: "RGB"}

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""The accepted file formats. Pillow opens many others, and runs Ghostscript for EPS."""

_FORMATS = f"expected an image: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"


def decode(source: ImageSource, channels: int, name: str) -> Pixels:
    """The pixels of an image, rotated by its EXIF orientation, grey for 1 channel and RGB for 3.

    Of an animation it is the first frame; transparent pixels keep their stored colours. ``name`` is
    the name of an image that is no file, in errors. Raises `LoadError` for a file and
    `ArgumentError` for an image or an array that cannot be used, or an image that has more than
    GPTRS_MAX_PIXELS.
    """
    if isinstance(source, np.ndarray):
        return _from_array(source, channels, name)
    with needed_for(f"decoding {name if not isinstance(source, str | os.PathLike) else source}"):
        from PIL import Image  # slow to import

    if isinstance(source, Image.Image):
        return _from_image(source, channels, name, ArgumentError)
    if not isinstance(source, str | os.PathLike):
        raise ArgumentError(
            f"{name} is a {type(source).__name__},"
            " expected a path, a Pillow image or an array [height, width, channels]"
        )
    return _from_file(Path(source), channels)


def _from_file(path: Path, channels: int) -> Pixels:
    from PIL import Image, UnidentifiedImageError

    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise LoadError(f"{path} is empty, {_FORMATS}")
            try:
                opened = Image.open(file, formats=FORMATS)
            except UnidentifiedImageError:
                raise LoadError(f"{path} is no image, {_FORMATS}", fix="save it as PNG") from None
            except Exception as error:  # as below
                raise _undecodable(error, str(path), LoadError) from None
            with opened:
                return _from_image(opened, channels, str(path), LoadError)
    except FileNotFoundError:
        raise LoadError(f"{path} does not exist", fix="give the path of an image") from None
    except (OSError, ValueError) as error:
        if isinstance(error, LoadError):
            raise
        if isinstance(error, IsADirectoryError):
            raise LoadError(
                f"{path} is a folder, {_FORMATS}", fix="give the images in it, each by its path"
            ) from None
        raise LoadError(f"{path} cannot be read: {error}") from None


def _from_image(
    image: Image.Image, channels: int, name: str, wrong: type[ArgumentError | LoadError]
) -> Pixels:
    from PIL import Image, ImageOps

    if 0 in image.size:
        raise wrong(f"{name} is {image.width} by {image.height} pixels, expected at least 1 by 1")
    _check_pixels(image, name, wrong)
    try:
        image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I;16"):  # Pillow would cut values off at 255
            wide = np.asarray(image).astype(np.uint32)
            image = Image.fromarray(((wide * 255 + 32767) // 65535).astype(np.uint8))
        elif image.mode in ("I", "F"):
            bits = "32 bits a pixel, of which it does not say what is white"
            raise wrong(f"{name} has {bits}", fix="save it with 8 or 16 bits")
        elif "transparency" in image.info:
            image = image.convert("RGBA")
        return np.asarray(image.convert(MODES[channels])).reshape(image.height, image.width, -1)
    except (ArgumentError, LoadError):
        raise
    except Exception as error:  # decoders raise whatever their format's code runs into
        raise _undecodable(error, name, wrong) from None


def _check_pixels(image: Image.Image, name: str, wrong: type[ArgumentError | LoadError]) -> None:
    """Raise ``wrong`` for too many pixels, before a file is decoded."""
    from PIL.TiffImagePlugin import TILELENGTH, TILEWIDTH, TiffImageFile

    most, sizes = settings.max_pixels(), [image.size]
    if isinstance(image, TiffImageFile):  # a tile is decoded whole, even if the image is smaller
        tags: Any = image.tag_v2
        sizes.append((int(tags.get(TILEWIDTH, 1)), int(tags.get(TILELENGTH, 1))))
    for width, height in sizes:
        if width * height > most:
            raise wrong(
                f"{name} has too many pixels: {width} by {height}, expected at most {most}",
                fix=f"make it smaller, or raise {settings.max_pixels.name} if you trust it",
            )


def _undecodable(
    error: Exception, name: str, wrong: type[ArgumentError | LoadError]
) -> ArgumentError | LoadError:
    from PIL import Image

    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return wrong(
            f"{name} has too many pixels: {error}",
            fix="make it smaller, or, if you trust it, raise PIL.Image.MAX_IMAGE_PIXELS"
            f" and {settings.max_pixels.name}",
        )
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return wrong(f"{name} cannot be decoded: {reason}", fix="save or download the image again")


def holds_floats(array: NDArray[Any]) -> bool:
    """Whether the elements of ``array`` are floats, of NumPy or of PTIR."""
    dtype = array.dtype
    return dtype.kind == "f" or (dtype.isbuiltin == 2 and as_dtype(dtype).is_float)


def _from_array(array: NDArray[Any], channels: int, name: str) -> Pixels:
    floats = holds_floats(array)
    shaped = array.ndim == 3 and array.shape[2] == channels and array.size > 0
    if not shaped or not (floats or array.dtype == np.uint8):
        shape = ", ".join(map(str, array.shape))
        raise ArgumentError(
            f"{name} is an array [{shape}] of {array.dtype}, expected [height, width, {channels}]"
            " of uint8 from 0 to 255 or of floats from 0 to 1, at least 1 by 1 pixel"
        )
    if not floats:
        return array
    if not (array.min() >= 0 and array.max() <= 1):  # NaN is neither
        raise ArgumentError(
            f"{name} holds floats from {array.min()} to {array.max()}, expected 0 to 1",
            fix="divide by the value of white, or pass uint8",
        )
    return array.astype(np.float32)
