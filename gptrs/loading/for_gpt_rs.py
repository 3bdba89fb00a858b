"""GPT-2 converted to the names and the configuration of gpt.rs, in f32.

The inverse of `gptrs.formats.gpt_rs`, which has the tables and the source. Used by conversion and
export with ``names="gpt.rs"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.formats.gpt_rs import ALWAYS, ENDS, HEAD, PARTS, RATIO, SIZES, WHOLE, transposed
from gptrs.formats.model_files import ModelFiles
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.formats.tensor_files import ModelTensors
from gptrs.ir.types import DType, f32
from gptrs.loading.load import model_of
from gptrs.loading.loaded_model import LoadedModel
from gptrs.models.gpt2 import GPT2Config
from gptrs.nn.activations import ACTIVATIONS

_WHOLE = {ours: theirs for theirs, ours in WHOLE.items()}
_PARTS = {ours: theirs for theirs, ours in PARTS.items()}


def for_gpt_rs(files: ModelFiles, dtype: DType | None) -> tuple[ModelFiles, str]:
    """``files``, to be written as ``dtype``, under the names of gpt.rs; and a note on numerical
    differences of gpt.rs, which may be empty.

    Raises `ArgumentError` for a model that gpt.rs does not have.
    """
    if files.kind != "gpt2":
        raise ArgumentError(
            f"{files.place} is of the type {files.kind}, and only gpt2 is written under the names"
            " of gpt.rs",
            fix="leave out --names",
        )
    model = model_of(files)
    config: GPT2Config = model.config
    note = _check(config, files)
    described: dict[str, object] = {
        **{theirs: getattr(config, ours) for theirs, ours in SIZES.items()},
        RATIO: (config.n_inner or 4 * config.n_embd) // config.n_embd,
        "dropout": 0.0,  # of the training
        **{name: files.config[name] for name in ENDS if name in files.config},
    }
    found = list(_tensors(model))
    for tensor in found:
        written = tensor.dtype if dtype is None else dtype
        if written is not f32:
            raise ArgumentError(
                f"{tensor.file.path}: {tensor.key!r} would be {written}, and gpt.rs reads only f32",
                fix="convert it with --dtype f32",
            )
    tensors = ModelTensors(files.tensors.place, found, files.tensors.shapes_from, files.tensors.fix)
    return replace(files, config=described, tensors=tensors), note


def _check(config: GPT2Config, files: ModelFiles) -> str:
    """The note on numerical differences. Raises `ArgumentError` where gpt.rs cannot represent
    ``config``."""
    name = config.activation_function
    is_gelu = ACTIVATIONS[name] in (ptir.gelu, ptir.gelu_tanh)
    wanted: dict[str, object] = {
        "layer_norm_epsilon": ALWAYS["layer_norm_epsilon"],
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
    }
    if not is_gelu:
        wanted["activation_function"] = ALWAYS["activation_function"]
    if config.n_inner is not None and config.n_inner % config.n_embd:
        wanted["n_inner"] = f"a multiple of n_embd {config.n_embd}"
    for field, value in wanted.items():
        if (found := getattr(config, field)) != value:
            raise ArgumentError(
                f"{files.config_file}: {field} is {found}, and in models of gpt.rs it is {value}",
                fix="leave out --names",
            )
    return "" if ACTIVATIONS[name] is ptir.gelu else f"gpt.rs computes gelu for {name}"


def _tensors(model: LoadedModel) -> Iterator[StoredTensor]:
    for name in model.parameters():
        stored = model.weights.stored(name)
        if name == "lm_head.weight":
            yield transposed(stored, HEAD)
            continue
        if name == "wte.weight" and model.config.tie_word_embeddings:
            yield transposed(stored, HEAD)
        block = re.fullmatch(r"h\.(\d+)\.(.+)", name)
        key = _WHOLE[name] if block is None else f"blocks.{block[1]}.{_PARTS[block[2]]}"
        yield replace(stored, key=key)
