"""Random images, and directories with their preprocessor configurations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from gptrs.formats.preprocessor import read_preprocessor
from gptrs.images.preprocess import Preprocessor
from gptrs.images.preprocessor_config import IMAGENET_MEAN, IMAGENET_STD

RESNET: dict[str, Any] = {
    "feature_extractor_type": "ConvNextFeatureExtractor",
    "crop_pct": 0.875,
    "do_normalize": True,
    "do_resize": True,
    "image_mean": list(IMAGENET_MEAN),
    "image_std": list(IMAGENET_STD),
    "resample": 3,
    "size": 224,
}


def picture(width: int, height: int, mode: str = "RGB", seed: int = 0) -> Image.Image:
    """Random colours, in patches that resizing blurs."""
    patches = np.random.default_rng(seed).integers(0, 256, (5, 7, 3), np.uint8)
    smooth = Image.fromarray(patches).resize((width, height), Image.Resampling.BICUBIC)
    made = smooth.convert("L").convert("LA") if mode == "LA" else smooth.convert(mode)
    if mode in ("RGBA", "LA"):
        made.putalpha(smooth.convert("L"))
    return made


def preprocessor(directory: Path, **fields: Any) -> Preprocessor:
    """The preprocessor of a directory whose file has ``fields``."""
    directory.mkdir(exist_ok=True)
    (directory / "preprocessor_config.json").write_text(json.dumps(fields))
    return read_preprocessor(directory, size=224, channels=3)
