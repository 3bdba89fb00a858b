"""GPT-2 as an ONNX file with a KV cache as inputs and outputs.

Inputs ``ids`` int64 [rows, new] and for each layer ``past_key_0`` and ``past_value_0`` f32
[rows, heads, past, head size]; outputs ``logits`` f32 [rows, vocabulary] of the last position, and
``key_0``, ``value_0`` with the new tokens behind the past ones.

The plain graph has ONNX's own operations. The fused one has onnxruntime's (``com.microsoft``), as
its optimiser for transformers writes them, and no other library reads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gptrs_bench.gpt2 import (
    TANH_GELU,
    Sizes,
    read_sizes,
    read_weights,
)
from gptrs_bench.peers.onnx_file import Graph, library, save

FUSED = "com.microsoft"
OPSETS = {"": 20, FUSED: 1}  # 20: Gelu; not later, so that older libraries read it too


class Gpt2Graph(Graph):
    """With the parts that occur in every layer."""

    def __init__(self, directory: Path) -> None:
        super().__init__(read_weights(directory))
        self.sizes: Sizes = read_sizes(directory)

    def linear(self, x: str, name: str) -> str:
        """x·W + b."""
        return self.op("Add", self.op("MatMul", x, f"{name}.weight"), f"{name}.bias")

    def norm(self, x: str, name: str) -> str:
        parts = x, f"{name}.weight", f"{name}.bias"
        return self.op("LayerNormalization", *parts, axis=-1, epsilon=self.sizes.epsilon)

    def heads(self, x: str) -> str:
        """[rows, new, width] as [rows, heads, new, head size]."""
        split = self.op("Reshape", x, self.numbers(0, 0, self.sizes.heads, self.sizes.head_size))
        return self.op("Transpose", split, perm=[0, 2, 1, 3])


def _size(g: Gpt2Graph, x: str, axis: int) -> str:
    """The size of an axis, int64 without dimensions."""
    sizes = g.op("Shape", x)
    return g.op("Gather", sizes, g.scalar(axis, np.int64))


def _attend(g: Gpt2Graph, qkv: str, layer: int, mask: str) -> str:
    """Attention by ONNX's own operations: [rows, new, width]."""
    parts = g.op("Split", qkv, outputs=3, axis=-1, num_outputs=3)
    q, k, v = (g.heads(part) for part in parts)
    k = g.op("Concat", f"past_key_{layer}", k, axis=2)
    v = g.op("Concat", f"past_value_{layer}", v, axis=2)
    g.named(f"key_{layer}", k)
    g.named(f"value_{layer}", v)
    scaled = g.op("Mul", q, g.scalar(g.sizes.scale(layer)))
    scores = g.op("MatMul", scaled, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    weights = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
    joined = g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    return g.op("Reshape", joined, g.numbers(0, 0, g.sizes.width))


def _mask(g: Gpt2Graph, past: str, end: str) -> str:
    """f32 [new, end]: 0 where a position may look, else a number that softmax turns into 0."""
    one = g.scalar(1, np.int64)
    rows = g.op("Range", past, end, one)
    columns = g.op("Range", g.scalar(0, np.int64), end, one)
    later = g.op("Greater", columns, g.op("Unsqueeze", rows, g.numbers(1)))
    return g.op("Where", later, g.scalar(-1e9), g.scalar(0.0))


def _attend_fused(g: Gpt2Graph, qkv: str, layer: int) -> str:
    q, k, v = g.op("Split", qkv, outputs=3, axis=-1, num_outputs=3)
    past = f"past_key_{layer}", f"past_value_{layer}"
    given: dict[str, Any] = {
        "num_heads": g.sizes.heads,
        "scale": g.sizes.scale(layer),
        "unidirectional": 1,
    }
    out = g.op("MultiHeadAttention", q, k, v, "", "", "", *past, outputs=3, domain=FUSED, **given)
    y, keys, values = out
    g.named(f"key_{layer}", keys)
    g.named(f"value_{layer}", values)
    return y


def _layers(g: Gpt2Graph, x: str, past: str, end: str) -> str:
    mask = _mask(g, past, end)
    for layer in range(g.sizes.layers):
        block = f"h.{layer}"
        qkv = g.linear(g.norm(x, f"{block}.ln_1"), f"{block}.attn.c_attn")
        y = g.linear(_attend(g, qkv, layer, mask), f"{block}.attn.c_proj")
        x = g.op("Add", x, y)
        up = g.linear(g.norm(x, f"{block}.ln_2"), f"{block}.mlp.c_fc")
        y = g.linear(g.activate(up, g.sizes.activation), f"{block}.mlp.c_proj")
        x = g.op("Add", x, y)
    return x


def _layers_fused(g: Gpt2Graph, x: str) -> str:
    """Biases go where what follows adds them: into the norm after the sum, and into the gelu."""

    def product(x: str, name: str) -> str:
        return g.op("MatMul", x, f"{name}.weight")

    def add_norm(y: str, x: str, norm: str, bias: str) -> tuple[str, str]:
        """norm(x + y + bias), and the sum."""
        parts = y, x, f"{norm}.weight", f"{norm}.bias", f"{bias}.bias"
        given: dict[str, Any] = {"epsilon": g.sizes.epsilon, "domain": FUSED}
        names = g.op("SkipLayerNormalization", *parts, outputs=4, **given)
        return names[0], names[3]

    normed = g.norm(x, "h.0.ln_1")
    for layer in range(g.sizes.layers):
        block = f"h.{layer}"
        y = product(
            _attend_fused(g, g.linear(normed, f"{block}.attn.c_attn"), layer),
            f"{block}.attn.c_proj",
        )
        normed, x = add_norm(y, x, f"{block}.ln_2", f"{block}.attn.c_proj")
        up = product(normed, f"{block}.mlp.c_fc")
        y = product(
            g.op("FastGelu", up, f"{block}.mlp.c_fc.bias", domain=FUSED), f"{block}.mlp.c_proj"
        )
        following = f"h.{layer + 1}.ln_1" if layer + 1 < g.sizes.layers else "ln_f"
        normed, x = add_norm(y, x, following, f"{block}.mlp.c_proj")
    return normed


def _model(g: Gpt2Graph, *, fused: bool) -> Any:
    past = _size(g, "past_key_0", 2)
    end = g.op("Add", past, _size(g, "ids", 1))
    positions = g.op("Range", past, end, g.scalar(1, np.int64))
    rows = g.op("Gather", "wte.weight", "ids"), g.op("Gather", "wpe.weight", positions)
    x = g.op("Add", *rows)
    x = _layers_fused(g, x) if fused else _layers(g, x, past, end)
    last = g.op("Gather", x, g.scalar(-1, np.int64), axis=1)
    last = last if fused else g.norm(last, "ln_f")
    head = "wte.weight" if g.sizes.is_tied else "lm_head.weight"
    g.named("logits", g.op("Gemm", last, head, transB=1))
    onnx = library()
    value, kinds = onnx.helper.make_tensor_value_info, onnx.TensorProto
    cache: list[Any] = ["rows", g.sizes.heads, "past", g.sizes.head_size]
    longer: list[Any] = ["rows", g.sizes.heads, "end", g.sizes.head_size]
    names = g.sizes.cache_names()
    inputs = [value("ids", kinds.INT64, ["rows", "new"])]
    inputs += [value(f"past_{name}", kinds.FLOAT, cache) for name in names]
    outputs = [value("logits", kinds.FLOAT, ["rows", g.sizes.vocabulary])]
    outputs += [value(name, kinds.FLOAT, longer) for name in names]
    return g.model("gpt2", inputs, outputs, OPSETS)


def has_fused(directory: Path) -> bool:
    """Whether onnxruntime's operations can do the model: they have one activation."""
    return read_sizes(directory).activation in TANH_GELU


def write_onnx(directory: Path, *, fused: bool) -> Path:
    """The model of an f32 directory as an ONNX file beside it, written unless it is there."""
    folder = directory.with_name(f"{directory.name}-onnx{'-fused' if fused else ''}")
    file = folder / "model.onnx"
    return file if file.exists() else save(_model(Gpt2Graph(directory), fused=fused), folder)
