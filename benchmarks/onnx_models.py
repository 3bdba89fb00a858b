"""Models of ONNX beside onnxruntime and OpenVINO, interleaved, medians.

    python -m benchmarks.onnx_models [--models resnet50,squeezenet] [--threads 1 2] [--rounds 7]
                                     [--sides ours,onnxruntime,openvino] [--json FILE]

The models are those that the ``onnx`` package has with it (AlexNet, DenseNet, Inception, ResNet50,
ShuffleNet, SqueezeNet, VGG19, ZFNet), whose weights are made of constants; `--files` takes others,
whose arguments are arrays of f32 with known sizes. Operands are random. Results must agree with
onnxruntime's to 0.001 of the largest value. A model has a process of its own, on as many cores as
threads, with all sides in it: they take turns. The first calls are in seconds, loading included.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.report import write_json
from gptrs_bench.machine import machine
from gptrs_bench.processes import cores, on_cores, run_python, thread_settings
from gptrs_bench.turns import in_turn

AGREE = 1e-3
SECONDS = 0.3  # of calls in a turn
Run = Callable[[dict[str, Any]], list[Any]]


def files() -> dict[str, Path]:
    """The models of the ``onnx`` package by name."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    found = sorted(folder.glob("light_*.onnx"))
    return {path.stem.removeprefix("light_"): path for path in found}


def _ours(path: Path, threads: int) -> Run:
    import gptrs

    model = gptrs.load(path)

    def run(operands: dict[str, Any]) -> list[Any]:
        made = model(**operands)
        return [np.asarray(each) for each in (made if isinstance(made, tuple) else (made,))]

    return run


def _onnxruntime(path: Path, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda operands: session.run(None, operands)


def _openvino(path: Path, threads: int) -> Run:
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.compile_model(path, "CPU", settings)
    return lambda operands: list(compiled(operands).values())


SIDES = {"ours": _ours, "onnxruntime": _onnxruntime, "openvino": _openvino}


def measure(path: Path, threads: int, rounds: int, sides: Sequence[str]) -> Any:
    """Milliseconds of each side, round by round, and the seconds of their first calls."""
    operands = _operands(path)
    first: dict[str, float] = {}
    made: dict[str, list[Any]] = {}
    runs: dict[str, Callable[[], float]] = {}
    for side in sides:
        start = time.perf_counter()
        run = SIDES[side](path, threads)
        made[side] = run(operands)
        first[side] = time.perf_counter() - start
        runs[side] = _timed(run, operands)
    wanted = made[sides[-1] if "onnxruntime" not in made else "onnxruntime"]
    for side in sides:
        _check(side, made[side], wanted)
    return {"first": first, "ms": in_turn(runs, rounds)}


def _operands(path: Path) -> dict[str, Any]:
    """Random arrays for the arguments that have no value in the file."""
    import onnx

    graph, rng = onnx.load(path).graph, np.random.default_rng(0)
    stored = {tensor.name for tensor in graph.initializer}
    found: dict[str, Any] = {}
    for value in graph.input:
        if value.name not in stored:
            shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            found[value.name] = rng.standard_normal(shape).astype(np.float32)
    return found


def _check(side: str, made: Sequence[Any], wanted: Sequence[Any]) -> None:
    for one, other in zip(made, wanted, strict=True):
        error = float(np.max(np.abs(one - other)) / max(np.max(np.abs(other)), 1e-30))
        if not error < AGREE:
            raise SystemExit(f"{side} is {error:.1e} from onnxruntime")


def _timed(run: Run, operands: dict[str, Any]) -> Callable[[], float]:
    def turn() -> float:
        """Milliseconds of the fastest call in a turn."""
        best, end = math.inf, time.perf_counter() + SECONDS
        while True:
            start = time.perf_counter()
            run(operands)
            now = time.perf_counter()
            best = min(best, now - start)
            if now > end:
                return best * 1e3

    return turn


def apart(path: Path, threads: int, rounds: int, sides: str) -> Any:
    """`measure` in a process of its own."""
    given = str(path), str(threads), str(rounds), sides
    with on_cores(threads):
        settings = thread_settings(threads)
        printed = run_python("-m", "benchmarks.onnx_models", "--measure", *given, **settings)
    return json.loads(printed.splitlines()[-1])


def table(found: Sequence[dict[str, Any]]) -> Table:
    """Medians; how many times as fast ours is; the first calls."""
    others = [side for side in found[0]["ms"] if side != "ours"]
    made = Table(box=None, header_style="bold")
    for head in ("model", "threads", "ours, ms", *(f"× {o}" for o in others), "first, s"):
        made.add_column(head, justify="left" if head == "model" else "right")
    for other in others:
        made.add_column(f"first {other}", justify="right")
    ratios: dict[str, list[float]] = {other: [] for other in others}
    for line in found:
        ours, first = line["ms"]["ours"], line["first"]
        for other in others:
            pairs = zip(line["ms"][other], ours, strict=True)
            ratios[other].append(median(theirs / own for theirs, own in pairs))
        times = (f"{ratios[o][-1]:.2f}" for o in others)
        starts = (f"{first[side]:.2f}" for side in ("ours", *others))
        name, threads = line["model"], str(line["threads"])
        made.add_row(name, threads, f"{median(ours):.1f}", *times, *starts)
    means = (math.exp(sum(map(math.log, r)) / len(r)) for r in ratios.values())
    made.add_row("geometric mean", "", "", *(f"{mean:.2f}" for mean in means))
    return made


def main(arguments: Sequence[str]) -> None:
    """The command."""
    if arguments[:1] == ["--measure"]:
        path, threads, rounds, sides = arguments[1:]
        print(json.dumps(measure(Path(path), int(threads), int(rounds), sides.split(","))))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", help="names with commas between them; all unless told")
    parser.add_argument("--files", type=Path, nargs="+", help="files in place of the models")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, cores()])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sides", default="ours,onnxruntime,openvino")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    console, known = Console(), files()
    chosen = options.models.split(",") if options.models else list(known)
    paths = {path.stem: path for path in options.files or ()} or {n: known[n] for n in chosen}
    found: list[dict[str, Any]] = []
    for name, path in paths.items():
        for threads in options.threads:
            figures = apart(path, threads, options.rounds, options.sides)
            found.append({"model": name, "threads": threads, **figures})
            ms = {side: median(figures) for side, figures in figures["ms"].items()}
            text = ", ".join(f"{side} {value:.1f}" for side, value in ms.items())
            console.print(f"{name}, {threads} threads: {text} ms")
    console.print(table(found))
    write_json(options.json, machine(["onnx", "onnxruntime", "openvino"]), lines=found)


if __name__ == "__main__":
    main(sys.argv[1:])
