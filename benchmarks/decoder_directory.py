"""Decoder language models with random weights, in the sizes of known ones, as Hugging Face
directories; and the bytes and operations of a step.
"""

from __future__ import annotations

import json
import tempfile
from math import prod
from pathlib import Path
from typing import Any, Literal

from gptrs.formats.json_files import read_json
from gptrs.loading.random_model import write_random_model
from gptrs.memory.abstract_model import abstract_model

DType = Literal["f32", "bf16", "f16"]
DTYPES: dict[DType, str] = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
_BYTES: dict[DType, int] = {"f32": 4, "bf16": 2, "f16": 2}

_LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "smollm2-135m": {
        **_LLAMA,
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "max_position_embeddings": 8192,
        "rope_theta": 100000,
    },
    "qwen3-0.6b": {
        **_LLAMA,
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "vocab_size": 151936,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40960,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000,
    },
    "llama-3.2-1b": {
        **_LLAMA,
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "max_position_embeddings": 131072,
        "rope_theta": 500000,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    },
}
"""Entries of ``config.json`` by the name of the size."""


def write_directory(folder: Path, size: str, dtype: DType) -> Path:
    """The directory of a model in ``folder``, written unless it is there. The weights of every
    dtype are the same numbers, rounded."""
    directory = folder / f"gptrs-random-{size}-{dtype}"
    if not (directory / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as made:
            config = Path(made) / "config.json"
            config.write_text(json.dumps({**CONFIGS[size], "dtype": DTYPES[dtype]}))
            write_random_model(config, directory)
    return directory


def _shapes(directory: Path) -> dict[str, tuple[int, ...]]:
    file = directory / "config.json"
    parameters = abstract_model(read_json(file), file).parameters()
    return {name: tuple(map(int, value.shape)) for name, value in parameters.items()}


def step_bytes(directory: Path, dtype: DType) -> int:
    """The bytes of weights, as stored, that a decode step reads: all, as the head is tied."""
    return _BYTES[dtype] * sum(map(prod, _shapes(directory).values()))


def prefill_flops(directory: Path, tokens: int) -> float:
    """Multiplications and additions of a prompt: its products, with the last position's logits."""
    config = read_json(directory / "config.json")
    width, heads = config["hidden_size"], config["num_attention_heads"]
    inner = heads * config.get("head_dim", width // heads)
    matrices = [s for n, s in _shapes(directory).items() if n.startswith("layers") and len(s) == 2]
    # Two products, the lower triangle.
    attention = config["num_hidden_layers"] * 2 * tokens * (tokens + 1) * inner
    return (
        sum(2 * tokens * prod(s) for s in matrices) + attention + 2 * width * config["vocab_size"]
    )
