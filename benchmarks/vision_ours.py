"""Image classifiers as gptrs runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gptrs
from benchmarks.vision_directory import Array


class Ours:
    """Images as preprocessing leaves them, [N, H, W, C]."""

    def __init__(self, directory: Path) -> None:
        self.classifier = gptrs.load(directory).image_classifier

    def prepare(self, images: Array) -> Array:
        return images

    def logits(self, prepared: Array) -> Array:
        return np.asarray(self.classifier.forward(prepared).numpy())
