"""Decoder language models in onnxruntime, with its transformer operators and a cache in place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.decoder import CONTEXT, read_sizes
from gptrs_bench.gpt2 import EXACT, Prompts, Side
from gptrs_bench.peers.onnx_decoder import cache_names, write_onnx
from gptrs_bench.peers.onnxruntime_session import onnxruntime, session


class OnnxRuntime:
    """Keys and values are inputs and outputs in the same memory."""

    tolerance: float = EXACT

    def __init__(self, directory: Path, threads: int) -> None:
        self.sizes = read_sizes(directory)
        self.names = cache_names(self.sizes)
        self.session = session(write_onnx(directory, self.sizes), threads)

    def _empty(self, rows: int) -> list[Any]:
        shape = rows, self.sizes.key_heads, CONTEXT, self.sizes.head_size
        made = (np.zeros(shape, np.float32) for _ in self.names)
        return [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in made]

    def _forward(self, ids: NDArray[np.int64], seen: int, cache: list[Any]) -> NDArray[Any]:
        total = seen + ids.shape[1]
        bound = self.session.io_binding()
        bound.bind_cpu_input("ids", ids)
        bound.bind_cpu_input("last", np.full(len(ids), total - 1, np.int32))
        bound.bind_cpu_input("total", np.array(total, np.int32))
        bound.bind_output("logits", "cpu")
        for name, value in zip(self.names, cache, strict=True):
            bound.bind_ortvalue_input(f"past_{name}", value)
            bound.bind_ortvalue_output(name, value)
        self.session.run_with_iobinding(bound)
        return bound.get_outputs()[0].numpy()

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        new, cache, seen = np.array(prompts, np.int64), self._empty(len(prompts)), 0
        for _ in range(count):
            logits = self._forward(new, seen, cache)
            seen += new.shape[1]
            new = logits.argmax(-1, keepdims=True)
            yield new[:, 0].tolist()

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        return self._forward(np.array([prompt], np.int64), 0, self._empty(1))[0]


def sides(directory: Path, threads: int) -> dict[str, Side]:
    return {"onnxruntime": OnnxRuntime(directory, threads)}


def quickest(directory: Path, threads: int) -> Side:
    return OnnxRuntime(directory, threads)
