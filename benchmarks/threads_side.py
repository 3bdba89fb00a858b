"""Worker process of `benchmarks.threads`: one side; each request has a number of threads.

    python -m benchmarks.threads_side SIDE DIRECTORY     answers requests

A side is ``ours`` or ``torch``. All is wall-clock time: threads that wait count too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from threading import Barrier
from typing import Any, Protocol

from gptrs_bench.gpt2 import Side
from gptrs_bench.text_side import decode_rate, prefill_ms
from gptrs_bench.worker import serve

CALLS = 5  # of a prompt: one that is not counted, and those of a turn's median
PATIENCE = 60.0  # seconds in which the Python threads that go together must have had their prompts


class Threaded(Protocol):
    """A library that runs the model on as many threads as it is told."""

    def side(self, threads: int, number: int = 0) -> Side:
        """The model, of which there may be several, once ``threads`` threads are set."""
        ...


class Ours:
    """Models of ours, loaded when first asked for."""

    def __init__(self, directory: Path) -> None:
        from gptrs_bench.ours import OurText as Model  # which imports gptrs

        self._load, self._models = partial(Model, directory), list[Any]()

    def side(self, threads: int, number: int = 0) -> Side:
        os.environ["GPTRS_NUM_THREADS"] = str(threads)  # for all Python threads
        while len(self._models) <= number:
            self._models.append(self._load())
        return self._models[number]


class Torch:
    """Eager torch; for each number of threads weights are laid out as is faster with it."""

    def __init__(self, directory: Path) -> None:
        self._torch: Any = import_module("torch")
        self._load: Any = partial(
            import_module("gptrs_bench.peers.torch_gpt2").TorchLoop, directory
        )
        self._models: dict[tuple[int, int], Any] = {}

    def side(self, threads: int, number: int = 0) -> Side:
        self._torch.set_num_threads(threads)
        if (threads, number) not in self._models:
            self._models[threads, number] = self._load()
        return self._models[threads, number]


def together(
    library: Threaded, threads: int, models: int, prompts: list[list[int]], count: int
) -> tuple[float, list[list[int]]]:
    """Tokens/s of all Python threads, after the first token of each, and the tokens of each.

    Each prompt is continued by a Python thread, of which each asks for ``threads`` threads; they
    have a model each, or one in all.
    """
    started: list[float] = []
    barrier = Barrier(len(prompts), action=lambda: started.append(time.perf_counter()))
    sides = [library.side(threads, number % models) for number in range(len(prompts))]

    def tokens(side: Side, prompt: list[int]) -> list[int]:
        steps = side.steps([prompt], count)
        found = next(steps)
        barrier.wait(PATIENCE)
        return found + [token for step in steps for token in step]

    with ThreadPoolExecutor(len(prompts)) as pool:
        jobs = [pool.submit(tokens, *given) for given in zip(sides, prompts, strict=True)]
        found = [job.result() for job in jobs]
    seconds = time.perf_counter() - started[0]
    return sum(len(row) - 1 for row in found) / seconds, found


def answers(library: Threaded) -> dict[str, Callable[..., Any]]:
    """What the process serves."""

    def tokens(threads: int, prompt: list[int], count: int) -> list[int]:
        return [token for (token,) in library.side(threads).steps([prompt], count)]

    def logits(threads: int, prompt: list[int]) -> list[float]:
        return library.side(threads).last_logits(prompt).tolist()

    def decode(threads: int, prompt: list[int], count: int) -> float:
        """Tokens/s after the first."""
        return decode_rate(library.side(threads), [prompt], count, time.perf_counter)

    def prefill(threads: int, prompt: list[int]) -> float:
        """ms to the logits of the last token: the median of a turn's calls."""
        side = library.side(threads)
        return median([prefill_ms(side, prompt, time.perf_counter) for _ in range(CALLS)][1:])

    return {
        "tokens": tokens,
        "logits": logits,
        "decode": decode,
        "prefill": prefill,
        "together": partial(together, library),
    }


def main() -> None:
    name, directory = sys.argv[1], Path(sys.argv[2])
    made: dict[str, type[Ours] | type[Torch]] = {"ours": Ours, "torch": Torch}
    serve(lambda: answers(made[name](directory)))


if __name__ == "__main__":
    main()
