"""Image classifiers in onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gptrs_bench.images import Array, Side
from gptrs_bench.peers.onnx_images import write_onnx
from gptrs_bench.peers.onnxruntime_session import session


class OnnxRuntime:
    """A session for each number of images, which then is no variable."""

    def __init__(self, file: Path, threads: int) -> None:
        self.file, self.threads = file, threads
        self.sessions: dict[int, Any] = {}

    def prepare(self, images: Array) -> Array:
        count = len(images)
        if count not in self.sessions:
            self.sessions[count] = session(self.file, self.threads, N=count)
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2))

    def logits(self, prepared: Array) -> Array:
        return self.sessions[len(prepared)].run(["logits"], {"images": prepared})[0]


def quickest(directory: Path, threads: int) -> Side:
    return OnnxRuntime(write_onnx(directory), threads)


def sides(directory: Path, threads: int) -> dict[str, Side]:
    return {"onnxruntime": quickest(directory, threads)}
