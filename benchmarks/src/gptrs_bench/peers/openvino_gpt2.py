"""GPT-2 in OpenVINO from the plain ONNX file, with the cache as inputs and as state."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.gpt2 import EXACT, Prompts, Side, Sizes, read_sizes
from gptrs_bench.peers.onnx_gpt2 import write_onnx
from gptrs_bench.peers.openvino_model import compile_model, openvino

ops: Any = import_module("openvino.opset13")


def _read(directory: Path) -> Any:
    return openvino.Core().read_model(write_onnx(directory, fused=False))


class OpenVino:
    """Keys and values are outputs of one of two requests, and the next inputs of the other."""

    tolerance: float = EXACT

    def __init__(self, directory: Path, threads: int) -> None:
        self.sizes = read_sizes(directory)
        self.names = self.sizes.cache_names()
        model = compile_model(_read(directory), threads)
        self.requests: list[Any] = [model.create_infer_request() for _ in range(2)]

    def _empty(self, rows: int) -> list[Any]:
        shape = rows, self.sizes.heads, 0, self.sizes.head_size
        return [np.zeros(shape, np.float32) for _ in self.names]

    def _forward(self, ids: NDArray[np.int64], cache: list[Any]) -> tuple[NDArray[Any], list[Any]]:
        given = {f"past_{name}": value for name, value in zip(self.names, cache, strict=True)}
        # A request writes its outputs to the same place each time.
        self.requests.reverse()
        request = self.requests[0]
        request.infer({"ids": ids} | given, share_inputs=True)
        logits, *cache = (request.get_output_tensor(i).data for i in range(1 + len(self.names)))
        return logits, cache

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        new, cache = np.array(prompts, np.int64), self._empty(len(prompts))
        for _ in range(count):
            logits, cache = self._forward(new, cache)
            new = logits.argmax(-1, keepdims=True)
            yield new[:, 0].tolist()

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        return self._forward(np.array([prompt], np.int64), self._empty(1))[0][0].copy()


def _keep_state(model: Any, sizes: Sizes) -> None:
    """Make keys and values a state, which attention reads in place.

    The CPU plugin has a kernel for that. It looks for one operation of attention instead of three,
    for rows of the cache chosen by an input, and for what a state begins with.
    """
    inputs = {node.get_friendly_name(): node for node in model.get_parameters()}
    chosen = ops.parameter([-1], np.int32, name="chosen")
    chosen.output(0).set_names({"chosen"})
    model.add_parameters([chosen])
    for name in sizes.cache_names():
        for reader in inputs[f"past_{name}"].output(0).get_target_inputs():
            if reader.get_node().get_type_name() == "Concat":
                rows = ops.gather(inputs[f"past_{name}"], chosen, ops.constant(0))
                reader.replace_source_output(rows.output(0))
    for softmax in model.get_ordered_ops():
        if softmax.get_type_name() == "Softmax":
            _join_attention(softmax)
    transformations: Any = import_module("openvino._offline_transformations")
    transformations.apply_make_stateful_transformation(
        model, {f"past_{n}": n for n in sizes.cache_names()}
    )
    rows = ops.gather(ops.shape_of(inputs["ids"]), ops.constant([0]), ops.constant(0))
    shape = ops.concat([rows, ops.constant([sizes.heads, 0, sizes.head_size], np.int64)], 0)
    begin = ops.broadcast(ops.constant(0.0, np.float32), shape)
    for node in model.get_ops():
        if node.get_type_name() == "ReadValue":
            node.set_arguments([begin])
    model.validate_nodes_and_infer_types()


def _join_attention(softmax: Any) -> None:
    """softmax(q·kᵀ + mask)·v as one operation; q is scaled already."""
    scores, mask = softmax.input_value(0).get_node().input_values()
    q, turned = scores.get_node().input_values()
    (reader,) = softmax.output(0).get_target_inputs()
    product = reader.get_node()
    k, v = turned.get_node().input_value(0), product.input_value(1)
    one = ops.constant(1.0, np.float32)
    attention = ops.scaled_dot_product_attention(q, k, v, mask, one).output(0)
    for reader in product.output(0).get_target_inputs():
        reader.replace_source_output(attention)


class StatefulOpenVino:
    """Keys and values stay in the request."""

    tolerance: float = EXACT

    def __init__(self, directory: Path, threads: int) -> None:
        model = _read(directory)
        _keep_state(model, read_sizes(directory))
        self.request = compile_model(model, threads).create_infer_request()

    def _forward(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        chosen = np.arange(len(ids), dtype=np.int32)
        self.request.infer({"ids": ids, "chosen": chosen}, share_inputs=True)
        return self.request.get_output_tensor(0).data

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        self.request.reset_state()
        new = np.array(prompts, np.int64)
        for _ in range(count):
            new = self._forward(new).argmax(-1, keepdims=True)
            yield new[:, 0].tolist()

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        self.request.reset_state()
        return self._forward(np.array([prompt], np.int64))[0].copy()


def sides(directory: Path, threads: int) -> dict[str, Side]:
    return {
        "openvino": OpenVino(directory, threads),
        "openvino stateful": StatefulOpenVino(directory, threads),
    }


def quickest(directory: Path, threads: int) -> Side:
    return OpenVino(directory, threads)
