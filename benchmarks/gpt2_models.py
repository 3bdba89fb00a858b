"""GPT-2 124M with random weights on three sides: ours, a loop in plain torch, transformers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from torch.nn import functional
from transformers import DynamicCache, GPT2LMHeadModel, StaticCache

import gptrs
from gptrs.text.generation import generate_tokens
from gptrs.text.sampling import GenerationOptions

LAYERS, HEADS, WIDTH, CONTEXT, VOCABULARY = 12, 12, 768, 1024, 50257
HEAD_SIZE = WIDTH // HEADS


def write_directory(directory: Path, seed: int = 0) -> None:
    """Write the model as a Hugging Face directory, unless it is there.

    Weights are so large that the likeliest tokens depend on the text before.
    """
    config = directory / "config.json"
    if config.exists():
        return
    random = np.random.default_rng(seed)
    arrays: dict[str, NDArray[Any]] = {}

    def add(name: str, *shape: int, scale: float, mean: float = 0) -> None:
        array = mean + scale * random.standard_normal(shape, np.float32)
        arrays[f"transformer.{name}"] = array

    def project(name: str, wide: int, to: int) -> None:
        add(f"{name}.weight", wide, to, scale=1.5 / wide**0.5)
        add(f"{name}.bias", to, scale=0.1)

    def norm(name: str) -> None:
        add(f"{name}.weight", WIDTH, scale=0.1, mean=1)
        add(f"{name}.bias", WIDTH, scale=0.1)

    add("wte.weight", VOCABULARY, WIDTH, scale=0.1)
    add("wpe.weight", CONTEXT, WIDTH, scale=0.1)
    for layer in range(LAYERS):
        norm(f"h.{layer}.ln_1")
        project(f"h.{layer}.attn.c_attn", WIDTH, 3 * WIDTH)
        project(f"h.{layer}.attn.c_proj", WIDTH, WIDTH)
        norm(f"h.{layer}.ln_2")
        project(f"h.{layer}.mlp.c_fc", WIDTH, 4 * WIDTH)
        project(f"h.{layer}.mlp.c_proj", 4 * WIDTH, WIDTH)
    norm("ln_f")
    directory.mkdir(parents=True, exist_ok=True)
    save_file(arrays, directory / "model.safetensors", {"format": "pt"})
    fields = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}
    config.write_text(json.dumps(fields))  # last: it says that the rest is there


class Side(Protocol):
    """One way to run the model, one text at a time."""

    def tokens(self, prompt: list[int], count: int) -> Iterator[int]:
        """The ``count`` likeliest tokens that follow, one by one."""
        ...

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        """Logits [vocabulary] of the token after ``prompt``, all of which goes into a cache."""
        ...


class Ours:
    def __init__(self, directory: Path) -> None:
        self.module = gptrs.load(directory).module

    def tokens(self, prompt: list[int], count: int) -> Iterator[int]:
        options = GenerationOptions(max_tokens=count)
        for (token,) in generate_tokens(self.module, [prompt], options, eos=None):
            assert token is not None
            yield token

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        cache = self.module.init_cache(np.zeros(1, np.int32), len(prompt))
        logits, _ = self.module(np.array([prompt]), cache, logits="last")
        return np.asarray(logits)[0, 0]


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
    """Eager torch with nothing that the model does not need; keys and values stay in place."""

    def __init__(self, directory: Path, capacity: int = CONTEXT) -> None:
        stored = load_file(directory / "model.safetensors")
        arrays = {
            name.removeprefix("transformer."): torch.from_numpy(array)
            for name, array in stored.items()
        }

        def pairs(name: str) -> list[Pair]:
            weights = [arrays[f"h.{i}.{name}.weight"] for i in range(LAYERS)]
            biases = [arrays[f"h.{i}.{name}.bias"] for i in range(LAYERS)]
            weights = best_order(weights) if weights[0].ndim == 2 else weights
            return list(zip(weights, biases, strict=True))

        names = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
        self.layers = [Layer(*parts) for parts in zip(*map(pairs, names), strict=True)]
        self.norm = arrays["ln_f.weight"], arrays["ln_f.bias"]
        self.wte, self.wpe = arrays["wte.weight"], arrays["wpe.weight"]
        (self.head,) = best_order([self.wte.T])
        self.keys, self.values = torch.zeros(2, LAYERS, 1, HEADS, capacity, HEAD_SIZE)

    def forward(self, tokens: torch.Tensor, seen: int) -> torch.Tensor:
        """Logits [vocabulary] of the token after ``tokens``, before which came ``seen``."""
        count = len(tokens)
        end = seen + count

        def norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            return functional.layer_norm(x, (WIDTH,), weight, bias)

        def project(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            return torch.addmm(bias, x, weight)

        x = self.wte[tokens] + self.wpe[seen:end]  # [tokens, width]
        for layer, keys, values in zip(self.layers, self.keys, self.values, strict=True):
            y = project(norm(x, *layer.norm1), *layer.qkv)
            q, k, v = y.view(1, count, 3, HEADS, HEAD_SIZE).permute(2, 0, 3, 1, 4).unbind()
            keys[:, :, seen:end] = k
            values[:, :, seen:end] = v
            y = functional.scaled_dot_product_attention(
                q, keys[:, :, :end], values[:, :, :end], is_causal=count > 1
            )
            x = x + project(y.transpose(1, 2).reshape(count, WIDTH), *layer.out)
            y = project(norm(x, *layer.norm2), *layer.up)
            x = x + project(functional.gelu(y, approximate="tanh"), *layer.down)
        return torch.mm(norm(x[-1:], *self.norm), self.head)[0]

    @torch.inference_mode()
    def tokens(self, prompt: list[int], count: int) -> Iterator[int]:
        new, seen = torch.tensor(prompt), 0
        for _ in range(count):
            likeliest = self.forward(new, seen).argmax()
            seen += len(new)
            yield int(likeliest)
            new = likeliest.view(1)

    @torch.inference_mode()
    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        return self.forward(torch.tensor(prompt), 0).numpy()


class Transformers:
    """transformers' own model, with the cache that grows or the one of fixed size."""

    def __init__(self, directory: Path) -> None:
        self.model: Any = GPT2LMHeadModel.from_pretrained(directory, dtype=torch.float32).eval()
        self.static = False

    def fixed(self) -> Transformers:
        """The same model with the cache of fixed size."""
        made = copy(self)
        made.static = True
        return made

    def _forward(self, tokens: list[list[int]] | torch.Tensor, cache: Any) -> torch.Tensor:
        ids = torch.as_tensor(tokens)
        out = self.model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return out.logits[0, -1]

    def _cache(self, capacity: int) -> Any:
        if self.static:
            return StaticCache(config=self.model.config, max_cache_len=capacity)
        return DynamicCache(config=self.model.config)

    @torch.inference_mode()
    def tokens(self, prompt: list[int], count: int) -> Iterator[int]:
        cache = self._cache(len(prompt) + count)
        new: Any = [prompt]
        for _ in range(count):
            likeliest = self._forward(new, cache).argmax()
            yield int(likeliest)
            new = likeliest.view(1, 1)

    @torch.inference_mode()
    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        return self._forward([prompt], self._cache(len(prompt))).numpy()
