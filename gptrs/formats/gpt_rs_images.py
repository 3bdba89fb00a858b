"""Image classifiers that gpt.rs exported: torchvision's, batch norms folded into convolutions.

Source: https://github.com/Lallapallooza/gpt.rs, ``scripts/gptrs_eval/weights.py``. The models here
have a batch norm after every convolution: it gets the bias, and statistics that are the identity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gptrs.formats.in_memory import in_memory_tensor
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.ir.types import Array

_EPS = np.float32(1e-5)  # of torchvision's norms
_SAME: dict[str, np.float32] = {
    "weight": np.float32(1),
    "running_mean": np.float32(0),
    "running_var": np.float32(1) - _EPS,  # variance + eps is exactly 1
}
# The part of a name before ``.weight`` or ``.bias``, then torchvision's convolution and norm.
_PARTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "resnet34": (
        (r"conv1", "conv1", "bn1"),
        (r"(layer\d\.\d+)\.conv(\d)", r"\1.conv\2", r"\1.bn\2"),
        (r"(layer\d\.\d+)\.downsample", r"\1.downsample.0", r"\1.downsample.1"),
    ),
    "mobilenet_v2": (
        (r"stem", "features.0.0", "features.0.1"),
        (r"blocks\.0\.depthwise", "features.1.conv.0.0", "features.1.conv.0.1"),
        (r"blocks\.0\.project", "features.1.conv.1", "features.1.conv.2"),
        (r"blocks\.(\d+)\.expand", r"features.\1.conv.0.0", r"features.\1.conv.0.1"),
        (r"blocks\.(\d+)\.depthwise", r"features.\1.conv.1.0", r"features.\1.conv.1.1"),
        (r"blocks\.(\d+)\.project", r"features.\1.conv.2", r"features.\1.conv.3"),
        (r"head", "features.18.0", "features.18.1"),
    ),
}
_RENAMED = {"mobilenet_v2": {"classifier.": "classifier.1."}}


def is_gpt_rs_config(kind: str, config: Mapping[str, Any]) -> bool:
    """Whether a checkpoint's configuration is that of an image model of gpt.rs."""
    return kind in _PARTS and set(config) == {"num_classes"}


def tensors_of(kind: str, tensors: Iterable[StoredTensor]) -> Iterator[StoredTensor]:
    """The tensors of a model of the ``kind`` under torchvision's names."""
    for stored in tensors:
        part, _, end = stored.key.rpartition(".")
        names = next((n for p in _PARTS[kind] if (n := _names(p, part)) is not None), None)
        if names is None or end not in ("weight", "bias"):
            key = stored.key
            for old, new in _RENAMED.get(kind, {}).items():
                key = key.replace(old, new, 1) if key.startswith(old) else key
            yield replace(stored, key=key)
            continue
        convolution, norm = names
        yield replace(stored, key=f"{convolution if end == 'weight' else norm}.{end}")
        if end == "bias":
            for name, value in _SAME.items():
                same: Array = np.full(stored.shape, value, np.float32)
                yield in_memory_tensor(stored.file.path, f"{norm}.{name}", same)


def _names(row: tuple[str, str, str], part: str) -> tuple[str, str] | None:
    """torchvision's names of the convolution and the norm of ``part``. Blocks count from 0,
    features from 1."""
    pattern, convolution, norm = row
    if (found := re.fullmatch(pattern, part)) is None:
        return None
    if part.startswith("blocks."):
        number = str(int(part.split(".")[1]) + 1)
        return convolution.replace(r"\1", number), norm.replace(r"\1", number)
    return found.expand(convolution), found.expand(norm)
