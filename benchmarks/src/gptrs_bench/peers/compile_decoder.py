"""Decoder language models of transformers by torch.compile, with a cache of fixed size.

    python -m gptrs_bench.peers.compile_decoder DIRECTORY THREADS     answers requests

It compiles each shape when that is first seen, in a process of its own, which disturbs nobody once
all is compiled.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gptrs_bench.gpt2 import Side
from gptrs_bench.peers.compiling import check_compiler
from gptrs_bench.peers.torch_gpt2 import Transformers
from gptrs_bench.text_side import Apart, answers
from gptrs_bench.worker import Worker, serve

library: Any = torch  # its types are partly unknown


class Compiled(Transformers):
    """The model behind torch.compile; ``seconds`` is what its first calls took."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, dtype="auto")
        self.static, self.seconds = True, 0.0
        self.model.forward = library.compile(self.model.forward, dynamic=False)
        self._capacity, self._seen = 0, set[tuple[int, int]]()

    def _cache(self, capacity: int) -> Any:
        self._capacity = capacity
        return super()._cache(capacity)

    def _forward(self, tokens: Any, cache: Any) -> torch.Tensor:
        start, shape = time.perf_counter(), (len(tokens[0]), self._capacity)
        found = super()._forward(tokens, cache)
        if shape not in self._seen:
            self._seen.add(shape)
            self.seconds += time.perf_counter() - start
        return found


def sides(directory: Path, threads: int) -> dict[str, Side]:
    """The way, in a process of its own."""
    check_compiler()
    return {"compile": Apart(Worker(__name__, str(directory), str(threads)), Compiled.tolerance)}


def main() -> None:
    directory, threads = Path(sys.argv[1]), int(sys.argv[2])

    def begin() -> dict[str, Callable[..., Any]]:
        torch.set_num_threads(threads)
        side = Compiled(directory)
        return answers(side, threads) | {"seconds_compiling": lambda: side.seconds}

    serve(begin)


if __name__ == "__main__":
    main()
