"""ResNet34 and MobileNetV2 with random weights as Hugging Face directories."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import gptrs
from gptrs.loading.random_model import write_random_model
from gptrs_bench.export import write_for_peers

SIZES = 224, 3  # height and width of the images, and their channels
CONFIGS: dict[str, dict[str, Any]] = {
    "resnet34": {
        "model_type": "resnet",
        "layer_type": "basic",
        "depths": (3, 4, 6, 3),
        "hidden_sizes": (64, 128, 256, 512),
        "embedding_size": 64,
        "num_labels": 1000,
    },
    "mobilenet_v2": {
        "model_type": "mobilenet_v2",
        "depth_multiplier": 1.0,
        "image_size": SIZES[0],
        "num_labels": 1001,
    },
}


def write_directory(parent: Path, name: str, seed: int = 0) -> Path:
    """Write the model ``name`` to a directory of that name in ``parent``, unless it is there."""
    directory = parent / name
    if not (directory / "network.json").exists():  # the last that is written
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            config, made = Path(folder) / "config.json", Path(folder) / "made"
            config.write_text(json.dumps(CONFIGS[name]))
            write_random_model(config, made, seed=seed)
            write_for_peers(gptrs.load(made), directory)
    return directory
