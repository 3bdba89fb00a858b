"""Input batches from files: images and arrays of images, or arrays of token ids.

For the commands that run models (``gptrs forward``); each row has a name for the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gptrs.errors import ArgumentError, LoadError, PtirError
from gptrs.formats.array_files import choose, read_arrays
from gptrs.images.decode import holds_floats
from gptrs.ir.types import Array, shape_text
from gptrs.loading.image_classifier import ImageClassifier
from gptrs.nn.layout import is_channels_first

Batch = tuple[list[str], Array]


def image_batch(model: ImageClassifier, paths: Sequence[Path]) -> Batch:
    """The images of files, [N, H, W, C], and the name of each.

    A file is an image, or an array [N, H, W, C], [N, C, H, W] or of one image without N: ``.npy``,
    or called "images" or "input" in a ``.npz`` file or a tensor archive, or the only one there.
    Images and arrays of uint8 are preprocessed, arrays of floats used as they are. Raises
    `ArgumentError` or `LoadError` naming the file.
    """
    return _joined(paths, [_images(model, path) for path in paths])


def random_image(model: ImageClassifier, seed: int) -> Array:
    """One image [1, H, W, C] of normal noise, distributed as normalised images roughly are."""
    size = model.module.image_size
    shape = (1, size, size, model.config.num_channels)
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def token_batch(paths: Sequence[Path]) -> Batch:
    """The token ids of files, [N, tokens], and the name of each row.

    A file holds an array [tokens] or [N, tokens] of integers: ``.npy``, or called "tokens" or
    "input_ids" in a ``.npz`` file or a tensor archive, or the only one there. Raises
    `ArgumentError` or `LoadError` naming the file.
    """
    return _joined(paths, [_tokens(path) for path in paths])


def _images(model: ImageClassifier, path: Path) -> Array:
    arrays = _arrays(path, "an image or an array")
    if arrays is None:
        return model.preprocessor([path])
    array = choose(arrays, path, ("images", "input"))
    channels = model.config.num_channels
    pixels = array.dtype == np.uint8
    if array.ndim not in (3, 4) or array.size == 0 or not (pixels or holds_floats(array)):
        raise ArgumentError(
            f"{path} holds {array.dtype}{shape_text(array.shape)}, expected floats, or pixels of"
            f" uint8: [N, H, W, {channels}] or [N, {channels}, H, W], N optional, not empty"
        )
    images = array if pixels else _finite(array, path)
    images = images if array.ndim == 4 else images[None]
    try:
        if is_channels_first(images.shape[1:], channels):
            images = np.moveaxis(images, 1, 3)
        return model.preprocessor(images) if pixels else images
    except PtirError as error:
        error.context.append(str(path))
        raise


def _finite(array: Array, path: Path) -> Array:
    with np.errstate(over="ignore"):  # found below
        ready = array.astype(np.float32)
    for wrong in np.argwhere(~np.isfinite(ready))[:1]:
        at = tuple(wrong.tolist())
        raise ArgumentError(
            f"{path} holds {array[at]} at {list(at)}, expected finite numbers in the range of f32",
            fix="look at how the array was made",
        )
    return ready


def _arrays(path: Path, expected: str) -> dict[str, Array] | None:
    if path.is_dir():
        raise LoadError(f"{path} is a folder, expected {expected}", fix="give the files in it")
    return read_arrays(path)


def _tokens(path: Path) -> Array:
    arrays = _arrays(path, "an array of token ids")
    if arrays is None:
        raise ArgumentError(
            f"{path} is no .npy, .npz or .gten file, expected an array of token ids",
            fix="save the ids with numpy.save, or give --text",
        )
    ids = choose(arrays, path, ("tokens", "input_ids"))
    if ids.ndim not in (1, 2) or ids.dtype.kind not in "iu":
        raise ArgumentError(
            f"{path} holds {ids.dtype}{shape_text(ids.shape)},"
            " expected integers [tokens] or [N, tokens]"
        )
    return np.atleast_2d(ids)


def _joined(paths: Sequence[Path], batches: Sequence[Array]) -> Batch:
    names: list[str] = []
    for path, batch in zip(paths, batches, strict=True):
        if batch.shape[1:] != batches[0].shape[1:]:
            first, other = (shape_text(each.shape[1:]) for each in (batches[0], batch))
            raise ArgumentError(
                f"{path} has shape {other} and {paths[0]} {first}, expected one shape in a batch",
                fix="run them one by one",
            )
        several = len(batch) > 1
        names += [f"{path}[{row}]" if several else str(path) for row in range(len(batch))]
    return names, np.concatenate(batches)
