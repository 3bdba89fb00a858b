"""ResNet34 and MobileNetV2 with random weights against peers on equal threads, interleaved,
medians.

    python -m benchmarks.vision [latency first-image memory] [--against torch,onnxruntime,...]
                                [--models resnet34,mobilenet_v2] [--batch 1 8] [--threads 1 2]
                                [--winograd 0|1|both] [--rounds 7] [--json FILE]

- latency: ms from images of 224 × 224 in memory to their logits
- first-image: from starting Python to the first logits, on all cores; cold means that no compiled
  kernels are kept
- memory: the most resident memory of loading and some single images

--against names the others: torch (eager modules in both of its layouts, with norms of their own and
folded into the convolutions, and transformers' own model), compile (torch.compile, also with frozen
weights), onnxruntime, openvino. One that is not installed is left out. torch.compile is only in
latency. --winograd both measures ours with GPTRS_WINOGRAD=1 and 0, beside the same others.

The weights are written once as Hugging Face directories; torch, the ONNX file that the other
libraries read, and ours are made from these. Each side gets images in the layout that it takes
best. Before timing, logits must agree to 0.0001. Each side has a process of its own, on as many
cores as threads; they take turns, after a pause in which the threads of the last one fall asleep.
One thread is measured in CPU time, which other processes disturb less. Idle threads of torch spin
10,000 turns (--omp-spin), as in `benchmarks.gpt2`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from benchmarks.installed import installed
from benchmarks.report import table, write_json
from benchmarks.vision_directory import CONFIGS, SIZES, write_directory
from gptrs.errors import BenchError
from gptrs_bench.images import EXACT
from gptrs_bench.machine import machine
from gptrs_bench.peers import IMAGES, packages
from gptrs_bench.processes import (
    OMP_SPIN,
    cold_and_warm,
    cores,
    on_cores,
    run_python,
    seconds_to_output,
    thread_settings,
)
from gptrs_bench.side import ONCE, PICTURES
from gptrs_bench.turns import Measured, Measurement, in_turn
from gptrs_bench.worker import Worker

MODES = ("latency", "first-image", "memory")
SIDE = "gptrs_bench.side"
WINOGRAD = "GPTRS_WINOGRAD"


class Way(NamedTuple):
    """A way to run the model, in the process that answers for it."""

    worker: Worker
    name: str

    def logits(self, batch: int) -> Any:
        return np.array(self.worker.ask("logits", self.name, batch, *SIZES), np.float32)

    def time(self, batch: int) -> float:
        return self.worker.ask("latency", self.name, batch)


class Variant(NamedTuple):
    """Ours with a value of `WINOGRAD`."""

    value: str

    @property
    def settings(self) -> dict[str, str]:
        return {WINOGRAD: self.value}

    @property
    def label(self) -> str:
        """What goes behind the names of modes."""
        return "" if self.value == "1" else f", {WINOGRAD}={self.value}"

    @property
    def side(self) -> str:
        return f"ours{self.label}"


def variants(winograd: str) -> list[Variant]:
    return [Variant(value) for value in (("1", "0") if winograd == "both" else (winograd,))]


@contextmanager
def started(
    directory: Path, threads: int, options: argparse.Namespace, console: Console
) -> Generator[dict[str, Way]]:
    """The ways of all sides by name, ours first."""
    settings, workers = thread_settings(threads, options.omp_spin), list[Worker]()
    given, ways = (PICTURES, str(directory), str(threads)), dict[str, Way]()

    def start(side: str, **more: str) -> Worker:
        worker = Worker(SIDE, side, *given, settings=settings | more)
        workers.append(worker)
        return worker

    try:
        with on_cores(threads):
            for variant in variants(options.winograd):
                ways[variant.side] = Way(start("ours", **variant.settings), "ours")
            for peer in options.against:
                worker = start(peer)
                try:
                    ways |= {name: Way(worker, name) for name in worker.ask("names")}
                except BenchError as error:
                    console.print(f"{peer} is left out: {error}")
        yield ways
    finally:
        for worker in workers:
            worker.close()


class Agreement(NamedTuple):
    """How far logits lie from those of ``beside``, and the standard deviation of these."""

    beside: str
    deviation: float
    errors: dict[str, float]

    def __str__(self) -> str:
        words = ", ".join(f"{n} {e:.1e}" for n, e in self.errors.items() if n != self.beside)
        return f"logits ± {self.deviation:.2g}, most that any is from {self.beside}'s: {words}"


def agreement(ways: dict[str, Way], batch: int) -> Agreement:
    """All sides beside torch, or beside the first where that is left out.

    Ends the program where logits are too far from each other.
    """
    logits = {name: way.logits(batch) for name, way in ways.items()}
    beside = "torch" if "torch" in logits else next(iter(logits))
    expected = logits[beside]
    errors = {name: float(abs(found - expected).max()) for name, found in logits.items()}
    for name, error in errors.items():
        if not error <= EXACT:
            raise SystemExit(f"{name} gives logits that are {error:.3g} from those of {beside}")
    return Agreement(beside, float(expected.std()), errors)


def measure_latency(
    model: str, threads: int, options: argparse.Namespace, console: Console
) -> list[Measured]:
    measured: list[Measured] = []
    with started(options.directory / model, threads, options, console) as ways:
        for batch in options.batch:
            mode, agreed = f"{model}, batch {batch}", agreement(ways, batch)
            console.print(f"{mode}, {threads} threads: {agreed}")
            turns: dict[str, Callable[[], float]] = {
                name: lambda way=way, batch=batch: way.time(batch) for name, way in ways.items()
            }
            found = in_turn(turns, options.rounds)
            ours = [(variant, found.pop(variant.side)) for variant in variants(options.winograd)]
            for variant, figures in ours:
                sides = {"ours": figures, **found}
                measurement = Measurement(f"{mode}{variant.label}", threads, "ms", sides)
                measured.append(asdict(measurement) | agreed._asdict())
    return measured


def once(side: str, name: str, options: argparse.Namespace) -> tuple[str, ...]:
    """The arguments of Python for one image."""
    given = side, PICTURES, str(options.directory / name), str(cores())
    return ("-m", SIDE, *given, ONCE, *map(str, SIZES))


def measure_first_image(name: str, options: argparse.Namespace) -> list[Measured]:
    """Python's own compiled files and the weights are read before: the first round only warms."""
    settings = thread_settings(cores(), options.omp_spin)
    found: dict[str, dict[str, list[float]]] = {}

    def note(mode: str, side: str, seconds: float) -> None:
        found.setdefault(mode, {}).setdefault(side, []).append(seconds)

    with tempfile.TemporaryDirectory() as bytecode:
        warm_files = {"PYTHONPYCACHEPREFIX": bytecode, **settings}
        for _ in range(options.rounds + 1):
            for variant in variants(options.winograd):
                given = settings | variant.settings
                pair = cold_and_warm(once("ours", name, options), bytecode, **given)
                for state, seconds in zip(("cold", "warm"), pair, strict=True):
                    note(f"{name}, first image, {state}{variant.label}", "ours", seconds)
            for peer in IMAGES.quick(options.against):
                seconds = seconds_to_output(once(peer, name, options), **warm_files)
                for variant in variants(options.winograd):
                    note(f"{name}, first image, warm{variant.label}", peer, seconds)
    counted = {
        mode: {side: figures[1:] for side, figures in sides.items()}
        for mode, sides in found.items()
    }
    return [asdict(Measurement(mode, None, "s", sides)) for mode, sides in counted.items()]


def measure_memory(name: str, options: argparse.Namespace) -> list[Measured]:
    """Each runs twice: the first time may write a file that it reads, or compile kernels."""
    settings = thread_settings(cores(), options.omp_spin)

    def peak(side: str, **more: str) -> list[float]:
        given = once(side, name, options)
        printed = [run_python(*given, **settings, **more) for _ in range(2)]
        return [float(printed[-1].splitlines()[-1])]

    weights = (options.directory / name / "model.safetensors").stat().st_size / 1e6
    others = {peer: peak(peer) for peer in IMAGES.quick(options.against)}
    return [
        asdict(
            Measurement(
                f"{name}, memory, {weights:.0f} MB of weights{variant.label}",
                None,
                "MB",
                {"ours": peak("ours", **variant.settings), **others},
            )
        )
        for variant in variants(options.winograd)
    ]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modes", nargs="*", metavar="mode", help=f"of {', '.join(MODES)}; all")
    known = ",".join(IMAGES.required)
    parser.add_argument("--against", default=known, help=f"of {known}; all")
    parser.add_argument("--models", default=",".join(CONFIGS), help="with commas between them")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--winograd", choices=("0", "1", "both"), default="1")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--backend", help="the backend of gptrs, instead of its default")
    parser.add_argument("--omp-spin", default=OMP_SPIN, help="GOMP_SPINCOUNT, or: default")
    default = Path(tempfile.gettempdir()) / "gptrs-random-image-models"
    parser.add_argument("--directory", type=Path, default=default, help="of the models")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    options.models = options.models.split(",")
    for given, there in ((options.modes, MODES), (options.models, CONFIGS)):
        if unknown := sorted(set(given) - set(there)):
            parser.error(f"there is no {unknown[0]!r}, only {', '.join(there)}")
    return options


def measure_mode(
    mode: str, name: str, options: argparse.Namespace, console: Console
) -> Generator[list[Measured]]:
    if mode == "first-image":
        yield measure_first_image(name, options)
    elif mode == "memory":
        yield measure_memory(name, options)
    else:
        for threads in options.threads:
            yield measure_latency(name, threads, options, console)


def main() -> None:
    options, console = parse(), Console(width=160)
    options.against = installed(IMAGES, options.against, console.print)
    if options.backend is not None:
        os.environ["GPTRS_BACKEND"] = options.backend
    for name in options.models:
        write_directory(options.directory, name)
    load: list[float] = []
    about = machine(packages(options.against)) | {"omp_spin": options.omp_spin, "load": load}
    console.print(about)
    results: list[Measured] = []
    for mode in options.modes or MODES:
        for name in options.models:
            load.append(os.getloadavg()[0])
            for found in measure_mode(mode, name, options, console):
                console.print(table(found))
                results += found
                write_json(options.json, about, results=results)
    console.print(f"load before each part: {', '.join(f'{n:.1f}' for n in load)}")


if __name__ == "__main__":
    main()
