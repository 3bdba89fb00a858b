"""``gptrs.estimate_memory``: the memory of a model, given by path, configuration or handle."""

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
_BY_BYTES = {4: f32, 2: bf16}

Source: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | LoadedModel
"""The path of a model, the entries of its ``config.json``, or a loaded model."""


def estimate_memory(
    model: Source,
    *,
    context: int | None = None,
    batch: int = 1,
    threads: int | None = None,
    dtype: object = None,
    kv_cache_dtype: object = None,
) -> MemoryEstimate:
    """The peak memory of a process with ``model``. Weights are not read.

    ``model`` is an argument of `gptrs.load`, the path of a ``config.json``, or its entries as a
    mapping. ``context`` is in tokens (None: the context length of the model), ``threads`` the
    threads of plans (None: the current setting), ``dtype`` the dtype to which weights would be
    converted (f32, f16 or bf16; None: their own, for a configuration alone the dtype in it, else
    f32), ``kv_cache_dtype`` that of keys and values (None: as the model was loaded, else f32).
    Raises `LoadError` where there is no model, and `ArgumentError`.
    """
    return memory_of(model, dtype, kv_cache_dtype).at(context=context, batch=batch, threads=threads)


def memory_of(model: Source, dtype: object = None, kv_cache_dtype: object = None) -> ModelMemory:
    """The memory of a model, an argument of `estimate_memory`, at sizes that are given later."""
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is not None and wanted not in _FLOATS:
        raise ArgumentError(f"dtype is {wanted}, expected one of {', '.join(map(str, _FLOATS))}")
    if isinstance(model, str | os.PathLike) and str(os.fspath(model)).endswith(".json"):
        config, runtime = read_config(Path(model))
        return ModelMemory.of_config(config, runtime, Path(model), wanted, kv_cache_dtype)
    if isinstance(model, Mapping):
        runtime: Any = model.get("runtime") or {}
        file = Path("the configuration")
        return ModelMemory.of_config(model, runtime, file, wanted, kv_cache_dtype)
    memory = (model if isinstance(model, LoadedModel) else load(model)).memory()
    memory = memory if wanted is None else memory.converted(wanted)
    return memory if kv_cache_dtype is None else memory.caching(kv_cache_dtype)


def estimate_inference_memory(
    hidden_size: int,
    intermediate_size: int,
    layers: int,
    vocab_size: int,
    heads: int,
    kv_heads: int,
    context: int,
    bytes_per_weight: int = 4,
) -> MemoryEstimate:
    """The peak memory of a process with a decoder of these sizes (Llama's form), for one row of
    ``context`` tokens, with weights of 4 or 2 bytes (f32, bf16).

    A model's own configuration says it better (`estimate_memory`). Raises `ArgumentError`.
    """
    if bytes_per_weight not in _BY_BYTES:
        raise ArgumentError(
            f"bytes_per_weight is {bytes_per_weight!r}, expected 4 (f32) or 2 (bf16)",
            fix="give one of them",
        )
    config = {
        "model_type": "llama",
        "hidden_size": hidden_size,
        "intermediate_size": intermediate_size,
        "num_hidden_layers": layers,
        "vocab_size": vocab_size,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": context,
    }
    return estimate_memory(config, dtype=_BY_BYTES[bytes_per_weight])
