"""Checkpoints that gpt.rs wrote: configuration and tensors converted to Hugging Face's names.

Source: https://github.com/Lallapallooza/gpt.rs, ``crates/gpt-rs/src/model/gpt.rs``. Its language
models are GPT-2 with the exact gelu and an untied output head, stored as [width, vocabulary]. The
head is transposed when it is read. Images: `gptrs.formats.gpt_rs_images`. The opposite direction:
`gptrs.loading.for_gpt_rs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from gptrs.errors import LoadError
from gptrs.formats import gpt_rs_images
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.ir.types import Array

KIND = "gpt"
SIZES = {
    "vocab_size": "vocab_size",
    "context_length": "n_positions",
    "embed_dim": "n_embd",
    "num_layers": "n_layer",
    "num_heads": "n_head",
}
"""Configuration entries of gpt.rs → those of transformers."""
RATIO = "mlp_ratio"
ALWAYS = {
    "model_type": "gpt2",
    "activation_function": "gelu",
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": False,
}
ENDS = ("bos_token_id", "eos_token_id")
"""Entries that gpt.rs ignores and that are copied."""
HEAD = "lm_head"
WHOLE = {
    "tok_embeddings.weight": "wte.weight",
    "pos_embeddings": "wpe.weight",
    "final_ln.gamma": "ln_f.weight",
    "final_ln.beta": "ln_f.bias",
}
"""Tensor names of gpt.rs → those of transformers."""
PARTS = {
    "attention.w_qkv": "attn.c_attn.weight",
    "attention.b_qkv": "attn.c_attn.bias",
    "attention.w_out": "attn.c_proj.weight",
    "attention.b_out": "attn.c_proj.bias",
    "feed_forward.w_in": "mlp.c_fc.weight",
    "feed_forward.b_in": "mlp.c_fc.bias",
    "feed_forward.w_out": "mlp.c_proj.weight",
    "feed_forward.b_out": "mlp.c_proj.bias",
    "ln_1.gamma": "ln_1.weight",
    "ln_1.beta": "ln_1.bias",
    "ln_2.gamma": "ln_2.weight",
    "ln_2.beta": "ln_2.bias",
}
"""The same for the tensors of a block, after ``blocks.0.`` (gpt.rs) and ``h.0.`` (transformers)."""


def with_hf_names(
    kind: str, config: Mapping[str, Any], tensors: Iterable[StoredTensor], file: Path
) -> tuple[dict[str, Any], list[StoredTensor]]:
    """The entries of a ``config.json`` and the tensors under the names of transformers or
    torchvision; unchanged for a checkpoint that gpt.rs did not write.

    Raises `LoadError` naming ``file``.
    """
    if kind == KIND and "embed_dim" in config:
        return _config_of(config, file), [*_tensors_of(tensors)]
    if gpt_rs_images.is_gpt_rs_config(kind, config):
        return {}, [*gpt_rs_images.tensors_of(kind, tensors)]
    return dict(config), [*tensors]


def _config_of(config: Mapping[str, Any], file: Path) -> dict[str, Any]:
    sizes = {ours: _size(config, name, file) for name, ours in SIZES.items()}
    kept = {name: config[name] for name in ENDS if name in config}
    return {**ALWAYS, **sizes, "n_inner": _size(config, RATIO, file) * sizes["n_embd"], **kept}


def _size(config: Mapping[str, Any], name: str, file: Path) -> int:
    value: object = config.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = f"is {value!r}" if name in config else "is missing"
    raise LoadError(
        f"{file}: config_json: config.{name} {found}, expected an integer from 1 up",
        fix="export the model again",
    )


def _tensors_of(tensors: Iterable[StoredTensor]) -> Iterator[StoredTensor]:
    for stored in tensors:
        if stored.key == HEAD and len(stored.shape) == 2 and stored.dtype is not None:
            yield transposed(stored, "lm_head.weight")
        elif (name := _name_there(stored.key)) is not None:
            yield replace(stored, key=f"transformer.{name}")
        else:
            yield stored


def _name_there(key: str) -> str | None:
    """The name of the tensor ``key`` in transformers; None for one that gpt.rs does not have."""
    block = re.fullmatch(r"blocks\.(\d+)\.(.+)", key)
    if block is None:
        return WHOLE.get(key)
    return None if (part := PARTS.get(block[2])) is None else f"h.{block[1]}.{part}"


def transposed(stored: StoredTensor, key: str) -> StoredTensor:
    """The transpose of the matrix ``stored``, called ``key``."""
    turned = stored.shape[1], stored.shape[0]
    return replace(stored, file=_Transposed(stored), key=key, shape=turned, offset=0)


class _Transposed:
    """The bytes of the transpose of a stored matrix."""

    def __init__(self, stored: StoredTensor) -> None:
        self._stored = stored

    @property
    def path(self) -> Path:
        """The file that has the matrix."""
        return self._stored.file.path

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> Array:
        """The elements from the byte ``offset`` on. Only the stored columns with these elements are
        read. Raises `OSError` or `LoadError`."""
        stored = self._stored
        assert stored.dtype is not None
        kind, (rows, columns) = stored.dtype.numpy, stored.shape
        line, length = rows * kind.itemsize, prod(shape) * dtype.itemsize
        begin, end = offset // line if line else 0, -(-(offset + length) // line) if line else 0
        found = np.empty((end - begin, rows), kind)
        for row in range(rows if length else 0):
            place = stored.offset + (row * columns + begin) * kind.itemsize
            found[:, row] = stored.file.array(kind, (end - begin,), place)
        bytes_found = found.reshape(-1).view(np.uint8)[offset - begin * line :]
        return bytes_found[:length].view(dtype).reshape(shape)
