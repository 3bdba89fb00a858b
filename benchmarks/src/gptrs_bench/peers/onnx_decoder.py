"""Decoder language models as ONNX files of onnxruntime's operators, in f32.

Inputs ``ids`` int64 [rows, new], ``last`` int32 [rows] and ``total`` int32 [] (the last position,
and the number of tokens with the new ones), and for each layer ``past_key_0`` and ``past_value_0``
f32 [rows, key heads, capacity, head size]; outputs ``logits`` f32 [rows, vocabulary] of the last
position, and ``key_0``, ``value_0``: the past ones with the new tokens, in place if they have the
same memory. The graph is that of onnxruntime's own builder of such models: ``com.microsoft``'s
GroupQueryAttention turns queries and keys by their positions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.decoder import CONTEXT, DecoderSizes, attention_scale, read_weights
from gptrs_bench.peers import PeerError
from gptrs_bench.peers.onnx_file import Graph, library, save

FUSED = "com.microsoft"
OPSETS = {"": 20, FUSED: 1}


class DecoderGraph(Graph):
    """With the parts that occur in every layer."""

    def __init__(self, directory: Path, sizes: DecoderSizes) -> None:
        weights: dict[str, NDArray[Any]] = {}
        for name, array in read_weights(directory):
            is_product = array.ndim == 2 and "embed_tokens" not in name
            name = name.removeprefix("model.").removesuffix(".weight")
            weights[name] = np.ascontiguousarray(array.T) if is_product else array
        if not sizes.has_head_norms:
            for layer in range(sizes.layers):
                at = f"layers.{layer}.self_attn"
                parts = [weights.pop(f"{at}.{each}_proj") for each in "qkv"]
                weights[f"{at}.qkv_proj"] = np.concatenate(parts, 1)
        weights["cos"], weights["sin"] = sizes.tables(CONTEXT)
        super().__init__(weights)
        self.sizes = sizes

    def norm(self, x: str, name: str) -> str:
        given: dict[str, Any] = {"axis": -1, "epsilon": self.sizes.epsilon, "stash_type": 1}
        return self.op("SimplifiedLayerNormalization", x, name, **given)

    def add_norm(self, x: str, y: str, name: str) -> tuple[str, str]:
        """norm(x + y), and the sum."""
        given: dict[str, Any] = {"epsilon": self.sizes.epsilon, "domain": FUSED}
        names = self.op("SkipSimplifiedLayerNormalization", x, y, name, outputs=4, **given)
        return names[0], names[3]

    def projections(self, x: str, at: str) -> tuple[str, str, str]:
        """Queries, keys and values [rows, new, all heads], or all of them as the first."""
        if not self.sizes.has_head_norms:
            return self.op("MatMul", x, f"{at}.qkv_proj"), "", ""
        q, k, v = (self.op("MatMul", x, f"{at}.{each}_proj") for each in "qkv")
        return self._head_norm(q, f"{at}.q_norm"), self._head_norm(k, f"{at}.k_norm"), v

    def _head_norm(self, x: str, name: str) -> str:
        split = self.op("Reshape", x, self.numbers(0, 0, -1, self.sizes.head_size))
        return self.op("Reshape", self.norm(split, name), self.numbers(0, 0, -1))


def _attend(g: DecoderGraph, x: str, layer: int) -> str:
    at = f"layers.{layer}.self_attn"
    past = f"past_key_{layer}", f"past_value_{layer}"
    given: dict[str, Any] = {
        "num_heads": g.sizes.heads,
        "kv_num_heads": g.sizes.key_heads,
        "scale": attention_scale(g.sizes),
        "do_rotary": 1,
        "rotary_interleaved": 0,
    }
    inputs = *g.projections(x, at), *past, "last", "total", "cos", "sin"
    names = g.op("GroupQueryAttention", *inputs, outputs=3, domain=FUSED, **given)
    g.named(f"key_{layer}", names[1])
    g.named(f"value_{layer}", names[2])
    return g.op("MatMul", names[0], f"{at}.o_proj")


def _layers(g: DecoderGraph) -> str:
    x = g.op("Gather", "embed_tokens", "ids")
    normed = g.norm(x, "layers.0.input_layernorm")
    for layer in range(g.sizes.layers):
        at = f"layers.{layer}"
        y = _attend(g, normed, layer)
        normed, x = g.add_norm(x, y, f"{at}.post_attention_layernorm")
        gate, up = (g.op("MatMul", normed, f"{at}.mlp.{each}_proj") for each in ("gate", "up"))
        y = g.op("MatMul", g.op("Mul", g.activate(gate, "silu"), up), f"{at}.mlp.down_proj")
        is_last = layer + 1 == g.sizes.layers
        following = "norm" if is_last else f"layers.{layer + 1}.input_layernorm"
        normed, x = g.add_norm(x, y, following)
    return normed


def _model(g: DecoderGraph) -> Any:
    last = g.op("Gather", _layers(g), g.scalar(-1, np.int64), axis=1)
    g.named("logits", g.op("Gemm", last, "embed_tokens", transB=1))
    value, kinds = library().helper.make_tensor_value_info, library().TensorProto
    cache: list[Any] = ["rows", g.sizes.key_heads, "capacity", g.sizes.head_size]
    names = cache_names(g.sizes)
    inputs = [value("ids", kinds.INT64, ["rows", "new"]), value("last", kinds.INT32, ["rows"])]
    inputs += [value("total", kinds.INT32, [])]
    inputs += [value(f"past_{name}", kinds.FLOAT, cache) for name in names]
    outputs = [value("logits", kinds.FLOAT, ["rows", g.sizes.vocabulary])]
    outputs += [value(name, kinds.FLOAT, cache) for name in names]
    return g.model("decoder", inputs, outputs, OPSETS)


def cache_names(sizes: DecoderSizes) -> list[str]:
    """Names for the keys and the values of all layers."""
    return [f"{kind}_{layer}" for layer in range(sizes.layers) for kind in ("key", "value")]


def write_onnx(directory: Path, sizes: DecoderSizes) -> Path:
    """The model of an f32 directory as an ONNX file beside it, written unless it is there.

    Raises `PeerError` for other dtypes.
    """
    if sizes.dtype != "float32":
        raise PeerError(f"its products on CPUs have no {sizes.dtype}")
    folder = directory.with_name(f"{directory.name}-onnx")
    file = folder / "model.onnx"
    return file if file.exists() else save(_model(DecoderGraph(directory, sizes)), folder)
