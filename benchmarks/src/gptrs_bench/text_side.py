"""Timing of a language model, and a proxy for one in another process."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.gpt2 import Prompts, Side
from gptrs_bench.turns import Clock, clock_of
from gptrs_bench.worker import Worker


def decode_rate(side: Side, prompts: Prompts, count: int, clock: Clock) -> float:
    """Tokens/s after the first of each row, which is the prompt's."""
    if isinstance(side, Apart):
        return side.worker.ask("decode_rate", prompts, count)
    steps = side.steps(prompts, count)
    next(steps)
    start = clock()
    found = sum(len(step) for step in steps)
    return found / (clock() - start)


def prefill_ms(side: Side, prompt: list[int], clock: Clock) -> float:
    """ms to the logits of the last token."""
    if isinstance(side, Apart):
        return side.worker.ask("prefill_ms", prompt)
    start = clock()
    side.last_logits(prompt)
    return 1e3 * (clock() - start)


class Apart:
    """A side whose process serves `answers`: it measures itself, by its own clock.

    The process ends with this one.
    """

    def __init__(self, worker: Worker, tolerance: float) -> None:
        self.worker, self.tolerance = worker, tolerance
        atexit.register(worker.close)

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        yield from self.worker.ask("steps", prompts, count)

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        return np.array(self.worker.ask("last_logits", prompt), np.float32)

    def seconds_compiling(self) -> float:
        """What the first calls of all shapes so far took."""
        return self.worker.ask("seconds_compiling")


def answers(side: Side, threads: int) -> dict[str, Callable[..., Any]]:
    """What the process of an `Apart` serves: ``side`` itself, and how long it takes."""
    clock = clock_of(threads)

    def steps(prompts: Prompts, count: int) -> list[list[int]]:
        return list(side.steps(prompts, count))

    def last_logits(prompt: list[int]) -> list[float]:
        return side.last_logits(prompt).tolist()

    return {
        "steps": steps,
        "last_logits": last_logits,
        "decode_rate": partial(decode_rate, side, clock=clock),
        "prefill_ms": partial(prefill_ms, side, clock=clock),
    }
