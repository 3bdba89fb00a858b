"""GPT-2 by torch.compile: a loop of static shapes, its weights as arguments or frozen into it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch.nn import functional

from benchmarks.gpt2_directory import (
    EPSILON,
    EXACT,
    HEAD_SIZE,
    HEADS,
    LAYERS,
    WIDTH,
    Prompts,
    Side,
    read_weights,
)

SHAPES = 64  # of tokens and caches: at most so many are compiled, instead of run without


class StaticLoop(torch.nn.Module):
    """The model over a cache that is as long as it will be, so that no shape changes."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        library: Any = torch
        for name, array in read_weights(directory).items():
            made = torch.nn.Parameter(library.from_numpy(array), requires_grad=False)
            self.register_parameter(name.replace(".", "_"), made)

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = self.get_parameter(f"{name}_weight"), self.get_parameter(f"{name}_bias")
        return functional.layer_norm(x, (WIDTH,), weight, bias, EPSILON)

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = self.get_parameter(f"{name}_weight"), self.get_parameter(f"{name}_bias")
        return torch.addmm(bias, x, weight)

    def forward(
        self, tokens: torch.Tensor, seen: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Logits [rows, vocabulary] after ``tokens`` [rows, count], of which ``seen`` int64 [1]
        come before, in ``keys`` and ``values`` [layers, rows, heads, capacity, head size]."""
        rows, count = tokens.shape
        places = seen + torch.arange(count)
        mask = torch.arange(keys.shape[3]) <= places[:, None]
        wte = self.get_parameter("wte_weight")
        x = (wte[tokens] + self.get_parameter("wpe_weight")[places]).view(rows * count, WIDTH)
        for i in range(LAYERS):
            block = f"h_{i}"
            y = self._linear(self._norm(x, f"{block}_ln_1"), f"{block}_attn_c_attn")
            q, k, v = y.view(rows, count, 3, HEADS, HEAD_SIZE).permute(2, 0, 3, 1, 4).unbind()
            keys[i].index_copy_(2, places, k)
            values[i].index_copy_(2, places, v)
            y = functional.scaled_dot_product_attention(q, keys[i], values[i], attn_mask=mask)
            y = y.transpose(1, 2).reshape(rows * count, WIDTH)
            x = x + self._linear(y, f"{block}_attn_c_proj")
            y = self._linear(self._norm(x, f"{block}_ln_2"), f"{block}_mlp_c_fc")
            x = x + self._linear(functional.gelu(y, approximate="tanh"), f"{block}_mlp_c_proj")
        last = self._norm(x.view(rows, count, WIDTH)[:, -1], "ln_f")
        return torch.mm(last, wte.T)


class Compiled:
    """The loop, compiled for each shape of tokens and cache when that is first seen."""

    tolerance: float = EXACT

    def __init__(self, name: str, model: StaticLoop, options: dict[str, Any]) -> None:
        library: Any = torch
        self.name, self.seen_shapes = name, set[tuple[int, ...]]()
        self.run: Any = library.compile(model, dynamic=False, options=options)

    def _cache(self, rows: int, capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
        shape = LAYERS, rows, HEADS, capacity, HEAD_SIZE
        return torch.zeros(shape), torch.zeros(shape)

    def _forward(
        self, tokens: torch.Tensor, seen: int, cache: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        start, shape = time.perf_counter(), (*tokens.shape, cache[0].shape[3])
        logits: torch.Tensor = self.run(tokens, torch.tensor([seen]), *cache)
        if shape not in self.seen_shapes:
            self.seen_shapes.add(shape)
            seconds = time.perf_counter() - start
            print(f"{self.name}: {seconds:.1f} s to compile for {shape}", file=sys.stderr)
        return logits

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        cache, seen = self._cache(len(prompts), len(prompts[0]) + count), 0
        new = torch.tensor(prompts)
        for _ in range(count):
            with torch.no_grad():  # frozen weights need it; it must not leak to who takes tokens
                likeliest = self._forward(new, seen, cache).argmax(-1, keepdim=True)
            seen += new.shape[1]
            yield [int(token) for token in likeliest[:, 0]]
            new = likeliest

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        with torch.no_grad():
            found = self._forward(torch.tensor([prompt]), 0, self._cache(1, len(prompt)))
        return found[0].numpy()


def sides(directory: Path, threads: int) -> dict[str, Side]:
    torch.set_num_threads(threads)
    config: Any = import_module("torch._dynamo.config")
    config.recompile_limit, config.fail_on_recompile_limit_hit = SHAPES, True
    model = StaticLoop(directory)
    ways: dict[str, dict[str, Any]] = {"compile": {}, "compile frozen": {"freezing": True}}
    return {name: Compiled(name, model, options) for name, options in ways.items()}
