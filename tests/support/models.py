"""Small GPT-2 directories with random weights, as Hugging Face lays them out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import tokenizers
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file  # pyright: ignore[reportUnknownVariableType]
from tokenizers import decoders, models, pre_tokenizers

Arrays = dict[str, NDArray[Any]]
Fields = dict[str, Any]

END = "<|endoftext|>"
MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("o", "n"), ("c", "e")]
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def load_arrays(file: Path) -> Arrays:
    """The tensors of a safetensors file."""
    return load_file(file)


def save_arrays(arrays: Arrays, file: Path) -> None:
    """A safetensors file as transformers writes it."""
    save_file(arrays, file, {"format": "pt"})


def byte_tokenizer() -> tokenizers.Tokenizer:
    """Every byte, a few merges, and the end of text: any text has tokens, and comes back."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = [*letters, *(a + b for a, b in MERGES)]
    made: Any = tokenizers.Tokenizer(
        models.BPE(vocab={token: i for i, token in enumerate(vocabulary)}, merges=MERGES)
    )
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([END])
    return made


VOCABULARY = 256 + len(MERGES) + 1
END_ID = VOCABULARY - 1


def config(**fields: Any) -> Fields:
    """A ``config.json`` of two narrow layers; ``fields`` replace its entries."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": VOCABULARY,
        "n_positions": 48,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "bos_token_id": END_ID,
        "eos_token_id": END_ID,
        **fields,
    }


def tensors(settings: Mapping[str, Any], seed: int = 0) -> Arrays:
    """Weights for a config, so large that logits have a standard deviation of about 2.5."""
    random = np.random.default_rng(seed)
    width, inner = settings["n_embd"], settings.get("n_inner") or 4 * settings["n_embd"]
    made: Arrays = {}

    def add(name: str, *shape: int, scale: float, mean: float = 0.0) -> None:
        made[name] = (mean + scale * random.standard_normal(shape)).astype(np.float32)

    def norm(name: str) -> None:
        add(f"{name}.weight", width, scale=0.3, mean=1.0)
        add(f"{name}.bias", width, scale=0.3)

    def project(name: str, wide: int, to: int) -> None:
        add(f"{name}.weight", wide, to, scale=1.5 / np.sqrt(wide))
        add(f"{name}.bias", to, scale=0.3)

    head = 2.5 / np.sqrt(width)
    add("wte.weight", settings["vocab_size"], width, scale=head)
    add("wpe.weight", settings["n_positions"], width, scale=2.0)
    for layer in range(settings["n_layer"]):
        norm(f"h.{layer}.ln_1")
        project(f"h.{layer}.attn.c_attn", width, 3 * width)
        project(f"h.{layer}.attn.c_proj", width, width)
        norm(f"h.{layer}.ln_2")
        project(f"h.{layer}.mlp.c_fc", width, inner)
        project(f"h.{layer}.mlp.c_proj", inner, width)
    norm("ln_f")
    if not settings.get("tie_word_embeddings", True):
        add("lm_head.weight", settings["vocab_size"], width, scale=head)
    return made


def in_files(arrays: Mapping[str, NDArray[Any]], dtype: str = "f32") -> Arrays:
    """``arrays`` with the names and the dtype that ``GPT2LMHeadModel`` saves."""
    return {
        name if name.startswith("lm_head.") else f"transformer.{name}": a.astype(DTYPES[dtype])
        for name, a in arrays.items()
    }


def write(directory: Path, settings: Mapping[str, Any], arrays: Arrays, shards: int = 1) -> Path:
    """A model directory: config, weights in ``shards`` files, tokenizer."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(settings))
    byte_tokenizer().save(str(directory / "tokenizer.json"))
    if shards == 1:
        save_arrays(arrays, directory / "model.safetensors")
        return directory
    places: dict[str, str] = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {name: arrays[name] for name in sorted(arrays)[shard::shards]}
        save_arrays(part, directory / file)
        places |= dict.fromkeys(part, file)
    size = sum(array.nbytes for array in arrays.values())
    index = {"metadata": {"total_size": size}, "weight_map": places}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    return directory


def tiny_gpt2(directory: Path, dtype: str = "f32", seed: int = 0, **fields: Any) -> Path:
    """A complete directory with random weights; ``fields`` replace entries of the config."""
    settings = config(**fields)
    return write(directory, settings, in_files(tensors(settings, seed), dtype))


def random_tokens(*shape: int, seed: int = 0) -> NDArray[np.int64]:
    """Token ids of texts without an end."""
    return np.random.default_rng(seed).integers(0, END_ID, shape)
