"""From starting Python to the first token: of the bundled model, and of GPT-2 124M beside others.

python -m benchmarks.gpt2_first SIDE DIRECTORY THREADS     prints the first token, and ends
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.gpt2_directory import Side

Measured = dict[str, Any]  # as gpt2_turns.Measurement
PROMPT = list(range(100, 116))
BUNDLED = ("-m", "gptrs", "generate", "Once upon a time", "--max-tokens", "1")


def seconds_to_output(arguments: tuple[str, ...], **settings: str) -> float:
    """Seconds from starting Python to the first byte that it prints."""
    env = os.environ | settings
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    start, command = time.perf_counter(), [sys.executable, *arguments]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stdout.read(1), "no text"
        seconds = time.perf_counter() - start
        process.stdout.read()
    return seconds


def cold_and_warm(arguments: tuple[str, ...], bytecode: str) -> tuple[float, float]:
    """Without kernels that were kept, and with those that the first run keeps."""
    with tempfile.TemporaryDirectory() as cache:
        run = partial(seconds_to_output, arguments, PYTHONPYCACHEPREFIX=bytecode)
        return run(GPTRS_CACHE_DIR=cache), run(GPTRS_CACHE_DIR=cache)


def measure_first_token(directory: Path, rounds: int, names: list[str]) -> list[Measured]:
    """Python's own compiled files and the weights are read before: the first round only warms."""
    threads = str(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count())

    def child(side: str) -> tuple[str, ...]:
        return ("-m", "benchmarks.gpt2_first", side, str(directory), threads)

    found: dict[str, dict[str, list[float]]] = {}

    def note(number: int, mode: str, side: str, seconds: float) -> None:
        if number > 0:
            found.setdefault(mode, {}).setdefault(side, []).append(seconds)

    with tempfile.TemporaryDirectory() as bytecode:
        for number in range(rounds + 1):
            for model, arguments in (("bundled", BUNDLED), ("124M", child("ours"))):
                cold, warm = cold_and_warm(arguments, bytecode)
                note(number, f"first token, {model}, cold", "ours", cold)
                note(number, f"first token, {model}, warm", "ours", warm)
            for name in names:
                taken = seconds_to_output(child(name), PYTHONPYCACHEPREFIX=bytecode)
                note(number, "first token, 124M, warm", name, taken)
    return [
        {"mode": mode, "threads": None, "unit": "s", "sides": sides}
        for mode, sides in found.items()
    ]


def main() -> None:
    name, directory, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if name == "ours":
        from benchmarks.gpt2_ours import Ours

        side: Side = Ours(directory)
    else:
        side = peers.quickest(name, directory, threads)
    print(next(side.steps([PROMPT], 1))[0], flush=True)


if __name__ == "__main__":
    main()
