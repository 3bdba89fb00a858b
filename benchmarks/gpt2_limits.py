"""Limits of the machine, measured beside the model: read bandwidth and multiply-adds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.gpt2_directory import prefill_flops, step_bytes
from gptrs import settings
from gptrs.debug.measure_limits import Peak, Reading, streamed
from gptrs.kernels.compiler import isa
from gptrs_bench.ours import OurText
from gptrs_bench.turns import Clock, Measurement, in_turn

READ_BYTES = 2**29  # about as many as a decode step reads


def measure_limits(
    directory: Path,
    rounds: int,
    threads: int,
    clock: Clock,
    decode: Callable[[Any], float],
    prefill: Callable[[Any], float],
    prompt: int,
) -> list[Measurement]:
    """Reading and decoding, multiply-adds and a prefill of ``prompt`` tokens, in turn."""
    ours, peak = OurText(directory), Peak(threads)
    reading = Reading(threads, streamed(READ_BYTES))
    reading.seconds(clock)
    turns: dict[str, Callable[[], float]] = {
        "read": lambda: median(reading.rate(clock) for _ in range(3)),
        "decode": lambda: decode(ours),
        "peak": lambda: median(peak.rate(clock) for _ in range(3)),
        "prefill": lambda: 1e-6 * prefill_flops(prompt) / prefill(ours),
    }
    found = in_turn(turns, rounds)

    def share(mine: list[float], limit: str) -> dict[str, list[float]]:
        return {"ours": [100 * some / most for some, most in zip(mine, found[limit], strict=True)]}

    is_compressed = settings.compressed_weights() and bool(isa.current().lookup)
    stored, held = (
        [1e-9 * step_bytes(compressed=compressed) * rate for rate in found["decode"]]
        for compressed in (False, is_compressed)
    )
    bandwidth = {"ours, as held": held, "ours, in f32": stored, "eight streams": found["read"]}
    flops = {"ours": found["prefill"], "FMA peak": found["peak"]}
    return [
        Measurement("decode, weights read", threads, "GB/s", bandwidth),
        Measurement("decode, of bandwidth, as held", threads, "%", share(held, "read")),
        Measurement("decode, of bandwidth, in f32", threads, "%", share(stored, "read")),
        Measurement(f"prefill {prompt}, work", threads, "GFLOP/s", flops),
        Measurement(f"prefill {prompt}, of peak", threads, "%", share(found["prefill"], "peak")),
    ]
