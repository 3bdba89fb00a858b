"""Scaling over threads, and two models that generate concurrently.

    python -m benchmarks.threads [scaling together] [--model DIR] [--against torch]
                                 [--threads 1 2 4 8] [--cores N] [--rounds 7] [--json FILE]

- scaling: 64 tokens after a prompt of 16, and a prompt of 64, on each number of threads; in
  brackets how many times as good that is as one thread, the median of the rounds' ratios. Threads
  may be more than cores, which must cost little: as with others at work on the machine, or in a
  container that may use less than it sees. --cores 2 leaves the first two of more cores
- together: the 64 tokens by two Python threads at once, on one model and on two, each asking for 1
  and for 2 threads: tokens/s of both, in brackets how many times as many as one Python thread
  generates alone with as many threads

All turns of a part are interleaved in one run, in wall-clock time. --against torch measures eager
torch's scaling beside (torch.set_num_threads), in a process of its own; idle threads of it spin as
in `benchmarks.gpt2` (--omp-spin). It ends with an error unless ours gives the same bits of logits
and the same tokens on all numbers of threads, and the same tokens beside another Python thread as
alone; torch's logits may differ by 0.001. The model is GPT-2 124M with random weights, or another
GPT-2 in one file of weights.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.gpt2_directory import write_directory
from benchmarks.installed import installed
from benchmarks.report import write_json
from gptrs_bench.gpt2 import EXACT, read_sizes
from gptrs_bench.machine import machine
from gptrs_bench.peers import GPT2, packages
from gptrs_bench.processes import OMP_SPIN, cores, on_cores, thread_settings
from gptrs_bench.results import better
from gptrs_bench.turns import Measured, Measurement, in_turn
from gptrs_bench.worker import Worker

MODES = ("scaling", "together")
PROMPT, NEW, LONG = 16, 64, 64  # tokens
TOGETHER = (1, 2)  # threads that each of the Python threads asks for
WAYS = {"alone": (1, 1), "one model": (2, 1), "two models": (2, 2)}  # Python threads, models

Turns = dict[tuple[str, int], Callable[[], float]]  # by side or way, and threads


class Bench:
    """The processes of the sides, the prompts, and what is said meanwhile."""

    def __init__(
        self, workers: dict[str, Worker], options: argparse.Namespace, console: Console
    ) -> None:
        self.workers, self.rounds, self.console = workers, options.rounds, console
        self.threads: list[int] = options.threads
        vocabulary = read_sizes(options.model).vocabulary
        ids = np.random.default_rng(1).integers(0, vocabulary, PROMPT + LONG)
        self.long: list[int] = ids[:LONG].tolist()
        self.prompts: list[list[int]] = [ids[:PROMPT].tolist(), ids[-PROMPT:].tolist()]
        self.tokens: list[list[int]] = []  # that follow the prompts, on one thread

    def say(self, words: str) -> None:
        self.console.print(words, highlight=False)

    def check(self) -> None:
        """No number of threads changes a bit of ours, or more of torch's than rounding does."""
        self.say("loading, and comparing logits and tokens")
        ours = self.workers["ours"]
        self.tokens = [ours.ask("tokens", 1, prompt, NEW + 1) for prompt in self.prompts]
        logits: list[float] = ours.ask("logits", 1, self.long)
        for threads in self.threads:
            found = [ours.ask("tokens", threads, prompt, NEW + 1) for prompt in self.prompts]
            if ours.ask("logits", threads, self.long) != logits or found != self.tokens:
                raise SystemExit(
                    f"ours gives other logits or tokens on {threads} threads than on 1"
                )
            if "torch" in self.workers:
                beside = np.array(self.workers["torch"].ask("logits", threads, self.long))
                if not (error := abs(beside - logits).max()) <= EXACT:
                    raise SystemExit(f"torch's logits on {threads} threads are {error:.3g} off")

    def measure(self, turns: Turns, unit: str) -> dict[str, dict[int, list[float]]]:
        """Figures by side or way and by threads, one a round; each round is said when it ends."""
        said, done = list[str](), 0

        def noted(name: str, threads: int, run: Callable[[], float]) -> float:
            nonlocal done
            figure = run()
            said.append(f"{name} {threads}: {figure:.4g}")
            if len(said) == len(turns):
                words = f"round {done} of {self.rounds}" if done else "not counted"
                self.say(f"  {words}, {unit}: {', '.join(said)}")
                said.clear()
                done += 1
            return figure

        runs: dict[str, Callable[[], float]] = {
            f"{name} {threads}": partial(noted, name, threads, run)
            for (name, threads), run in turns.items()
        }
        figures = in_turn(runs, self.rounds)
        found: dict[str, dict[int, list[float]]] = {}
        for name, threads in turns:
            found.setdefault(name, {})[threads] = figures[f"{name} {threads}"]
        return found

    def scaling(self) -> Generator[list[Measured]]:
        """Decoding and a prompt, on each number of threads."""
        asked: dict[str, tuple[str, tuple[Any, ...]]] = {
            f"decode {NEW}": ("tokens/s", ("decode", self.prompts[0], NEW + 1)),
            f"prefill {LONG}": ("ms", ("prefill", self.long)),
        }
        for mode, (unit, (request, *rest)) in asked.items():
            self.say(mode)
            turns: Turns = {
                (side, threads): partial(worker.ask, request, threads, *rest)
                for threads in self.threads
                for side, worker in self.workers.items()
            }
            found = self.measure(turns, unit)
            yield [
                compared(
                    Measurement(mode, threads, unit, {n: by[threads] for n, by in found.items()}),
                    {name: by[1] for name, by in found.items()},
                )
                for threads in self.threads
            ]

    def together(self) -> list[Measured]:
        """Two Python threads at once, beside one."""
        self.say("two Python threads")

        def run(way: str, threads: int) -> float:
            python_threads, models = WAYS[way]
            given = threads, models, self.prompts[:python_threads], NEW + 1
            rate, tokens = self.workers["ours"].ask("together", *given)
            if tokens != self.tokens[:python_threads]:
                raise SystemExit(f"{way}, {threads} threads each: other tokens than alone")
            return rate

        turns: Turns = {(way, n): partial(run, way, n) for way in WAYS for n in TOGETHER}
        found = self.measure(turns, "tokens/s")
        return [
            compared(
                Measurement(
                    "alone" if way == "alone" else f"two Python threads, {way}",
                    threads,
                    "tokens/s",
                    {"ours": by[threads]},
                ),
                {"ours": found["alone"][threads]},
            )
            for way, by in found.items()
            for threads in TOGETHER
        ]


def compared(measurement: Measurement, base: dict[str, list[float]]) -> Measured:
    """``measurement`` with how many times as good as ``base`` each side is, round by round."""
    ratios = {
        name: [better(measurement.unit, *pair) for pair in zip(found, base[name], strict=True)]
        for name, found in measurement.sides.items()
    }
    return asdict(measurement) | {"ratios": ratios}


def scaling_table(results: list[Measured]) -> Table:
    """Medians by mode and side, a column for each number of threads; ratios in brackets."""
    made = Table(box=None, header_style="bold")
    for name in ("mode", "side", "unit"):
        made.add_column(name)
    columns = sorted({result["threads"] for result in results})
    for threads in columns:
        made.add_column(f"{threads} thread{'s' * (threads > 1)}", justify="right")
    rows: dict[tuple[str, str, str], dict[int, str]] = {}
    for result in results:
        for side, found in result["sides"].items():
            cell = f"{median(found):.4g} ({median(result['ratios'][side]):.2f})"
            rows.setdefault((result["mode"], side, result["unit"]), {})[result["threads"]] = cell
    for names, cells in rows.items():
        made.add_row(*names, *(cells.get(threads, "") for threads in columns))
    return made


@contextmanager
def started(options: argparse.Namespace) -> Generator[dict[str, Worker]]:
    """The processes of ours and of those beside, ours first."""
    workers: dict[str, Worker] = {}
    settings = thread_settings(1, options.omp_spin)
    try:
        with on_cores(options.cores):
            for side in ("ours", *options.against):
                given = side, str(options.model)
                workers[side] = Worker("benchmarks.threads_side", *given, settings=settings)
        yield workers
    finally:
        for worker in workers.values():
            worker.close()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modes", nargs="*", metavar="mode", help=f"of {', '.join(MODES)}; both")
    parser.add_argument("--model", type=Path, metavar="DIR", help="instead of GPT-2 124M")
    parser.add_argument("--against", default="", help="torch, or nobody")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8], help="1 is added")
    parser.add_argument("--cores", type=int, default=cores(), help="that may be used; all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--backend", help="the backend of gptrs, instead of its default")
    parser.add_argument("--omp-spin", default=OMP_SPIN, help="GOMP_SPINCOUNT, or: default")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    options.threads = sorted({1, *options.threads})
    if unknown := sorted(set(options.modes) - set(MODES)):
        parser.error(f"there is no mode {unknown[0]!r}, only {', '.join(MODES)}")
    if options.against not in ("", "torch"):
        parser.error(f"there is no {options.against!r} to measure against, only torch")
    if options.model is None:
        default = Path(tempfile.gettempdir()) / "gptrs-random-gpt2-124m"
        options.model = write_directory(default)
    return options


def main() -> None:
    options, console = parse(), Console(width=160)
    options.against = installed(GPT2, options.against, console.print)
    if options.backend is not None:
        os.environ["GPTRS_BACKEND"] = options.backend
    load: list[float] = []
    about = machine(packages(options.against))
    about |= {"omp_spin": options.omp_spin, "cores": min(options.cores, cores()), "load": load}
    console.print(about)
    results: list[Measured] = []

    def keep(found: list[Measured]) -> None:
        results.extend(found)
        load.append(os.getloadavg()[0])
        write_json(options.json, about, results=results)  # each time: nothing measured is lost

    with started(options) as workers:
        bench = Bench(workers, options, console)
        bench.check()
        if "scaling" in (modes := options.modes or MODES):
            for found in bench.scaling():
                keep(found)
        if "together" in modes:
            keep(bench.together())
    console.print(scaling_table(results))
    console.print(f"load after each part: {', '.join(f'{n:.1f}' for n in load)}")


if __name__ == "__main__":
    main()
