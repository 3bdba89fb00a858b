"""``gptrs.load``: a model by its directory or its file, ready to use."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, overload

from gptrs.errors import LoadError
from gptrs.models import BUNDLED, MODELS
from gptrs.models.torchvision import TORCHVISION
from gptrs.runtime.classifier import ImageClassifier
from gptrs.runtime.files import config_from_json, read_json
from gptrs.runtime.labels import read_labels
from gptrs.runtime.language import LanguageModel
from gptrs.runtime.overridden import read_overrides
from gptrs.runtime.tensor_files import SUFFIX, Checkpoint
from gptrs.runtime.weights import Weights

_HANDLES = {"causal_lm": LanguageModel, "image_classifier": ImageClassifier}


@overload
def load(path: Literal["stories"] = "stories") -> LanguageModel: ...
@overload
def load(path: str | os.PathLike[str]) -> Any: ...


def load(path: str | os.PathLike[str] = "stories") -> LanguageModel | ImageClassifier:
    """Open a Hugging Face model directory, a file of torchvision's weights (``.safetensors``), or
    a model that ships with gptrs (``"stories"``).

    The result is a `LanguageModel` or an `ImageClassifier`. Torchvision's weights tell their own
    configuration; beside them, the entries of a ``config.json`` count first. Weights are read when
    they are first needed. Raises `LoadError` naming the file and what is wrong with it.
    """
    place = BUNDLED.get(str(path), Path(path))
    is_file = place.suffix == SUFFIX and place.is_file()
    if not is_file and not place.is_dir():
        raise LoadError(
            f"there is no model directory{' or file' * (place.suffix == SUFFIX)} {str(path)!r}",
            fix=f"give the path of a Hugging Face directory, or one of: {', '.join(BUNDLED)}",
        )
    file = place if is_file else place / "config.json"
    data = {} if is_file else read_json(file)
    kind = None if is_file else _kind(data, file)
    overrides = read_overrides(data, file)
    checkpoint = Checkpoint(place)
    kind = kind or _torchvision_kind(checkpoint)
    model = _model_class(kind)
    fields, renames = data, model.renames
    if kind in TORCHVISION and TORCHVISION[kind].fits(shapes := checkpoint.shapes()):
        fields, renames = TORCHVISION[kind].fields(shapes) | data, TORCHVISION[kind].renames
    if model.task == "image_classifier" and (labels := read_labels(data, file)) is not None:
        fields = {**fields, "num_labels": len(labels)}
    config = config_from_json(model.config_type, model.config_renames, fields, file)
    weights = Weights(checkpoint, renames, model.ignored, model.copies(config))
    built = model.build(config, weights.parameter)
    weights.finish()
    return _HANDLES[model.task](place, kind, built, data, overrides)


def _kind(data: dict[str, Any], file: Path) -> str:
    kind = data.get("model_type")
    if not isinstance(kind, str) or kind not in MODELS:
        raise LoadError(
            f"{file}: model_type is {kind!r}, expected one of {', '.join(sorted(MODELS))}",
            fix="choose a model of a type that gptrs knows",
        )
    return kind


def _torchvision_kind(checkpoint: Checkpoint) -> str:
    """The type of the model whose weights alone are there."""
    names = checkpoint.shapes()
    for kind, naming in TORCHVISION.items():
        if naming.fits(names):
            return kind
    raise LoadError(
        f"{checkpoint.place}: its tensors are not named as in torchvision's"
        f" {' or '.join(TORCHVISION)}, the models that need no config.json",
        fix="load the directory that holds this file and its config.json",
    )


def _model_class(kind: str) -> Any:
    module, _, attribute = MODELS[kind].partition(":")
    return getattr(import_module(module), attribute)
