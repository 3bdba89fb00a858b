"""The models. A model is one file and one row in `MODELS`."""

from __future__ import annotations

from pathlib import Path

MODELS: dict[str, str] = {
    "gpt2": "gptrs.models.gpt2:GPT2",
    "mobilenet_v2": "gptrs.models.mobilenet_v2:MobileNetV2",
    "resnet": "gptrs.models.resnet:ResNet",
}
"""``model_type`` in config.json → where the class is; it is imported when it is loaded."""

BUNDLED: dict[str, Path] = {
    "stories": Path(__file__).parent / "stories",
}
"""The models that ship with the package."""
