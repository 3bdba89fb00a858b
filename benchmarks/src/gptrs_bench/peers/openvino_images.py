"""Image classifiers in OpenVINO, from the ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gptrs_bench.images import Array, Side
from gptrs_bench.peers.onnx_images import write_onnx
from gptrs_bench.peers.openvino_model import compile_model, openvino


class OpenVino:
    """Compiled for each number of images, which then is no variable."""

    def __init__(self, file: Path, threads: int) -> None:
        self.file, self.threads = file, threads
        self.requests: dict[int, Any] = {}

    def prepare(self, images: Array) -> Array:
        given = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        if len(given) not in self.requests:
            model = openvino.Core().read_model(self.file)
            model.reshape(list(given.shape))
            compiled = compile_model(model, self.threads)
            self.requests[len(given)] = compiled.create_infer_request()
        return given

    def logits(self, prepared: Array) -> Array:
        request = self.requests[len(prepared)]
        request.infer({"images": prepared}, share_inputs=True)
        return request.get_output_tensor(0).data.copy()


def quickest(directory: Path, threads: int) -> Side:
    return OpenVino(write_onnx(directory), threads)


def sides(directory: Path, threads: int) -> dict[str, Side]:
    return {"openvino": quickest(directory, threads)}
