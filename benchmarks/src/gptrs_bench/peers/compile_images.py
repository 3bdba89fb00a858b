"""Image classifiers by torch.compile, with and without frozen weights."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from gptrs_bench.images import Array, Side
from gptrs_bench.peers.compiling import check_compiler
from gptrs_bench.peers.torch_images import Torch, library, read_classifier

BATCHES = 64  # at most so many are compiled, instead of run without


class Compiled(Torch):
    """Compiled for each number of images when that is first seen."""

    def __init__(self, name: str, directory: Path, options: dict[str, Any]) -> None:
        super().__init__(read_classifier(directory, is_folded=True), torch.channels_last)
        self.name = name
        self.model = library.compile(self.model, dynamic=False, options=options)

    def prepare(self, images: Array) -> torch.Tensor:
        prepared, start = super().prepare(images), time.perf_counter()
        self.logits(prepared)
        seconds = time.perf_counter() - start
        print(f"{self.name}: {seconds:.1f} s to compile for {len(images)}", file=sys.stderr)
        return prepared

    @torch.no_grad()  # frozen weights need it
    def logits(self, prepared: torch.Tensor) -> Array:
        return self.model(prepared).numpy()


def sides(directory: Path, threads: int) -> dict[str, Side]:
    check_compiler()
    torch.set_num_threads(threads)
    config: Any = import_module("torch._dynamo.config")
    config.recompile_limit, config.fail_on_recompile_limit_hit = BATCHES, True
    ways: dict[str, dict[str, Any]] = {"compile": {}, "compile frozen": {"freezing": True}}
    return {name: Compiled(name, directory, options) for name, options in ways.items()}
