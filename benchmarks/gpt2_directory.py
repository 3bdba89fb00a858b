"""GPT-2 124M with random weights as a Hugging Face directory, and the bytes and operations of a
step.
"""

from __future__ import annotations

import json
import tempfile
from math import prod
from pathlib import Path
from typing import Literal

from gptrs.ir.types import as_dtype
from gptrs.loading.convert import convert
from gptrs.loading.random_model import write_random_model
from gptrs_bench.gpt2 import Sizes

SIZES = Sizes()
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}

DType = Literal["f32", "f16", "bf16"]


def write_directory(directory: Path, dtype: DType = "f32", seed: int = 0) -> Path:
    """Write the model, unless it is there: f32 to ``directory``, others beside it.

    The narrow ones hold the same numbers, rounded.
    """
    if dtype != "f32":
        narrow = directory.with_name(f"{directory.name}-{dtype}")
        if not narrow.exists():
            convert(write_directory(directory, seed=seed), narrow, dtype=as_dtype(dtype))
        return narrow
    if not (directory / "config.json").exists():
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "config.json"
            config.write_text(json.dumps(CONFIG))
            directory.parent.mkdir(parents=True, exist_ok=True)
            write_random_model(config, directory, seed=seed)
    return directory


def step_bytes(*, compressed: bool) -> int:
    """Bytes of weights that a decode step reads, all but the position rows of other tokens: as
    they are stored, in f32, or as they are held, with matrices in 28 bits a weight.
    """
    shapes = [shape for name, shape in SIZES.shapes().items() if name != "wpe.weight"]
    return sum(
        prod(shape) * (28 if compressed and len(shape) == 2 else 32) // 8 for shape in shapes
    )


def prefill_flops(tokens: int) -> float:
    """Multiplications and additions of a prompt: its products, with the last position's logits."""
    matrices = (shape for name, shape in SIZES.shapes().items() if name.startswith("h."))
    layers = sum(2 * tokens * prod(shape) for shape in matrices if len(shape) == 2)
    # Two products, the lower triangle.
    attention = SIZES.layers * 2 * tokens * (tokens + 1) * SIZES.width
    return layers + attention + 2 * SIZES.width * SIZES.vocabulary
