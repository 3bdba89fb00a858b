"""Registry of models by ``model_type``: built-in, registered, and from installed packages.

A package offers a model by an entry point of the group `GROUP`, whose name is the ``model_type``
and whose value is the class::

    [project.entry-points."gptrs.models"]
    mine = "my_package.model:MyModel"

Built-in names have priority; entry points are read for other names only.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from gptrs.entry_points import described, installed_entry_points, load_entry_point
from gptrs.errors import ArgumentError
from gptrs.jit.function import JitFunction
from gptrs.locks import late_import
from gptrs.models.base import Model

M = TypeVar("M", bound=Model)

MODELS: dict[str, str] = {
    "gemma": "gptrs.models.families:Gemma",
    "gemma2": "gptrs.models.families:Gemma2",
    "gemma3": "gptrs.models.families:Gemma3",
    "gemma3_text": "gptrs.models.families:Gemma3",
    "gpt2": "gptrs.models.gpt2:GPT2",
    "gpt_neox": "gptrs.models.families:GPTNeoX",
    "granite": "gptrs.models.families:Granite",
    "llama": "gptrs.models.families:Llama",
    "ministral": "gptrs.models.families:Mistral",
    "mistral": "gptrs.models.families:Mistral",
    "mixtral": "gptrs.models.families:Mixtral",
    "mobilenet_v2": "gptrs.models.mobilenet_v2:MobileNetV2",
    "olmo2": "gptrs.models.families:Olmo2",
    "phi3": "gptrs.models.families:Phi3",
    "qwen2": "gptrs.models.families:Qwen2",
    "qwen3": "gptrs.models.families:Qwen3",
    "qwen3_moe": "gptrs.models.families:Qwen3Moe",
    "resnet": "gptrs.models.resnet:ResNet",
    "smollm3": "gptrs.models.families:SmolLM3",
    "starcoder2": "gptrs.models.families:Starcoder2",
}
"""``model_type`` → module and class of the built-in models, imported on use."""

CHECKPOINT_KINDS: dict[str, str] = {"gpt": "gpt2", "resnet34": "resnet"}
"""Kinds in checkpoints (``GPTRSCHK``) → ``model_type``, where these differ."""

GROUP = "gptrs.models"
"""The group of entry points that offer models."""

_NEEDED = {
    "causal_lm": ("context_length", "vocab_size", "init_cache"),
    "image_classifier": ("image_size",),
}
"""The required attributes of a model, by task."""

_registered: dict[str, type[Model]] = {}
_loaded: dict[str, type[Model]] = {}
"""Models of installed packages, after their first use."""


def register(model_type: str, model: type[M]) -> type[M]:
    """Register the class ``model`` as ``model_type`` in this process, and return it.

    The same class may be registered again, also when its code was run again, as in a notebook.
    Raises `ArgumentError` when the name belongs to another model, or when the class does not
    derive from `Model` or lacks an attribute that its task requires.
    """
    _check(model_type, model, "gptrs.models.register")
    if owner := _owner(model_type, model):
        raise ArgumentError(
            f"there is a model {model_type!r} already: {owner}",
            fix=f"choose another name for {model.__qualname__}",
        )
    _registered[model_type] = model
    return model


def find_model(model_type: object) -> type[Model] | None:
    """The class of the models of a ``model_type``, None if there is no such model.

    Raises `ArgumentError` naming the package whose model cannot be used.
    """
    if not isinstance(model_type, str):
        return None
    if model_type in MODELS:
        module, _, name = MODELS[model_type].partition(":")
        return getattr(late_import(module), name)
    if (known := _registered.get(model_type) or _loaded.get(model_type)) is not None:
        return known
    if (found := load_entry_point(GROUP, model_type, "a model")) is None:
        return None
    entry, model = found
    _check(model_type, model, described(entry))
    return _loaded.setdefault(model_type, model)


def known_models() -> tuple[str, ...]:
    """The names of all models that `find_model` can find."""
    return tuple(
        sorted({*MODELS, *_registered, *(entry.name for entry in installed_entry_points(GROUP))})
    )


def _path(model: type[Model]) -> str:
    return f"{model.__module__}:{model.__qualname__}"


def _owner(model_type: str, model: type[Model]) -> str:
    """The owner of the name, if it is not ``model`` or its own package; empty: the name is free."""
    if model_type in MODELS:
        return f"{MODELS[model_type]}, which is built in"
    if model_type in CHECKPOINT_KINDS:
        return f"checkpoints call {CHECKPOINT_KINDS[model_type]!r} so"
    other = _registered.get(model_type)
    if other is not None and _path(other) != _path(model):
        return f"{_path(other)}, which was registered"
    package = model.__module__.partition(".")[0]
    entries = installed_entry_points(GROUP, model_type)
    others = [each for each in entries if each.module.partition(".")[0] != package]
    return ", ".join(sorted(map(described, others)))


def _check(model_type: object, model: Any, what: str) -> None:
    """Raise `ArgumentError`, which begins with ``what``, unless ``model`` is a complete model."""
    if not isinstance(model_type, str) or not model_type:
        raise ArgumentError(f"{what}: a model's name is a word, found {model_type!r}")
    if not isinstance(model, type) or not issubclass(model, Model):
        raise ArgumentError(
            f"{what}: {model!r} is no class of a model",
            fix="derive it from gptrs.models.Model, and pass the class",
        )
    name = model.__qualname__
    task: object = getattr(model, "task", None)
    if task not in _NEEDED:
        raise ArgumentError(
            f"{what}: the task of {name} is {task!r}, expected one of {', '.join(_NEEDED)}",
            fix='write task: ClassVar = "..." in the class',
        )
    if not dataclasses.is_dataclass(getattr(model, "config_type", None)):
        raise ArgumentError(
            f"{what}: the config_type of {name} is no dataclass",
            fix="write config_type: ClassVar = ..., with the fields of config.json",
        )
    missing = [each for each in _NEEDED[str(task)] if not _has(model, each)]
    if model.build.__func__ is Model.build.__func__:
        missing.append("build")
    if missing:
        raise ArgumentError(
            f"{what}: {name} has no {', '.join(missing)}",
            fix=f"write what gptrs.models.Model says of {missing[0]}",
        )
    if not isinstance(model.__call__, JitFunction):
        raise ArgumentError(
            f"{what}: __call__ of {name} is not traced", fix="decorate it with ptir.jit"
        )


def _has(model: type[Model], name: str) -> bool:
    """Whether instances have an attribute: a field, a property or a method."""
    return hasattr(model, name) or name in {field.name for field in dataclasses.fields(model)}
