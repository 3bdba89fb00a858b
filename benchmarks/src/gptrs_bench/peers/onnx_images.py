"""An image classifier as an ONNX file, with batch norms folded into the convolutions.

Input ``images`` f32 [N, C, H, W], output ``logits`` f32 [N, classes].
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gptrs_bench.images import Array, Conv, Network, folded, read_network, read_weights
from gptrs_bench.peers.onnx_file import Graph, library, save

OPSETS = {"": 20}  # not later, so that older libraries read it too


class _Images(Graph):
    def __init__(self, model: Network, weights: dict[str, Array]) -> None:
        super().__init__({})
        self.network = model
        for conv in model.convs():
            weight, bias = folded(conv, weights)
            self.constants |= {f"{conv.name}.weight": weight, f"{conv.name}.bias": bias}
        for part in ("weight", "bias"):
            name = f"{model.classifier}.{part}"
            self.constants[name] = weights[name]

    def conv(self, x: str, conv: Conv) -> str:
        y = self.op(
            "Conv",
            *(x, f"{conv.name}.weight", f"{conv.name}.bias"),
            kernel_shape=[conv.kernel] * 2,
            strides=[conv.stride] * 2,
            pads=[conv.before] * 2 + [conv.after] * 2,
            dilations=[conv.dilation] * 2,
            group=conv.groups,
        )
        return self.activated(y, conv.activation)

    def activated(self, x: str, activation: str | None) -> str:
        return x if activation is None else self.activate(x, activation)

    def logits(self, images: str) -> str:
        x = self.conv(images, self.network.stem)
        if self.network.is_pooled:
            x = self.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        for block in self.network.blocks:
            y = x
            for conv in block.convs:
                y = self.conv(y, conv)
            if block.is_residual:
                shortcut = block.shortcut
                y = self.op("Add", y, x if shortcut is None else self.conv(x, shortcut))
            x = self.activated(y, block.activation)
        mean, name = self.op("GlobalAveragePool", x), self.network.classifier
        flat = self.op("Flatten", mean)
        return self.op("Gemm", flat, f"{name}.weight", f"{name}.bias", transB=1)


def _model(directory: Path) -> Any:
    model = read_network(directory)
    g = _Images(model, read_weights(directory))
    g.named("logits", g.logits("images"))
    onnx = library()
    value, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    inputs = [value("images", kind, ["N", model.channels, model.size, model.size])]
    return g.model(directory.name, inputs, [value("logits", kind, ["N", model.classes])], OPSETS)


def write_onnx(directory: Path) -> Path:
    """The model in ``directory`` as an ONNX file beside it, written unless it is there."""
    folder = directory.with_name(f"{directory.name}-onnx")
    file = folder / "model.onnx"
    return file if file.exists() else save(_model(directory), folder)
