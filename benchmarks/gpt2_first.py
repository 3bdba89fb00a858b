"""Time from process start to the first token: the bundled model, and GPT-2 124M beside peers."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.gpt2_directory import SIZES
from gptrs_bench.processes import cold_and_warm, cores, seconds_to_output
from gptrs_bench.side import ONCE, PROMPT, TEXT
from gptrs_bench.turns import Measured

BUNDLED = ("-m", "gptrs", "generate", "Once upon a time", "--max-tokens", "1")


def measure_first_token(directory: Path, rounds: int, names: list[str]) -> list[Measured]:
    """Python's own compiled files and the weights are read before: the first round only warms."""

    def child(side: str) -> tuple[str, ...]:
        given = side, TEXT, str(directory), str(cores())
        return ("-m", "gptrs_bench.side", *given, ONCE, str(PROMPT), str(SIZES.vocabulary))

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
