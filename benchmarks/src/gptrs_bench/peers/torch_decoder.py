"""Decoder language models of transformers, eager, with weights in the dtype that they are stored
in."""

from __future__ import annotations

from pathlib import Path

import torch

from gptrs_bench.gpt2 import Side
from gptrs_bench.peers.torch_gpt2 import Transformers


def sides(directory: Path, threads: int) -> dict[str, Side]:
    torch.set_num_threads(threads)
    return {"transformers": Transformers(directory, dtype="auto")}


def quickest(directory: Path, threads: int) -> Side:
    return sides(directory, threads)["transformers"]
