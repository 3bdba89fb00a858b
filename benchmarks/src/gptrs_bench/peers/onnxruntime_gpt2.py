"""GPT-2 in onnxruntime: standard operators, and its transformer operators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.gpt2 import EXACT, Prompts, Side, read_sizes
from gptrs_bench.peers.onnx_gpt2 import has_fused, write_onnx
from gptrs_bench.peers.onnxruntime_session import onnxruntime, session


class OnnxRuntime:
    """Outputs stay in onnxruntime's memory and are the next step's inputs."""

    tolerance: float = EXACT

    def __init__(self, directory: Path, threads: int, *, fused: bool) -> None:
        self.session = session(write_onnx(directory, fused=fused), threads)
        self.sizes = read_sizes(directory)
        self.names = self.sizes.cache_names()

    def _empty(self, rows: int) -> list[Any]:
        array = np.zeros((rows, self.sizes.heads, 0, self.sizes.head_size), np.float32)
        return [onnxruntime.OrtValue.ortvalue_from_numpy(array) for _ in self.names]

    def _forward(self, ids: NDArray[np.int64], cache: list[Any]) -> tuple[NDArray[Any], list[Any]]:
        bound = self.session.io_binding()
        bound.bind_cpu_input("ids", ids)
        bound.bind_output("logits", "cpu")
        for name, value in zip(self.names, cache, strict=True):
            bound.bind_ortvalue_input(f"past_{name}", value)
            bound.bind_output(name, "cpu")
        self.session.run_with_iobinding(bound)
        logits, *cache = bound.get_outputs()
        return logits.numpy(), cache

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        new, cache = np.array(prompts, np.int64), self._empty(len(prompts))
        for _ in range(count):
            logits, cache = self._forward(new, cache)
            new = logits.argmax(-1, keepdims=True)
            yield new[:, 0].tolist()

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        return self._forward(np.array([prompt], np.int64), self._empty(1))[0][0]


def sides(directory: Path, threads: int) -> dict[str, Side]:
    found: dict[str, Side] = {"onnxruntime": OnnxRuntime(directory, threads, fused=False)}
    if has_fused(directory):
        found["onnxruntime fused"] = OnnxRuntime(directory, threads, fused=True)
    return found


def quickest(directory: Path, threads: int) -> Side:
    return OnnxRuntime(directory, threads, fused=has_fused(directory))
