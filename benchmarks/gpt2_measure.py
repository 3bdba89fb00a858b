"""What `benchmarks.gpt2` runs in a process of its own: one mode at one number of threads.

    python -m benchmarks.gpt2_measure {decode,prefill,call,passes} DIRECTORY ROUNDS

Threads are ``GPTRS_NUM_THREADS`` on both sides. One thread is measured in CPU time, which other
processes disturb less, several in wall-clock time. Prints the measurements as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gptrs
from benchmarks.gpt2_models import VOCABULARY, Ours, Side, TorchLoop, Transformers
from gptrs import events, ptir, settings
from gptrs.debug.lowering import ProgramLowered, ProgramTraced

PROMPT, NEW, LONG = 16, 64, 512  # tokens
CALLS, IDLE_CALLS, IDLE = 2000, 20, 0.02
PAUSE = 0.1  # seconds in which the threads of one side fall asleep before the other's turn


@dataclass(frozen=True)
class Measurement:
    """Figures of each side, one a round; the first side is ours."""

    mode: str
    threads: int
    unit: str
    sides: dict[str, list[float]]


def in_turn(
    sides: dict[str, Callable[[], float]], rounds: int, *, pause: float = PAUSE
) -> dict[str, list[float]]:
    """What the sides return, round by round; a first round is not counted."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, run in sides.items():
            time.sleep(pause)
            figure = run()
            if number > 0:
                found[name].append(figure)
    return found


def check_equal(sides: dict[str, Side], ids: list[int]) -> None:
    """All sides give the logits and the tokens of the first one."""
    first, *others = sides.values()
    logits, tokens = first.last_logits(ids), list(first.tokens(ids[:PROMPT], NEW))
    for other in others:
        np.testing.assert_allclose(other.last_logits(ids), logits, rtol=0, atol=1e-3)
        np.testing.assert_array_equal(list(other.tokens(ids[:PROMPT], NEW)), tokens)


def measure_model(
    mode: str, directory: Path, rounds: int, threads: int, clock: Callable[[], float]
) -> Measurement:
    """``decode``: tokens/s after the first token, which is the prompt's. ``prefill``: ms."""
    ids = np.random.default_rng(1).integers(0, VOCABULARY, LONG).tolist()
    growing = Transformers(directory)
    sides: dict[str, Side] = {
        "ours": Ours(directory),
        "torch loop": TorchLoop(directory),
        "transformers": growing,
        "transformers static": growing.fixed(),
    }
    check_equal(sides, ids)

    def decode(side: Side) -> float:
        tokens = side.tokens(ids[:PROMPT], NEW + 1)
        next(tokens)
        start = clock()
        count = sum(1 for _ in tokens)
        return count / (clock() - start)

    def prefill(side: Side) -> float:
        start = clock()
        side.last_logits(ids)
        return 1e3 * (clock() - start)

    run, unit = (decode, "tokens/s") if mode == "decode" else (prefill, "ms")
    turns = {name: lambda side=side: run(side) for name, side in sides.items()}
    return Measurement(mode, threads, unit, in_turn(turns, rounds))


def measure_call(rounds: int, threads: int, clock: Callable[[], float]) -> list[Measurement]:
    """µs of a small function, called back to back and after 20 ms of idling."""

    @ptir.jit
    def ours(x: Any, w: Any, b: Any) -> Any:
        return ptir.gelu(x @ w + b)

    def theirs(x: Any, w: Any, b: Any) -> Any:
        return torch.nn.functional.gelu(x @ w + b)

    random = np.random.default_rng(0)
    inputs = [random.standard_normal((1, 64), np.float32) for _ in range(CALLS)]
    w, b = random.standard_normal((64, 64), np.float32), random.standard_normal(64, np.float32)
    tensors, weights = list(map(torch.from_numpy, inputs)), list(map(torch.from_numpy, (w, b)))
    calls = {"ours": (ours, inputs, (w, b)), "torch": (theirs, tensors, weights)}
    expected = theirs(tensors[0], *weights).numpy()
    np.testing.assert_allclose(np.asarray(ours(inputs[0], w, b)), expected, atol=1e-4)

    def together(function: Any, xs: list[Any], rest: Any) -> float:
        start = clock()
        for x in xs:
            function(x, *rest)
        return 1e6 * (clock() - start) / len(xs)

    def alone(function: Any, xs: list[Any], rest: Any) -> float:
        start = time.perf_counter()
        function(xs[0], *rest)
        return 1e6 * (time.perf_counter() - start)

    def turns(run: Callable[..., float]) -> dict[str, Callable[[], float]]:
        return {name: lambda call=call: run(*call) for name, call in calls.items()}

    busy = in_turn(turns(together), rounds)
    idle = in_turn(turns(alone), rounds * IDLE_CALLS, pause=IDLE)
    return [
        Measurement("call", threads, "µs", busy),
        Measurement("call, idle before", threads, "µs", idle),
    ]


def measure_passes(directory: Path, rounds: int, threads: int) -> list[Measurement]:
    """ms of tracing a step over a cache, and of all passes over its program."""
    module = gptrs.load(directory).module
    jitted, cache = type(module).__call__, module.init_cache(np.zeros(1, np.int32), 64)
    traced: list[float] = []
    lowered: list[float] = []

    def hear(event: object) -> None:
        if isinstance(event, ProgramTraced):
            traced.append(1e3 * event.seconds)
        elif isinstance(event, ProgramLowered):
            lowered.append(1e3 * event.seconds)

    for _ in range(rounds + 1):
        jitted.clear_cache()
        with events.listen(hear):
            jitted.program(module, np.zeros((1, 3), np.int64), cache, logits="last")
    # The first time, definitions and types are worked out that are remembered then.
    modes = {"passes, first time": slice(0, 1), "passes, again": slice(1, None)}
    return [
        Measurement(
            mode,
            threads,
            "ms",
            {
                "ours": [sum(pair) for pair in zip(traced[part], lowered[part], strict=True)],
                "tracing alone": traced[part],
            },
        )
        for mode, part in modes.items()
    ]


def main() -> None:
    mode, directory, rounds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    threads = settings.num_threads()
    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    if mode == "call":
        with torch.inference_mode():  # entered once: that takes as long as a quarter of a call
            found = measure_call(rounds, threads, clock)
    elif mode == "passes":
        found = measure_passes(directory, rounds, threads)
    else:
        found = [measure_model(mode, directory, rounds, threads, clock)]
    print(json.dumps([asdict(measurement) for measurement in found]))


if __name__ == "__main__":
    main()
