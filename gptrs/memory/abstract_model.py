"""Abstract models: layers and typed parameters from a configuration alone, without elements.

Enough to trace and plan (memory estimates), to compare structures (`gptrs.parity`), and to generate
random weights (`gptrs.loading.random_model`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gptrs.errors import LoadError
from gptrs.formats.labels import read_labels
from gptrs.formats.model_files import model_class
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array, DType, Type, f32
from gptrs.models.base import Model
from gptrs.nn.module import ParameterOf


class _NoElements:
    """The source of parameters without elements; loading one is an error."""

    def load(self, name: str) -> Array:
        raise LoadError(f"parameter {name} has no elements: the model has a configuration alone")


def without_elements(dtype: DType = f32) -> ParameterOf:
    """A function (name, shape) → parameter of this dtype without elements."""
    source, made = _NoElements(), dict[str, Parameter]()

    def parameter(name: str, shape: tuple[int, ...]) -> Parameter:
        if name not in made:
            made[name] = Parameter.from_source(name, Type(shape, dtype), source)
        return made[name]

    return parameter


def abstract_model(config: Mapping[str, Any], file: Path) -> Model:
    """The model of the entries of a ``config.json``, with parameters without elements.

    Raises `LoadError` naming ``file``.
    """
    model, fields = model_class(config.get("model_type"), file), config
    if model.task == "image_classifier" and (labels := read_labels(config, file)) is not None:
        fields = {**config, "num_labels": len(labels)}
    settings = model.read_config(fields, file)
    return model.build(settings, without_elements())
