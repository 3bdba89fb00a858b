"""Checkpoints that gpt.rs wrote, which names the parts of models in another way.

Source: https://github.com/Lallapallooza/gpt.rs, ``crates/gpt-rs/src/model/gpt.rs``. Its language
models are GPT-2 with the exact gelu, and with a matrix of its own for the logits, stored as [width,
vocabulary]. Images: `gptrs.runtime.gpt_rs_images`.
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
from gptrs.ir.types import Array
from gptrs.runtime import gpt_rs_images
from gptrs.runtime.stored import StoredTensor

KIND = "gpt"
_SIZES = {
    "vocab_size": "vocab_size",
    "context_length": "n_positions",
    "embed_dim": "n_embd",
    "num_layers": "n_layer",
    "num_heads": "n_head",
}
_RATIO = "mlp_ratio"
_ALWAYS = {
    "model_type": "gpt2",
    "activation_function": "gelu",
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": False,
}
_HEAD = "lm_head"
_NAMES = (
    (r"tok_embeddings\.weight", "wte.weight"),
    (r"pos_embeddings", "wpe.weight"),
    (r"blocks\.(\d+)\.attention\.w_qkv", r"h.\1.attn.c_attn.weight"),
    (r"blocks\.(\d+)\.attention\.b_qkv", r"h.\1.attn.c_attn.bias"),
    (r"blocks\.(\d+)\.attention\.w_out", r"h.\1.attn.c_proj.weight"),
    (r"blocks\.(\d+)\.attention\.b_out", r"h.\1.attn.c_proj.bias"),
    (r"blocks\.(\d+)\.feed_forward\.w_in", r"h.\1.mlp.c_fc.weight"),
    (r"blocks\.(\d+)\.feed_forward\.b_in", r"h.\1.mlp.c_fc.bias"),
    (r"blocks\.(\d+)\.feed_forward\.w_out", r"h.\1.mlp.c_proj.weight"),
    (r"blocks\.(\d+)\.feed_forward\.b_out", r"h.\1.mlp.c_proj.bias"),
    (r"blocks\.(\d+)\.ln_([12])\.gamma", r"h.\1.ln_\2.weight"),
    (r"blocks\.(\d+)\.ln_([12])\.beta", r"h.\1.ln_\2.bias"),
    (r"final_ln\.gamma", "ln_f.weight"),
    (r"final_ln\.beta", "ln_f.bias"),
)


def as_others_say(
    kind: str, config: Mapping[str, Any], tensors: Iterable[StoredTensor], file: Path
) -> tuple[dict[str, Any], list[StoredTensor]]:
    """The entries of a ``config.json`` and the tensors as transformers or torchvision names them;
    those of a checkpoint that gpt.rs did not write as they are.

    Raises `LoadError` naming ``file``.
    """
    if kind == KIND and "embed_dim" in config:
        return _config_of(config, file), [*_tensors_of(tensors)]
    if gpt_rs_images.is_of_gpt_rs(kind, config):
        return {}, [*gpt_rs_images.tensors_of(kind, tensors)]
    return dict(config), [*tensors]


def _config_of(config: Mapping[str, Any], file: Path) -> dict[str, Any]:
    sizes = {ours: _size(config, name, file) for name, ours in _SIZES.items()}
    return {**_ALWAYS, **sizes, "n_inner": _size(config, _RATIO, file) * sizes["n_embd"]}


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
        if stored.key == _HEAD and len(stored.shape) == 2 and stored.dtype is not None:
            turned = stored.shape[1], stored.shape[0]
            yield replace(
                stored, file=_Transposed(stored), key="lm_head.weight", shape=turned, offset=0
            )
            continue
        for pattern, name in _NAMES:
            if (found := re.fullmatch(pattern, stored.key)) is not None:
                yield replace(stored, key=f"transformer.{found.expand(name)}")
                break
        else:
            yield stored


class _Transposed:
    """The bytes of a matrix as they would lie if it was stored the other way round."""

    def __init__(self, stored: StoredTensor) -> None:
        self._stored = stored

    @property
    def path(self) -> Path:
        """The file that has the matrix."""
        return self._stored.file.path

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> Array:
        """The elements from the byte ``offset`` on; no more is read than the columns that have
        them. Raises `OSError` or `LoadError`."""
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
