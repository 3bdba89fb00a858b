"""GPT-2 by torch.compile: static shapes, weights as arguments or frozen.

    python -m gptrs_bench.peers.compile_gpt2 WAY DIRECTORY THREADS     answers requests

Each way has a process of its own: what compiles there disturbs nobody once all is compiled, and
frozen weights are not kept beside others. Nothing compiled before is used, so that times to compile
are whole, unless TORCHINDUCTOR_CACHE_DIR is set.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch.nn import functional

from gptrs_bench.gpt2 import EXACT, Prompts, Side, head_matrix, read_sizes, read_weights
from gptrs_bench.peers.compiling import check_compiler
from gptrs_bench.peers.torch_activations import ACTIVATIONS
from gptrs_bench.peers.torch_gpt2 import best_order
from gptrs_bench.text_side import Apart, answers
from gptrs_bench.worker import Worker, serve

SHAPES = 64  # of tokens and caches: at most so many are compiled, instead of run without
WAYS: dict[str, dict[str, Any]] = {"compile": {}, "compile frozen": {"freezing": True}}
KEPT = "TORCHINDUCTOR_CACHE_DIR"  # read when something is first compiled

Cache = list[tuple[torch.Tensor, torch.Tensor]]  # keys and values of each layer

library: Any = torch  # its types are partly unknown


class StaticLoop(torch.nn.Module):
    """The model over a cache that is as long as it will be, so that no shape changes."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        weights: dict[str, torch.Tensor] = {
            name: library.from_numpy(array) for name, array in read_weights(directory).items()
        }
        self.sizes = read_sizes(directory)
        kinds = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
        for kind in kinds:  # those of all layers, so that times are of reading memory
            names = [f"h.{i}.{kind}.weight" for i in range(self.sizes.layers)]
            weights |= zip(names, best_order([weights[name] for name in names]), strict=True)
        (weights["head"],) = best_order([head_matrix(weights).T])
        for name, tensor in weights.items():
            made = torch.nn.Parameter(tensor, requires_grad=False)
            self.register_parameter(name.replace(".", "_"), made)

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = self.get_parameter(f"{name}_weight"), self.get_parameter(f"{name}_bias")
        return functional.layer_norm(x, weight.shape, weight, bias, self.sizes.epsilon)

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = self.get_parameter(f"{name}_weight"), self.get_parameter(f"{name}_bias")
        return torch.addmm(bias, x, weight)

    def forward(self, tokens: torch.Tensor, seen: torch.Tensor, cache: Cache) -> torch.Tensor:
        """Logits [rows, vocabulary] after ``tokens`` [rows, count]; ``seen`` int64 [1] came before
        them, in the keys and values of each layer [rows, heads, capacity, head size].

        Several tokens are a prompt, before which there is nothing.
        """
        (rows, count), sizes, width = tokens.shape, self.sizes, self.sizes.width
        split, activate = (rows, count, 3, sizes.heads, -1), ACTIVATIONS[sizes.activation]
        places = seen + torch.arange(count)
        attend = functional.scaled_dot_product_attention
        mask = torch.arange(cache[0][0].shape[2]) <= places[:, None]
        wte = self.get_parameter("wte_weight")
        x = (wte[tokens] + self.get_parameter("wpe_weight")[places]).view(rows * count, width)
        for i, (keys, values) in enumerate(cache):
            block, scale = f"h_{i}", sizes.scale(i)
            y = self._linear(self._norm(x, f"{block}_ln_1"), f"{block}_attn_c_attn")
            q, k, v = y.view(split).permute(2, 0, 3, 1, 4).unbind()
            keys.index_copy_(2, places, k)
            values.index_copy_(2, places, v)
            if count > 1:  # half the work of a mask
                y = attend(q, k, v, is_causal=True, scale=scale)
            else:
                y = attend(q, keys, values, attn_mask=mask, scale=scale)
            y = y.transpose(1, 2).reshape(rows * count, width)
            x = x + self._linear(y, f"{block}_attn_c_proj")
            y = self._linear(self._norm(x, f"{block}_ln_2"), f"{block}_mlp_c_fc")
            x = x + self._linear(activate(y), f"{block}_mlp_c_proj")
        last = self._norm(x.view(rows, count, width)[:, -1], "ln_f")
        return torch.mm(last, self.get_parameter("head"))


class Compiled:
    """The loop, compiled for each shape of tokens and cache when that is first seen."""

    tolerance: float = EXACT

    def __init__(self, name: str, model: StaticLoop, options: dict[str, Any]) -> None:
        self.name, self.seconds = name, dict[tuple[int, ...], float]()
        self.sizes = model.sizes
        self.run: Any = library.compile(model, dynamic=False, options=options)

    def _cache(self, rows: int, capacity: int) -> Cache:
        """A tensor for each layer: parts of one would be copied in each step."""
        shape = rows, self.sizes.heads, capacity, self.sizes.head_size
        return [(torch.zeros(shape), torch.zeros(shape)) for _ in range(self.sizes.layers)]

    def _forward(self, tokens: torch.Tensor, seen: int, cache: Cache) -> torch.Tensor:
        start, shape = time.perf_counter(), (*tokens.shape, cache[0][0].shape[2])
        logits: torch.Tensor = self.run(tokens, torch.tensor([seen]), cache)
        if shape not in self.seconds:
            self.seconds[shape] = seconds = time.perf_counter() - start
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
    """The ways, in processes of their own."""
    check_compiler()
    return {
        name: Apart(Worker(__name__, name, str(directory), str(threads)), Compiled.tolerance)
        for name in WAYS
    }


def main() -> None:
    name, directory, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])

    def begin() -> dict[str, Callable[..., Any]]:
        torch.set_num_threads(threads)
        config: Any = import_module("torch._dynamo.config")
        config.recompile_limit, config.fail_on_recompile_limit_hit = SHAPES, True
        side = Compiled(name, StaticLoop(directory), WAYS[name])
        return answers(side, threads) | {"seconds_compiling": lambda: sum(side.seconds.values())}

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as fresh:
        os.environ.setdefault(KEPT, fresh)
        serve(begin)


if __name__ == "__main__":
    main()
