"""Decoder language models in OpenVINO, with keys and values as its state.

The graph is what its converter makes of transformers' models: attention as one operation over a
state, matrices of 16 bits in f16. Sums are in f32.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.decoder import DecoderSizes, attention_scale, read_sizes, read_weights
from gptrs_bench.gpt2 import EXACT, Prompts, Side
from gptrs_bench.peers.openvino_model import compile_model, openvino

HALF = 0.05
"""How far logits of f16 weights may lie from those of bf16 ones."""


class _Graph:
    """Nodes of a model; names of weights are Hugging Face's without their ends."""

    def __init__(self, directory: Path, sizes: DecoderSizes) -> None:
        self.ops: Any = import_module("openvino.opset13")
        self.sizes, self.sinks = sizes, list[Any]()
        self.weights = {
            name.removeprefix("model.").removesuffix(".weight"): self.ops.constant(
                np.asarray(array, np.float32)
            )
            for name, array in read_weights(directory)
        }
        self.ids = self._input("ids", [-1, -1], np.int64)
        self.positions = self._input("positions", [-1, -1], np.int64)
        self.chosen = self._input("chosen", [-1], np.int32)

    def _input(self, name: str, shape: list[int], kind: Any) -> Any:
        made = self.ops.parameter(shape, kind, name=name)
        made.output(0).set_names({name})
        return made

    def numbers(self, *values: int) -> Any:
        return self.ops.constant(np.array(values, np.int64))

    def linear(self, x: Any, name: str) -> Any:
        return self.ops.matmul(x, self.weights[name], False, True)

    def norm(self, x: Any, name: str) -> Any:
        ops = self.ops
        squares = ops.power(x, ops.constant(np.float32(2)))
        mean = ops.reduce_mean(squares, self.numbers(-1), keep_dims=True)
        root = ops.sqrt(ops.add(mean, ops.constant(np.float32(self.sizes.epsilon))))
        normed = ops.multiply(x, ops.divide(ops.constant(np.float32(1)), root))
        return ops.multiply(self.weights[name], normed)

    def tables(self) -> tuple[Any, Any]:
        """Cosines and sines [rows, 1, new, head size]."""
        ops = self.ops
        frequencies = np.array(self.sizes.frequencies, np.float32).reshape(1, -1, 1)
        places = ops.convert(ops.unsqueeze(self.positions, self.numbers(1)), "f32")
        turns = ops.matmul(ops.constant(frequencies), places, False, False)
        turns = ops.transpose(turns, self.numbers(0, 2, 1))
        angles = ops.concat([turns, turns], -1)
        cos, sin = (ops.unsqueeze(f(angles), self.numbers(1)) for f in (ops.cos, ops.sin))
        return cos, sin

    def rotated(self, x: Any, cos: Any, sin: Any) -> Any:
        ops, half = self.ops, self.sizes.head_size // 2
        step, axis, end = self.numbers(1), self.numbers(-1), self.numbers(2**62)
        first = ops.slice(x, self.numbers(0), self.numbers(half), step, axis)
        second = ops.slice(x, self.numbers(half), end, step, axis)
        turned = ops.concat([ops.multiply(second, ops.constant(np.float32(-1))), first], -1)
        return ops.add(ops.multiply(x, cos), ops.multiply(turned, sin))

    def heads(self, x: Any, count: int, norm: str = "") -> Any:
        """[rows, new, heads · size] as [rows, heads, new, size]."""
        split = self.ops.reshape(x, self.numbers(0, 0, count, self.sizes.head_size), True)
        split = self.norm(split, norm) if norm in self.weights else split
        return self.ops.transpose(split, self.numbers(0, 2, 1, 3))

    def kept(self, new: Any, name: str) -> Any:
        """The state ``name`` [rows, key heads, tokens, size] with the ``new`` tokens."""
        ops, sizes = self.ops, self.sizes
        rows = ops.gather(ops.shape_of(self.ids), self.numbers(0), ops.constant(0))
        shape = ops.concat([rows, self.numbers(sizes.key_heads, 0, sizes.head_size)], 0)
        begin = ops.broadcast(ops.constant(np.float32(0)), shape)
        known = [-1, sizes.key_heads, -1, sizes.head_size]
        past = ops.read_value(begin, name, openvino.Type.f32, openvino.PartialShape(known))
        past = ops.gather(past, self.chosen, ops.constant(0))
        whole = ops.concat([past, new], 2)
        self.sinks.append(ops.assign(whole, name))
        return whole

    def shared(self, x: Any) -> Any:
        """Keys or values once for each head that shares them."""
        ops, sizes = self.ops, self.sizes
        if (group := sizes.heads // sizes.key_heads) == 1:
            return x
        size = ops.gather(ops.shape_of(x), self.numbers(0, 2), ops.constant(0))
        rows, tokens = (ops.gather(size, self.numbers(i), ops.constant(0)) for i in (0, 1))
        wide = [rows, self.numbers(sizes.key_heads, group), tokens, self.numbers(sizes.head_size)]
        spread = ops.broadcast(
            ops.unsqueeze(x, self.numbers(2)), ops.concat(wide, 0), broadcast_spec="BIDIRECTIONAL"
        )
        return ops.reshape(spread, self.numbers(0, sizes.heads, -1, sizes.head_size), True)

    def mask(self, keys: Any) -> Any:
        """f32 [rows, 1, new, tokens]: 0 where a position may look, else very small."""
        ops = self.ops
        end = ops.gather(ops.shape_of(keys), ops.constant(2), ops.constant(0))
        columns = ops.range(ops.constant(0), ops.convert(end, "i32"), ops.constant(1), "i64")
        places = ops.unsqueeze(self.positions, self.numbers(1, 3))
        later = ops.greater(columns, places)
        return ops.select(later, ops.constant(np.float32(-1e9)), ops.constant(np.float32(0)))


def _attend(g: _Graph, x: Any, layer: int, turns: tuple[Any, Any], masks: list[Any]) -> Any:
    at, sizes, ops = f"layers.{layer}.self_attn", g.sizes, g.ops
    q = g.heads(g.linear(x, f"{at}.q_proj"), sizes.heads, f"{at}.q_norm")
    k = g.heads(g.linear(x, f"{at}.k_proj"), sizes.key_heads, f"{at}.k_norm")
    v = g.heads(g.linear(x, f"{at}.v_proj"), sizes.key_heads)
    q, k = g.rotated(q, *turns), g.rotated(k, *turns)
    k, v = g.kept(k, f"key_{layer}"), g.kept(v, f"value_{layer}")
    masks[:] = masks or [g.mask(k)]
    scale = ops.constant(np.float32(attention_scale(sizes)))
    y = ops.scaled_dot_product_attention(q, g.shared(k), g.shared(v), masks[0], scale)
    y = ops.reshape(ops.transpose(y, g.numbers(0, 2, 1, 3)), g.numbers(0, 0, -1), True)
    return g.linear(y, f"{at}.o_proj")


def _model(g: _Graph) -> Any:
    ops, masks = g.ops, list[Any]()
    x = ops.gather(g.weights["embed_tokens"], g.ids, ops.constant(0))
    turns = g.tables()
    for layer in range(g.sizes.layers):
        at = f"layers.{layer}"
        x = ops.add(x, _attend(g, g.norm(x, f"{at}.input_layernorm"), layer, turns, masks))
        y = g.norm(x, f"{at}.post_attention_layernorm")
        gate, up = (g.linear(y, f"{at}.mlp.{each}_proj") for each in ("gate", "up"))
        x = ops.add(x, g.linear(ops.multiply(ops.swish(gate), up), f"{at}.mlp.down_proj"))
    last = ops.gather(x, ops.constant(-1), ops.constant(1))
    logits = g.linear(g.norm(last, "norm"), "embed_tokens")
    return openvino.Model([ops.result(logits)], g.sinks, [g.ids, g.positions, g.chosen], "decoder")


def write_model(directory: Path, sizes: DecoderSizes) -> Path:
    """The model of a directory as a file beside it, written unless it is there."""
    folder = directory.with_name(f"{directory.name}-openvino")
    file = folder / "model.xml"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / "partial.xml"
        is_half = sizes.dtype != "float32"
        openvino.save_model(_model(_Graph(directory, sizes)), partial, compress_to_fp16=is_half)
        partial.with_suffix(".bin").rename(file.with_suffix(".bin"))
        partial.rename(file)
    return file


class OpenVino:
    """A request, with its state."""

    def __init__(self, directory: Path, threads: int) -> None:
        sizes = read_sizes(directory)
        self.tolerance: float = EXACT if sizes.dtype == "float32" else HALF
        model = openvino.Core().read_model(write_model(directory, sizes))
        self.request = compile_model(model, threads).create_infer_request()

    def _forward(self, ids: NDArray[np.int64], seen: int) -> NDArray[Any]:
        positions: NDArray[np.int64] = np.empty_like(ids)
        positions[:] = np.arange(seen, seen + ids.shape[1])
        chosen = np.arange(len(ids), dtype=np.int32)
        given: dict[str, Any] = {"ids": ids, "positions": positions, "chosen": chosen}
        self.request.infer(given, share_inputs=True)
        return self.request.get_output_tensor(0).data

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        self.request.reset_state()
        new, seen = np.array(prompts, np.int64), 0
        for _ in range(count):
            logits = self._forward(new, seen)
            seen += new.shape[1]
            new = logits.argmax(-1, keepdims=True)
            yield new[:, 0].tolist()

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        self.request.reset_state()
        return self._forward(np.array([prompt], np.int64), 0)[0].copy()


def sides(directory: Path, threads: int) -> dict[str, Side]:
    return {"openvino": OpenVino(directory, threads)}


def quickest(directory: Path, threads: int) -> Side:
    return OpenVino(directory, threads)
