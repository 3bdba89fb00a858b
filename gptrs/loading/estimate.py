"""``gptrs.estimate_memory``: the memory of a model by its place, its configuration, or itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from gptrs.errors import ArgumentError
from gptrs.formats.model_files import read_config
from gptrs.ir.types import as_dtype, bf16, f16, f32
from gptrs.loading.load import load
from gptrs.loading.loaded_model import LoadedModel
from gptrs.memory.estimate import MemoryEstimate, ModelMemory

_FLOATS = (f32, f16, bf16)

Source: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | LoadedModel
"""A model's place, the entries of its ``config.json``, or the model."""


def estimate_memory(
    model: Source,
    *,
    context: int | None = None,
    batch: int = 1,
    threads: int | None = None,
    dtype: object = None,
) -> MemoryEstimate:
    """The most memory that a process takes with ``model``, whose weights are not read.

    ``model`` is what `gptrs.load` takes, a ``config.json``, or its entries as a mapping.
    ``context`` is in tokens (None: all that the model can hold), ``threads`` as plans use
    them (None: as they would now), ``dtype`` what weights are taken to be converted to (f32, f16 or
    bf16; None: as they are, which for a configuration alone is what it says, else f32).
    Raises `LoadError` for what is no model, and `ArgumentError`.
    """
    return memory_of(model, dtype).at(context=context, batch=batch, threads=threads)


def memory_of(model: Source, dtype: object = None) -> ModelMemory:
    """The memory of a model as `estimate_memory` takes it, at sizes that are given later."""
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is not None and wanted not in _FLOATS:
        raise ArgumentError(f"dtype is {wanted}, expected one of {', '.join(map(str, _FLOATS))}")
    if isinstance(model, str | os.PathLike) and str(os.fspath(model)).endswith(".json"):
        config, runtime = read_config(Path(model))
        return ModelMemory.of_config(config, runtime, Path(model), wanted)
    if isinstance(model, Mapping):
        runtime: Any = model.get("runtime") or {}
        return ModelMemory.of_config(model, runtime, Path("the configuration"), wanted)
    memory = (model if isinstance(model, LoadedModel) else load(model)).memory()
    return memory if wanted is None else memory.converted(wanted)
