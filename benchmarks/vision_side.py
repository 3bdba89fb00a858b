"""One side of `benchmarks.vision`, in a process of its own.

    python -m benchmarks.vision_side SIDE DIRECTORY THREADS            answers requests
    python -m benchmarks.vision_side SIDE DIRECTORY THREADS --once     prints a class, and memory

A side is ``ours`` or a peer, which may have several ways to run the model. One thread is measured
in CPU time, which other processes disturb less, several in wall-clock time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.memory import peak_memory
from benchmarks.peers import IMAGES
from benchmarks.processes import serve
from benchmarks.turns import Clock
from benchmarks.vision_directory import Side, images

CALLS, SECONDS = 3, 0.25  # a turn has at least so many calls, and takes so long


def quickest(side: str, directory: Path, threads: int) -> Side:
    """The way that is ready soonest."""
    if side == "ours":
        from benchmarks.vision_ours import Ours  # which imports gptrs

        return Ours(directory)
    return IMAGES.quickest(side, directory, threads)


class Ways:
    """The ways of a side, and the images that each has got."""

    def __init__(self, side: str, directory: Path, threads: int) -> None:
        if side == "ours":
            self.ways = {"ours": quickest(side, directory, threads)}
        else:
            self.ways = IMAGES.sides(side, directory, threads)
        self.clock: Clock = time.process_time if threads == 1 else time.perf_counter
        self.prepared: dict[tuple[str, int], Any] = {}

    def names(self) -> list[str]:
        return list(self.ways)

    def logits(self, name: str, batch: int) -> list[list[float]]:
        """Logits [batch, classes] of images that are then ready to be timed."""
        way = self.ways[name]
        self.prepared[name, batch] = prepared = way.prepare(images(batch))
        return way.logits(prepared).tolist()

    def time(self, name: str, batch: int) -> float:
        """ms of a call, the median of a turn's."""
        logits, prepared = self.ways[name].logits, self.prepared[name, batch]
        taken: list[float] = []
        begin = time.perf_counter()
        while len(taken) < CALLS or time.perf_counter() - begin < SECONDS:
            start = self.clock()
            logits(prepared)
            taken.append(self.clock() - start)
        return 1e3 * median(taken)


def once(side: str, directory: Path, threads: int) -> None:
    """Print the class of an image; after some more, the most memory so far, in MB."""
    way = quickest(side, directory, threads)
    prepared = way.prepare(images(1))
    print(way.logits(prepared).argmax(), flush=True)
    for _ in range(CALLS):
        way.logits(prepared)
    print(peak_memory())


def main() -> None:
    side, directory, threads, *rest = sys.argv[1:]
    given = side, Path(directory), int(threads)
    if rest:
        once(*given)
        return

    def begin() -> dict[str, Callable[..., Any]]:
        ways = Ways(*given)
        return {"names": ways.names, "logits": ways.logits, "time": ways.time}

    serve(begin)


if __name__ == "__main__":
    main()
