"""GPT-2 in eager torch: a minimal loop, and transformers' model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch.nn import functional

from gptrs_bench.gpt2 import EXACT, Prompts, Side, head_matrix, read_sizes
from gptrs_bench.peers.torch_activations import ACTIVATIONS

Pair = tuple[torch.Tensor, torch.Tensor]


class Layer(NamedTuple):
    """Weight and bias of each part of a layer; the weights of products are [from, to]."""

    norm1: Pair
    qkv: Pair
    out: Pair
    norm2: Pair
    up: Pair
    down: Pair


@torch.inference_mode()
def best_order(weights: list[torch.Tensor]) -> list[torch.Tensor]:
    """Matrices [from, to] laid out by rows or by columns: as one row times them is faster here."""
    orders = [[w.contiguous() for w in weights], [w.T.contiguous().T for w in weights]]
    row, times = torch.ones(1, len(weights[0])), [float("inf")] * 2
    for _ in range(7):
        for number, order in enumerate(orders):
            start = time.perf_counter()
            for weight in order:
                torch.mm(row, weight)
            times[number] = min(times[number], time.perf_counter() - start)
    return orders[times.index(min(times))]


class TorchLoop:
    """Eager torch with nothing that the model does not need; keys and values stay in place.

    Weights are widened to f32; unless ``as_stored``, they are laid out as is faster.
    """

    tolerance: float = EXACT

    def __init__(self, directory: Path, rows: int = 1, *, as_stored: bool = False) -> None:
        safetensors: Any = import_module("safetensors.torch")
        stored: dict[str, torch.Tensor] = safetensors.load_file(directory / "model.safetensors")
        arrays = {
            name.removeprefix("transformer."): array.float() for name, array in stored.items()
        }
        self._order = list[torch.Tensor] if as_stored else best_order
        self.sizes = sizes = read_sizes(directory)
        self.activate = ACTIVATIONS[sizes.activation]
        self.scales = [sizes.scale(layer) for layer in range(sizes.layers)]

        def pairs(name: str) -> list[Pair]:
            weights = [arrays[f"h.{i}.{name}.weight"] for i in range(sizes.layers)]
            biases = [arrays[f"h.{i}.{name}.bias"] for i in range(sizes.layers)]
            weights = self._order(weights) if weights[0].ndim == 2 else weights
            return list(zip(weights, biases, strict=True))

        names = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
        self.layers = [Layer(*parts) for parts in zip(*map(pairs, names), strict=True)]
        self.norm = arrays["ln_f.weight"], arrays["ln_f.bias"]
        self.wte, self.wpe = arrays["wte.weight"], arrays["wpe.weight"]
        (self.head,) = self._order([head_matrix(arrays).T])
        self._make_cache(rows)

    def _make_cache(self, rows: int) -> None:
        sizes = self.sizes
        shape = sizes.layers, rows, sizes.heads, sizes.context, sizes.head_size
        self.keys, self.values = torch.zeros(2, *shape)

    def forward(self, tokens: torch.Tensor, seen: int) -> torch.Tensor:
        """Logits [rows, vocabulary] after ``tokens`` [rows, count]; ``seen`` came before them."""
        rows, count = tokens.shape
        end, width, epsilon = seen + count, self.sizes.width, self.sizes.epsilon
        split = rows, count, 3, self.sizes.heads, self.sizes.head_size

        def norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            return functional.layer_norm(x, (width,), weight, bias, epsilon)

        def project(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            return torch.addmm(bias, x, weight)

        x = (self.wte[tokens] + self.wpe[seen:end]).view(rows * count, width)
        layers = zip(self.layers, self.keys, self.values, self.scales, strict=True)
        for layer, keys, values, scale in layers:
            y = project(norm(x, *layer.norm1), *layer.qkv)
            q, k, v = y.view(split).permute(2, 0, 3, 1, 4).unbind()
            keys[:, :, seen:end] = k
            values[:, :, seen:end] = v
            y = functional.scaled_dot_product_attention(
                q, keys[:, :, :end], values[:, :, :end], is_causal=count > 1, scale=scale
            )
            x = x + project(y.transpose(1, 2).reshape(rows * count, width), *layer.out)
            y = project(norm(x, *layer.norm2), *layer.up)
            x = x + project(self.activate(y), *layer.down)
        return torch.mm(norm(x.view(rows, count, width)[:, -1], *self.norm), self.head)

    @torch.inference_mode()
    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        if len(prompts) != self.keys.shape[1]:
            self._make_cache(len(prompts))
        new, seen = torch.tensor(prompts), 0
        for _ in range(count):
            likeliest = self.forward(new, seen).argmax(-1, keepdim=True)
            seen += new.shape[1]
            yield [int(token) for token in likeliest[:, 0]]
            new = likeliest

    @torch.inference_mode()
    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        if self.keys.shape[1] != 1:
            self._make_cache(1)
        return self.forward(torch.tensor([prompt]), 0)[0].numpy()


class Transformers:
    """transformers' own model, with the cache that grows or the one of fixed size.

    ``dtype`` "auto" is the one that weights are stored in.
    """

    tolerance: float = EXACT

    def __init__(self, directory: Path, dtype: Any = torch.float32) -> None:
        # Imported here, as that takes long and `quickest` does without.
        self.library: Any = import_module("transformers")
        model = self.library.AutoModelForCausalLM
        self.model: Any = model.from_pretrained(directory, dtype=dtype).eval()
        self.static = False

    def fixed(self) -> Transformers:
        """The same model with the cache of fixed size."""
        made = copy(self)
        made.static = True
        return made

    def _forward(self, tokens: list[list[int]] | torch.Tensor, cache: Any) -> torch.Tensor:
        ids = torch.as_tensor(tokens)
        out = self.model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return out.logits[:, -1]

    def _cache(self, capacity: int) -> Any:
        if self.static:
            return self.library.StaticCache(config=self.model.config, max_cache_len=capacity)
        return self.library.DynamicCache(config=self.model.config)

    @torch.inference_mode()
    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        cache = self._cache(len(prompts[0]) + count)
        new: Any = prompts
        for _ in range(count):
            likeliest = self._forward(new, cache).argmax(-1, keepdim=True)
            yield [int(token) for token in likeliest[:, 0]]
            new = likeliest

    @torch.inference_mode()
    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        return self._forward([prompt], self._cache(len(prompt)))[0].float().numpy()


def sides(directory: Path, threads: int) -> dict[str, Side]:
    torch.set_num_threads(threads)
    growing = Transformers(directory)
    return {
        "torch loop": TorchLoop(directory),
        "transformers": growing,
        "transformers static": growing.fixed(),
    }


def quickest(directory: Path, threads: int) -> Side:
    torch.set_num_threads(threads)
    return TorchLoop(directory, as_stored=True)
