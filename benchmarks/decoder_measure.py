"""Worker process of `benchmarks.decoder`: one model at one number of threads.

    python -m benchmarks.decoder_measure DIRECTORY DTYPE ROUNDS PROMPT [PEER ...]

Threads are ``GPTRS_NUM_THREADS`` on all sides. One thread is measured in CPU time, several in
wall-clock time. Prints the measurements as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.decoder_directory import DTYPES, DType, prefill_flops, step_bytes
from gptrs import settings
from gptrs.debug.measure_limits import Peak, Reading, streamed
from gptrs.formats.json_files import read_json
from gptrs_bench.gpt2 import EXACT, USUAL, Side
from gptrs_bench.ours import OurText
from gptrs_bench.peers import DECODERS, PeerError
from gptrs_bench.side import PROMPT, random_tokens
from gptrs_bench.text_side import Apart, decode_rate, prefill_ms
from gptrs_bench.turns import Measurement, clock_of, in_turn

NEW = 64  # tokens
READ_BYTES = 2**28  # about as many as a decode step of the smallest model reads
FAR: dict[DType, float] = {"bf16": 0.25, "f16": 0.05}
"""The root mean square of differences of logits from ours, over that of the logits: some peers
round activations to the dtype of the weights, in each of 30 layers."""


def check(sides: dict[str, Side], prompt: list[int], dtype: DType) -> None:
    """All sides give the logits of ours, and those that compute as exactly the same tokens."""
    ours = sides["ours"].last_logits(prompt)
    size = _size(ours)
    tokens = list(sides["ours"].steps([prompt[:PROMPT]], NEW + 1))
    for name, side in sides.items():
        found = side.last_logits(prompt)
        if dtype in FAR:
            apart = _size(found - ours) / size
            assert apart < FAR[dtype], f"{name} gives other logits, {apart:.2f} of ours apart"
            continue
        most = side.tolerance * size / USUAL
        np.testing.assert_allclose(found, ours, rtol=0, atol=most, err_msg=name)
        if side.tolerance == EXACT:
            same = list(side.steps([prompt[:PROMPT]], NEW + 1)) == tokens
            assert same, f"{name} gives other tokens"


def _size(logits: NDArray[Any]) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(logits, dtype=np.float64))))


def started(directory: Path, threads: int, names: list[str]) -> dict[str, Side]:
    """Ours and the peers that can run."""
    made: dict[str, Side] = {"ours": OurText(directory)}
    for name in names:
        try:
            made |= DECODERS.sides(name, directory, threads)
        except PeerError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return made


def _shares(mine: list[float], most: list[float]) -> dict[str, list[float]]:
    return {"ours": [100 * some / limit for some, limit in zip(mine, most, strict=True)]}


def measure(
    directory: Path, dtype: DType, rounds: int, length: int, names: list[str]
) -> list[Measurement]:
    """Prefill and decode of all sides, and the machine's limits, interleaved."""
    threads = settings.num_threads()
    clock = clock_of(threads)
    vocabulary: int = read_json(directory / "config.json")["vocab_size"]
    prompt = random_tokens(length, vocabulary)
    sides = started(directory, threads, names)
    check(sides, prompt, dtype)
    reading, peak = Reading(threads, streamed(READ_BYTES)), Peak(threads)
    turns: dict[str, Callable[[], float]] = {
        "read": lambda: median(reading.rate(clock) for _ in range(5)),
        "peak": lambda: median(peak.rate(clock) for _ in range(3)),
    }
    for name, side in sides.items():
        turns[f"decode {name}"] = partial(decode_rate, side, [prompt[:PROMPT]], NEW + 1, clock)
        turns[f"prefill {name}"] = partial(prefill_ms, side, prompt, clock)
    found = in_turn(turns, rounds)
    decode = {name: found[f"decode {name}"] for name in sides}
    prefill = {name: found[f"prefill {name}"] for name in sides}
    held = [1e-9 * step_bytes(directory, dtype) * rate for rate in decode["ours"]]
    done = [1e-6 * prefill_flops(directory, length) / ms for ms in prefill["ours"]]
    made = [
        Measurement(f"decode {NEW} after {PROMPT}", threads, "tokens/s", decode),
        Measurement("decode, weights read", threads, "GB/s", {"ours": held, "read": found["read"]}),
        Measurement("decode, of bandwidth", threads, "%", _shares(held, found["read"])),
        Measurement(f"prefill {length}", threads, "ms", prefill),
        Measurement(f"prefill {length}, of peak", threads, "%", _shares(done, found["peak"])),
    ]
    apart = {name: [s.seconds_compiling()] for name, s in sides.items() if isinstance(s, Apart)}
    if apart:
        made.append(Measurement("compiling", threads, "s", apart))
    return made


def main() -> None:
    directory, dtype, rounds, length, *names = sys.argv[1:]
    assert dtype in DTYPES
    found = measure(Path(directory), dtype, int(rounds), int(length), names)
    print(json.dumps([asdict(measurement) for measurement in found]))


if __name__ == "__main__":
    main()
