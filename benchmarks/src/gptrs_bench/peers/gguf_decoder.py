"""Decoder language models as GGUF files, the format of llama.cpp, in the dtype of their weights."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.decoder import CONTEXT, DecoderSizes, read_weights

gguf: Any = import_module("gguf")
PARTS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_FILE_TYPES = {"float32": "ALL_F32", "float16": "MOSTLY_F16", "bfloat16": "MOSTLY_BF16"}


def _place(name: str) -> str:
    """The name in the file of a tensor that Hugging Face calls ``name``."""
    stem, _, end = name.rpartition(".")
    if stem in PARTS:
        return f"{PARTS[stem]}.{end}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{PARTS[part]}.{end}"


def _pairs_beside(matrix: NDArray[Any], heads: int) -> NDArray[Any]:
    """Rows of queries or keys in the order of llama.cpp's Llama, whose pairs lie side by side."""
    rows, width = matrix.shape
    split = matrix.reshape(heads, 2, rows // heads // 2, width)
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(rows, width)


def _add(writer: Any, sizes: DecoderSizes, name: str, array: NDArray[Any]) -> None:
    place = _place(name)
    if sizes.kind == "llama" and ".attn_q." in place:
        array = _pairs_beside(array, sizes.heads)
    elif sizes.kind == "llama" and ".attn_k." in place:
        array = _pairs_beside(array, sizes.key_heads)
    if array.ndim == 1:
        writer.add_tensor(place, array.astype(np.float32))
    elif sizes.dtype == "bfloat16":  # which NumPy has not
        writer.add_tensor(place, array.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
    else:
        writer.add_tensor(place, array)


def write_gguf(directory: Path, sizes: DecoderSizes) -> Path:
    """The model of a directory as a file beside it, written unless it is there."""
    file = directory.with_name(f"{directory.name}.gguf")
    if file.exists():
        return file
    partial = file.with_suffix(".partial")
    writer = gguf.GGUFWriter(partial, sizes.kind)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(sizes.width)
    writer.add_block_count(sizes.layers)
    writer.add_feed_forward_length(sizes.inner)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.key_heads)
    writer.add_key_length(sizes.head_size)
    writer.add_value_length(sizes.head_size)
    writer.add_layer_norm_rms_eps(sizes.epsilon)
    writer.add_rope_freq_base(sizes.theta)
    writer.add_rope_dimension_count(sizes.head_size)
    writer.add_vocab_size(sizes.vocabulary)
    writer.add_tokenizer_model("none")
    writer.add_file_type(gguf.LlamaFileType[_FILE_TYPES[sizes.dtype]])
    if not np.allclose(sizes.frequency_divisors, 1):
        writer.add_tensor("rope_freqs.weight", sizes.frequency_divisors)
    for name, array in read_weights(directory):
        _add(writer, sizes, name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(file)
    return file
