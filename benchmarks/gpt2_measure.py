"""Worker process of `benchmarks.gpt2`: one mode at one number of threads.

    python -m benchmarks.gpt2_measure MODE DIRECTORY ROUNDS [PEER ...]

Threads are ``GPTRS_NUM_THREADS`` on all sides. One thread is measured in CPU time, which other
processes disturb less, several in wall-clock time. Prints the measurements as JSON, with a last one
of the seconds that sides took to compile, where some do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.gpt2_directory import SIZES, write_directory
from gptrs import settings
from gptrs_bench.gpt2 import EXACT, Side
from gptrs_bench.ours import OurText
from gptrs_bench.peers import GPT2, PeerError
from gptrs_bench.text_side import Apart, decode_rate, prefill_ms
from gptrs_bench.turns import Measurement, clock_of, in_turn

PROMPT, NEW, LONG = 16, 64, 512  # tokens
SWEEP = (1, 7, 16, 33, 64, 128, 512, 1000)
BATCH = 8
ROUNDING = 0.5
"""How far logits of weights rounded to f16 or bf16 may lie from those of the f32 ones."""

IDS: list[int] = np.random.default_rng(1).integers(0, SIZES.vocabulary, SWEEP[-1]).tolist()


class Bench:
    """One process: where the model is, whom to measure beside, and how."""

    def __init__(self, directory: Path, rounds: int, names: list[str]) -> None:
        self.directory, self.rounds, self.names = directory, rounds, names
        self.threads = settings.num_threads()
        self.clock, self.apart = clock_of(self.threads), dict[str, Apart]()

    def sides(self, *, decodes: bool = False, prefills: bool = False) -> dict[str, Side]:
        """Ours and those of the peers, which agree with ours.

        Those apart are compiled for every length, and compared in what is timed alone.
        """
        made: dict[str, Side] = {"ours": OurText(self.directory)}
        for name in self.names:
            try:
                made |= GPT2.sides(name, self.directory, self.threads)
            except PeerError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
        self.apart |= {name: side for name, side in made.items() if isinstance(side, Apart)}
        known = {name: side for name, side in made.items() if name not in self.apart}
        check_logits(made if prefills else known)
        check_tokens(made if decodes else known)
        return made

    def measurement(
        self, mode: str, unit: str, sides: dict[str, Side], run: Callable[[Side], float]
    ) -> Measurement:
        turns = {name: lambda side=side: run(side) for name, side in sides.items()}
        return Measurement(mode, self.threads, unit, in_turn(turns, self.rounds))

    def decode(self, side: Side, rows: int = 1) -> float:
        """Tokens/s after the first of each row, which is the prompt's."""
        return decode_rate(side, prompts(rows), NEW + 1, self.clock)

    def prefill(self, side: Side, length: int = LONG) -> float:
        """ms to the logits of the last token."""
        return prefill_ms(side, IDS[:length], self.clock)

    def compiling(self, mode: str) -> list[Measurement]:
        """Seconds that sides in processes of their own have taken to compile so far."""
        taken = {name: [side.seconds_compiling()] for name, side in self.apart.items()}
        return [Measurement(f"{mode}, compiling", self.threads, "s", taken)] if taken else []


def prompts(rows: int) -> list[list[int]]:
    """As many texts of `PROMPT` tokens."""
    return [IDS[PROMPT * row : PROMPT * (row + 1)] for row in range(rows)]


def check_logits(sides: dict[str, Side], length: int = LONG) -> None:
    """All sides give the logits of the first one, each as closely as it says."""
    first, *others = sides.items()
    logits = first[1].last_logits(IDS[:length])
    for name, side in others:
        found = side.last_logits(IDS[:length])
        np.testing.assert_allclose(found, logits, rtol=0, atol=side.tolerance, err_msg=name)


def check_tokens(sides: dict[str, Side], rows: int = 1, count: int = NEW + 1) -> None:
    """All f32 sides give the tokens of the first one: as many as are timed, so that a side which
    is compiled for a length of the cache has been."""
    first, *others = sides.items()
    tokens = list(first[1].steps(prompts(rows), count))
    for name, side in others:
        if side.tolerance <= EXACT:
            assert list(side.steps(prompts(rows), count)) == tokens, f"{name} gives other tokens"


def measure_batch(bench: Bench) -> list[Measurement]:
    """Decoding eight texts at once, and how much faster that is than one."""
    sides = bench.sides(decodes=True)
    check_tokens(sides, BATCH, count=PROMPT)
    turns: dict[str, Callable[[], float]] = {}
    for name, side in sides.items():
        for rows in (1, BATCH):
            turns[f"{name} {rows}"] = lambda side=side, rows=rows: bench.decode(side, rows)
    found = in_turn(turns, bench.rounds)
    together = {name: found[f"{name} {BATCH}"] for name in sides}
    gains = {
        name: [many / one for many, one in zip(together[name], found[f"{name} 1"], strict=True)]
        for name in sides
    }
    return [
        Measurement(f"decode, {BATCH} at once", bench.threads, "tokens/s", together),
        Measurement(f"decode, {BATCH} at once against 1", bench.threads, "×", gains),
    ]


def check_narrow(side: Side, directory: Path, full: Side) -> None:
    """A side with narrow weights gives the tokens and logits of torch with these, widened to f32,
    and logits not far from those of the f32 weights."""
    from gptrs_bench.peers.torch_gpt2 import TorchLoop  # not for those who ask for other modes

    alike: dict[str, Side] = {"torch": TorchLoop(directory), directory.name: side}
    check_logits(alike)
    check_tokens(alike)
    rounded, logits = side.last_logits(IDS[:PROMPT]), full.last_logits(IDS[:PROMPT])
    np.testing.assert_allclose(rounded, logits, rtol=0, atol=ROUNDING)


def measure_weights(bench: Bench) -> list[Measurement]:
    """Decoding with the weights stored in f16 and in bf16, beside f32 and llama.cpp's f16."""
    full = OurText(bench.directory)
    sides: dict[str, Side] = {"ours f32": full}
    for dtype in ("f16", "bf16"):
        directory = write_directory(bench.directory, dtype)
        sides[f"ours {dtype}"] = OurText(directory)
        check_narrow(sides[f"ours {dtype}"], directory, full)
    if "llama_cpp" in bench.names:
        others = GPT2.sides("llama_cpp", bench.directory, bench.threads)
        check_logits({"ours": full, **others})
        sides["llama.cpp F16"] = others["llama.cpp F16"]
    turns = {name: lambda side=side: bench.decode(side) for name, side in sides.items()}
    found = in_turn(turns, bench.rounds)
    measured: list[Measurement] = []
    for dtype in ("f16", "bf16"):
        beside = {name: found[name] for name in found if name in ("ours f32", "llama.cpp F16")}
        figures = {"ours": found[f"ours {dtype}"], **beside}
        measured.append(Measurement(f"decode, {dtype} weights", bench.threads, "tokens/s", figures))
    return measured


def measure_sweep(bench: Bench) -> list[Measurement]:
    """Prompts of many lengths."""
    sides, measured = bench.sides(prefills=True), list[Measurement]()
    for length in SWEEP:
        check_logits(sides, length)
        run: Callable[[Side], float] = lambda side, length=length: bench.prefill(side, length)
        measured.append(bench.measurement(f"prefill {length}", "ms", sides, run))
    return measured


def measure(mode: str, bench: Bench) -> list[Measurement]:
    """What the modes share is above; the others' modules import torch, and come when asked for."""
    given = bench.directory, bench.rounds, bench.threads
    if mode == "decode":
        return [bench.measurement(mode, "tokens/s", bench.sides(decodes=True), bench.decode)]
    if mode == "prefill":
        sides = bench.sides(prefills=True)
        return [bench.measurement(f"prefill {LONG}", "ms", sides, bench.prefill)]
    if mode in ("batch", "weights", "sweep"):
        modes = {"batch": measure_batch, "weights": measure_weights, "sweep": measure_sweep}
        return modes[mode](bench)
    if mode == "bandwidth":
        from benchmarks.gpt2_limits import measure_limits

        return measure_limits(*given, bench.clock, bench.decode, bench.prefill, LONG)
    from benchmarks import gpt2_overhead as overhead

    if mode == "call":
        return overhead.measure_call(bench.names, bench.rounds, bench.threads, bench.clock)
    if mode == "passes":
        return overhead.measure_passes(*given)
    return overhead.measure_new_length(bench.directory, bench.threads, bench.clock)


def main() -> None:
    mode, directory, rounds, *names = sys.argv[1:]
    bench = Bench(Path(directory), int(rounds), names)
    found = measure(mode, bench)
    found += bench.compiling(mode)
    print(json.dumps([asdict(measurement) for measurement in found]))


if __name__ == "__main__":
    main()
