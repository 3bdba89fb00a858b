"""GPT-2 as a GGUF file, the format of llama.cpp, with matrices in f32 or f16."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.gpt2 import TANH_GELU, read_sizes, read_weights
from gptrs_bench.peers import PeerError

gguf: Any = import_module("gguf")
PARTS = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
    "lm_head": "output",
}


def _entry(name: str, array: NDArray[np.float32], kind: Any) -> tuple[str, NDArray[Any]]:
    """Name and contents in the file: products are [to, from], vectors and positions f32."""
    stem, _, end = name.rpartition(".")
    if not stem.startswith("h."):
        found = array if stem == "wpe" or array.ndim == 1 else array.astype(kind)
        return f"{PARTS[stem]}.{end}", found
    _, layer, part = stem.split(".", 2)
    found = np.ascontiguousarray(array.T).astype(kind) if array.ndim == 2 else array
    return f"blk.{layer}.{PARTS[part]}.{end}", found


def write_gguf(directory: Path, dtype: Literal["f32", "f16"]) -> Path:
    """The model of an f32 directory as a file beside it, written unless it is there.

    Raises `PeerError`.
    """
    sizes = read_sizes(directory)
    if sizes.activation not in TANH_GELU or not sizes.has_usual_scale:
        raise PeerError("it has GPT-2 with the tanh form of gelu and 1/√head_size alone")
    file = directory.with_name(f"{directory.name}-{dtype}.gguf")
    if file.exists():
        return file
    partial = file.with_suffix(".partial")
    writer = gguf.GGUFWriter(partial, "gpt2")
    writer.add_context_length(sizes.context)
    writer.add_embedding_length(sizes.width)
    writer.add_block_count(sizes.layers)
    writer.add_feed_forward_length(sizes.inner)
    writer.add_head_count(sizes.heads)
    writer.add_layer_norm_eps(sizes.epsilon)
    writer.add_vocab_size(sizes.vocabulary)
    writer.add_tokenizer_model("none")
    types = gguf.LlamaFileType
    writer.add_file_type(types.ALL_F32 if dtype == "f32" else types.MOSTLY_F16)
    for name, array in read_weights(directory).items():
        writer.add_tensor(*_entry(name, array, np.float32 if dtype == "f32" else np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(file)
    return file
