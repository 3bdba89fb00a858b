"""From starting Python to the first token: of the bundled model, and of GPT-2 124M beside others.

python -m benchmarks.gpt2_first SIDE DIRECTORY THREADS     prints the first token, and ends
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.gpt2_directory import Side
from benchmarks.peers import GPT2
from benchmarks.processes import cold_and_warm, cores, seconds_to_output
from benchmarks.turns import Measured

PROMPT = list(range(100, 116))
BUNDLED = ("-m", "gptrs", "generate", "Once upon a time", "--max-tokens", "1")


def measure_first_token(directory: Path, rounds: int, names: list[str]) -> list[Measured]:
    """Python's own compiled files and the weights are read before: the first round only warms."""

    def child(side: str) -> tuple[str, ...]:
        return ("-m", "benchmarks.gpt2_first", side, str(directory), str(cores()))

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
        side = GPT2.quickest(name, directory, threads)
    print(next(side.steps([PROMPT], 1))[0], flush=True)


if __name__ == "__main__":
    main()
