"""Tiny mixtures of experts with random weights, stacked or one by one, without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gptrs.formats.safetensors_file import SafetensorsFile
from gptrs.loading.random_model import write_random_model

Array = NDArray[Any]

MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral",
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 64,
}
QWEN: dict[str, Any] = {
    **MIXTRAL,
    "model_type": "qwen3_moe",
    "head_dim": 6,
    "moe_intermediate_size": 10,
    "num_hidden_layers": 3,
    "mlp_only_layers": [0],
}
PARTS = {  # the names of an expert's matrices in files: gate, up, down
    "mixtral": ("block_sparse_moe", "w1", "w3", "w2"),
    "qwen3_moe": ("mlp", "gate_proj", "up_proj", "down_proj"),
}
CONFIGS = {"mixtral": MIXTRAL, "qwen3_moe": QWEN}


def tensors(path: Path) -> dict[str, Array]:
    return {key: each.read() for key, each in SafetensorsFile.open(path).tensors.items()}


def stacked(folder: Path, config: dict[str, Any]) -> dict[str, Array]:
    """Random weights with the experts of a layer in one tensor."""
    file = folder / f"{config['model_type']}.json"
    file.write_text(json.dumps(config))
    directory = folder / f"random {config['model_type']}"
    if not directory.exists():
        write_random_model(file, directory)
    return tensors(directory / "model.safetensors")


def one_by_one(state: dict[str, Array], kind: str) -> dict[str, Array]:
    """The same weights with a tensor for each matrix of an expert, named as on huggingface.co."""
    block, gate, up, down = PARTS[kind]
    found: dict[str, Array] = {}
    for key, array in state.items():
        place, _, name = key.partition(".mlp.")
        if name == "gate.weight":
            found[f"{place}.{block}.gate.weight"] = array
        elif not name.startswith("experts."):
            found[key] = array
        else:
            for number, matrix in enumerate(array):
                at = f"{place}.{block}.experts.{number}"
                if name == "experts.down_proj":
                    found[f"{at}.{down}.weight"] = matrix
                else:
                    half = len(matrix) // 2
                    found[f"{at}.{gate}.weight"] = matrix[:half]
                    found[f"{at}.{up}.weight"] = matrix[half:]
    return found
