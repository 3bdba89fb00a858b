"""Decoder language models in llama.cpp with weights in the dtype that they are stored in.

Keys and values are in f32 beside weights of f32, else in f16, as by default.
"""

from __future__ import annotations

from pathlib import Path

from gptrs_bench.decoder import CONTEXT, read_sizes
from gptrs_bench.gpt2 import Side
from gptrs_bench.peers.gguf_decoder import write_gguf
from gptrs_bench.peers.llama_cpp_model import F16, F32, LlamaCpp, Opened

TOLERANCE = 0.1
"""How far logits may lie from ours: its attention rounds to f16."""


def sides(directory: Path, threads: int) -> dict[str, Side]:
    return {"llama.cpp": quickest(directory, threads)}


def quickest(directory: Path, threads: int) -> Side:
    sizes = read_sizes(directory)
    is_whole = sizes.dtype == "float32"
    opened = Opened(sizes.vocabulary, CONTEXT, F32 if is_whole else F16)
    file = write_gguf(directory, sizes)
    return LlamaCpp(file, opened, threads, TOLERANCE)
