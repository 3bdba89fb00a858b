"""``preprocessor_config.json`` of a model directory → `Preprocessor`, with ImageNet defaults."""

from __future__ import annotations

import os
from pathlib import Path

from gptrs.errors import LoadError
from gptrs.formats.json_files import read_json
from gptrs.images.preprocess import Preprocessor
from gptrs.images.preprocessor_config import imagenet, read_preprocessor_config


def read_preprocessor(directory: Path, *, size: int, channels: int) -> Preprocessor:
    """The preprocessor of a model directory, by its ``preprocessor_config.json``.

    Without that file: the usual one for ImageNet, for images of ``size`` × ``size`` pixels.
    Raises `LoadError` naming file, field, what was found and what was expected.
    """
    file = directory / "preprocessor_config.json"
    if os.path.lexists(file):  # a dangling link counts as a missing file
        return Preprocessor(read_preprocessor_config(read_json(file), file, channels), channels)
    if channels != 3:
        raise LoadError(
            f"{file} does not exist, and nothing is usual for images of {channels} channels",
            fix="add the file, or prepare the images yourself and pass an array of them",
        )
    return Preprocessor(imagenet(size), channels)
