"""Overhead besides kernels: a small call, tracing and passes, a prompt of a new length."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import gptrs
from benchmarks.gpt2_directory import SIZES
from gptrs import events, ptir
from gptrs.debug.lowering import ProgramLowered, ProgramTraced
from gptrs.kernels.compiler.loaded_object import KernelReady
from gptrs_bench.ours import OurText
from gptrs_bench.turns import Clock, Measurement, in_turn

CALLS, IDLE_CALLS, IDLE = 2000, 20, 0.02
KNOWN, NEW_LENGTHS = (1, 16, 64, 512), (5, 9, 17, 23, 45, 70, 100, 150, 200)  # tokens
REPEATS = 5
NEW_LENGTH_LIMIT = 30.0  # ms


def measure_call(peers: list[str], rounds: int, threads: int, clock: Clock) -> list[Measurement]:
    """µs of a small function, called back to back and after 20 ms of idling."""

    @ptir.jit
    def ours(x: Any, w: Any, b: Any) -> Any:
        return ptir.gelu(x @ w + b)

    def theirs(x: Any, w: Any, b: Any) -> Any:
        return torch.nn.functional.gelu(x @ w + b)

    random = np.random.default_rng(0)
    inputs = [random.standard_normal((1, 64), np.float32) for _ in range(CALLS)]
    w, b = random.standard_normal((64, 64), np.float32), random.standard_normal(64, np.float32)
    library: Any = torch
    tensors: list[Any] = [library.from_numpy(x) for x in inputs]
    weights = library.from_numpy(w), library.from_numpy(b)
    calls: dict[str, tuple[Any, list[Any], Any]] = {
        "ours": (ours, inputs, (w, b)),
        "torch": (theirs, tensors, weights),
    }
    if "compile" in peers:
        calls["compile"] = library.compile(theirs), tensors, weights
    if "jax" in peers:
        calls["jax"] = _jax_call(inputs, w, b)
    expected = theirs(tensors[0], *weights).numpy()
    for function, xs, rest in calls.values():
        np.testing.assert_allclose(np.asarray(function(xs[0], *rest)), expected, atol=1e-4)

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

    with torch.inference_mode():  # entered once: that takes as long as a quarter of a call
        busy = in_turn(turns(together), rounds)
        idle = in_turn(turns(alone), rounds * IDLE_CALLS, pause=IDLE)
    return [
        Measurement("call", threads, "µs", busy),
        Measurement("call, idle before", threads, "µs", idle),
    ]


def _jax_call(inputs: list[Any], w: Any, b: Any) -> tuple[Any, list[Any], Any]:
    """jax.jit of the same function; a call is over when its result is there."""
    jax: Any = import_module("jax")

    @jax.jit
    def jitted(x: Any, w: Any, b: Any) -> Any:
        return jax.nn.gelu(x @ w + b, approximate=False)

    def finished(x: Any, w: Any, b: Any) -> Any:
        return jitted(x, w, b).block_until_ready()

    return finished, inputs, (jax.numpy.asarray(w), jax.numpy.asarray(b))


def measure_passes(directory: Path, rounds: int, threads: int) -> list[Measurement]:
    """ms of tracing a step over a cache, and of all passes over its program."""
    module = gptrs.load(directory).module
    jitted: Any = type(module).__call__
    cache = module.init_cache(np.zeros(1, np.int32), 64)
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


def measure_new_length(directory: Path, threads: int, clock: Clock) -> list[Measurement]:
    """How much longer the first call with a prompt of a length takes than later ones, and the
    kernels that were made for it; each figure is of another length."""
    ours, ready = OurText(directory), list[KernelReady]()
    ids: list[int] = np.random.default_rng(1).integers(0, SIZES.vocabulary, 1024).tolist()

    def seconds(length: int) -> float:
        start = clock()
        ours.last_logits(ids[:length])
        return clock() - start

    def hear(event: object) -> None:
        if isinstance(event, KernelReady) and event.kernel:
            ready.append(event)

    for length in KNOWN:
        seconds(length)
    more: list[float] = []
    kernels: list[float] = []
    for length in NEW_LENGTHS:
        ready.clear()
        with events.listen(hear):
            first = seconds(length)
        kernels.append(len(ready))
        more.append(1e3 * (first - median(seconds(length) for _ in range(REPEATS))))
    middle = {"ours": [median(more)], "limit": [NEW_LENGTH_LIMIT]}
    return [
        Measurement("new length, each", threads, "ms", {"ours": more}),
        Measurement("new length", threads, "ms", middle),
        Measurement("new length, most", threads, "kernels", {"ours": [max(kernels)]}),
    ]
