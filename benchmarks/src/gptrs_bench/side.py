"""One side of a comparison, in a process of its own.

    python -m gptrs_bench.side SIDE TASK PLACE THREADS            answers requests
    python -m gptrs_bench.side SIDE TASK PLACE THREADS --once A B     prints a choice, and memory

A side is ``ours``, with anything that gptrs loads as PLACE, or a peer, with what
`gptrs_bench.export` writes. Either may have several ways to run the model. One thread is measured
in CPU time, which other processes disturb less, several in wall-clock time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from gptrs_bench import gpt2, images
from gptrs_bench.memory import peak_memory
from gptrs_bench.peers import DECODERS, GPT2, IMAGES, Peers
from gptrs_bench.text_side import decode_rate, prefill_ms
from gptrs_bench.turns import clock_of
from gptrs_bench.worker import serve

TEXT, DECODER, PICTURES = "text", "decoder", "images"
_PEERS: dict[str, Peers[Any]] = {TEXT: GPT2, DECODER: DECODERS, PICTURES: IMAGES}
ONCE = "--once"
PROMPT = 16  # tokens before those that are generated
CALLS, SECONDS = 3, 0.25  # a turn of images has at least so many calls, and takes so long

Answers = dict[str, Callable[..., Any]]


def random_tokens(count: int, vocabulary: int) -> list[int]:
    """The beginning of a text; longer ones begin alike."""
    return np.random.default_rng(1).integers(0, vocabulary, count).tolist()


def _ours(task: str, place: str) -> Any:
    from gptrs_bench.ours import OurImages, OurText  # a peer's process loads no model of ours

    return OurImages(place) if task == PICTURES else OurText(place)


def _ways(side: str, task: str, place: str, threads: int) -> dict[str, Any]:
    """The ways of a side by name."""
    if side == "ours":
        return {side: _ours(task, place)}
    return _PEERS[task].sides(side, Path(place), threads)


class TextWays:
    """The ways of a side to run a language model."""

    def __init__(self, ways: dict[str, gpt2.Side], threads: int) -> None:
        self.ways, self.clock = ways, clock_of(threads)

    def names(self) -> dict[str, float]:
        """The ways, with how far their logits may lie from those of f32."""
        return {name: way.tolerance for name, way in self.ways.items()}

    def logits(self, name: str, prompt: list[int]) -> list[list[float]]:
        """Logits [1, vocabulary] of the token after ``prompt``."""
        return [self.ways[name].last_logits(prompt).tolist()]

    def tokens(self, name: str, prompt: list[int], count: int) -> list[int]:
        """The ``count`` likeliest tokens after ``prompt``."""
        return [token for (token,) in self.ways[name].steps([prompt], count)]

    def decode(self, name: str, prompt: list[int], count: int) -> float:
        """Tokens/s of ``count`` tokens after the first, which is the prompt's."""
        return decode_rate(self.ways[name], [prompt], count + 1, self.clock)

    def prefill(self, name: str, prompt: list[int]) -> float:
        """ms to the logits of the token after ``prompt``."""
        return prefill_ms(self.ways[name], prompt, self.clock)

    def answers(self) -> Answers:
        asked = (self.names, self.logits, self.tokens, self.decode, self.prefill)
        return {function.__name__: function for function in asked}


class ImageWays:
    """The ways of a side to run an image classifier, and the images that each has got."""

    def __init__(self, ways: dict[str, images.Side], threads: int) -> None:
        self.ways, self.clock = ways, clock_of(threads)
        self.prepared: dict[tuple[str, int], Any] = {}

    def names(self) -> dict[str, float]:
        """The ways, with how far their logits may lie from those of f32."""
        return dict.fromkeys(self.ways, images.EXACT)

    def logits(self, name: str, count: int, size: int, channels: int) -> list[list[float]]:
        """Logits [count, classes] of images that are then ready to be timed."""
        way, given = self.ways[name], images.random_images(count, size, channels)
        self.prepared[name, count] = prepared = way.prepare(given)
        return way.logits(prepared).tolist()

    def latency(self, name: str, count: int) -> float:
        """ms of a call, the median of a turn's."""
        logits, prepared = self.ways[name].logits, self.prepared[name, count]
        taken: list[float] = []
        begin = time.perf_counter()
        while len(taken) < CALLS or time.perf_counter() - begin < SECONDS:
            start = self.clock()
            logits(prepared)
            taken.append(self.clock() - start)
        return 1e3 * median(taken)

    def answers(self) -> Answers:
        return {function.__name__: function for function in (self.names, self.logits, self.latency)}


def once(side: str, task: str, place: str, threads: int, sizes: list[int]) -> None:
    """Print the likeliest token after a text, or the class of an image, by the way that is ready
    soonest; on Linux, after some more, the most memory so far, in MB.

    ``sizes`` are the tokens and the vocabulary of the text, or the size and the channels of the
    image.
    """
    quickest = _PEERS[task].quickest
    way: Any = _ours(task, place) if side == "ours" else quickest(side, Path(place), threads)
    if task != PICTURES:
        prompt = random_tokens(*sizes)
        print(next(way.steps([prompt], 1))[0], flush=True)
    else:
        prepared = way.prepare(images.random_images(1, *sizes))
        print(way.logits(prepared).argmax(), flush=True)
        for _ in range(CALLS):
            way.logits(prepared)
    if sys.platform == "linux":
        print(peak_memory())


def main() -> None:
    side, task, place, count, *rest = sys.argv[1:]
    threads = int(count)
    if rest:
        once(side, task, place, threads, [int(size) for size in rest[1:]])
        return

    def begin() -> Answers:
        ways = _ways(side, task, place, threads)
        return (ImageWays if task == PICTURES else TextWays)(ways, threads).answers()

    serve(begin)


if __name__ == "__main__":
    main()
