"""A writer of ONNX graphs, node by node.

The library is imported when something is written: who only runs the file should not wait for it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.gpt2 import TANH_GELU
from gptrs_bench.peers import PeerError

_OPERATIONS = {
    "gelu": "Gelu",
    "gelu_python": "Gelu",
    "mish": "Mish",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
}
"""Activations that are an operation each."""

IR_VERSION = 10  # not later, so that older libraries read it too


def library() -> Any:
    """The module ``onnx``."""
    return import_module("onnx")


class Graph:
    """Nodes and constants, written one after the other; values are known by their names."""

    def __init__(self, weights: dict[str, NDArray[Any]]) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = weights
        self._count = 0

    def op(self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **given: Any) -> Any:
        """The name of the output, or the names of several."""
        self._count += 1
        names = [f"{kind}_{self._count}_{i}" for i in range(outputs)]
        make = library().helper.make_node
        self.nodes.append(make(kind, list(inputs), names, names[0], domain=domain, **given))
        return names[0] if outputs == 1 else names

    def named(self, name: str, value: str) -> None:
        """Give ``value`` a name of the model's outputs."""
        self.nodes.append(library().helper.make_node("Identity", [value], [name], name))

    def numbers(self, *values: int) -> str:
        """A constant int64 [values]."""
        name = "numbers_" + "_".join(map(str, values))
        self.constants[name] = np.array(values, np.int64)
        return name

    def scalar(self, value: Any, kind: Any = np.float32) -> str:
        """A constant without dimensions."""
        name = f"scalar_{value}"
        self.constants[name] = np.array(value, kind)
        return name

    def activate(self, x: str, name: str) -> str:
        """The activation of ``x`` that Hugging Face's configurations call ``name``.

        Raises `PeerError` for one that is not written here.
        """
        if name in ("quick_gelu", "silu", "swish"):
            scaled = self.op("Mul", x, self.scalar(1.702)) if name == "quick_gelu" else x
            return self.op("Mul", x, self.op("Sigmoid", scaled))
        if name == "relu6":
            return self.op("Clip", x, self.scalar(0.0), self.scalar(6.0))
        if name in TANH_GELU:
            return self.op("Gelu", x, approximate="tanh")
        if name not in _OPERATIONS:
            raise PeerError(f"the ONNX file has no {name}")
        return self.op(_OPERATIONS[name], x)

    def model(
        self, name: str, inputs: list[Any], outputs: list[Any], opsets: dict[str, int]
    ) -> Any:
        """The whole, with the version of each domain's operations."""
        onnx = library()
        constants = [onnx.numpy_helper.from_array(a, name) for name, a in self.constants.items()]
        graph = onnx.helper.make_graph(self.nodes, name, inputs, outputs, constants)
        given = [onnx.helper.make_opsetid(domain, number) for domain, number in opsets.items()]
        return onnx.helper.make_model(graph, opset_imports=given, ir_version=IR_VERSION)


def save(model: Any, folder: Path) -> Path:
    """The file of ``model`` in ``folder``, weights beside it; only a whole one has its name."""
    file, partial, data = folder / "model.onnx", folder / "partial", "model.data"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / data).unlink(missing_ok=True)
    given: dict[str, Any] = {"location": data, "save_as_external_data": True}
    library().save_model(model, str(partial), all_tensors_to_one_file=True, **given)
    return partial.rename(file)
