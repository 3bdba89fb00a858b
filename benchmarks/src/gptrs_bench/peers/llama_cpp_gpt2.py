"""GPT-2 in llama.cpp with f32 and f16 weights."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gptrs_bench.gpt2 import Side, read_sizes
from gptrs_bench.peers.gguf_file import write_gguf
from gptrs_bench.peers.llama_cpp_model import F16, F32, LlamaCpp, Opened

TABLE, HALF = 0.02, 0.05
"""How far logits may lie from those of f32. Its gelu is a table over f16 in both;
with f16 weights every operand of a product and the cache are rounded to f16 too."""


def _model(directory: Path, dtype: Literal["f32", "f16"], threads: int) -> LlamaCpp:
    sizes, is_whole = read_sizes(directory), dtype == "f32"
    opened = Opened(sizes.vocabulary, sizes.context, F32 if is_whole else F16)
    return LlamaCpp(write_gguf(directory, dtype), opened, threads, TABLE if is_whole else HALF)


def sides(directory: Path, threads: int) -> dict[str, Side]:
    return {
        "llama.cpp F32": _model(directory, "f32", threads),
        "llama.cpp F16": _model(directory, "f16", threads),
    }


def quickest(directory: Path, threads: int) -> Side:
    return _model(directory, "f32", threads)
