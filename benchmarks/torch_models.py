"""torch modules with ``torch.compile(backend="gptrs")`` beside torch itself, interleaved, medians.

    python -m benchmarks.torch_models [--models bert,vit] [--batch 1 8] [--threads 1 2]
                                      [--rounds 7] [--json FILE]

Sides: ours, torch eager, and inductor with frozen weights, which needs a C++ compiler. Operands and
weights are random, f32; results must agree with eager to 0.001 of the largest value. A module has a
process of its own, on as many cores as threads, with all sides in it: they take turns, after a
pause in which the threads of the last one fall asleep. First calls (seconds, compilation included)
are each side's own in that process: ours with an empty folder of kernels, and once more with a full
one in another process.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.report import write_json
from benchmarks.torch_networks import NETWORKS
from gptrs_bench.machine import machine
from gptrs_bench.processes import cores, on_cores, run_python, thread_settings
from gptrs_bench.turns import in_turn

AGREE = 1e-3
SECONDS = 0.3  # of calls in a turn
_config: Any = torch._dynamo.config


def _tensors(value: Any) -> list[torch.Tensor]:
    leaves, _ = torch.utils._pytree.tree_flatten(value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _result(value: Any) -> list[torch.Tensor]:
    return _tensors(value.to_tuple() if hasattr(value, "to_tuple") else value)


def _sides(module: torch.nn.Module, names: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """The module as each side runs it."""
    frozen = {"freezing": True}
    made: dict[str, Callable[[], Any]] = {
        "ours": lambda: torch.compile(module, backend="gptrs"),
        "eager": lambda: module,
        "inductor": lambda: torch.compile(module, options=frozen),
    }
    return {name: made[name]() for name in names}


def measure(name: str, batch: int, threads: int, rounds: int, sides: Sequence[str]) -> Any:
    """Milliseconds of each side, round by round, and the seconds of their first calls."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    module, operands = NETWORKS[name](batch)
    first: dict[str, float] = {}
    runs: dict[str, Callable[[], float]] = {}
    with torch.no_grad():
        wanted = _result(module(**operands))
        for side, run in _sides(module, sides).items():
            start = time.perf_counter()
            with _config.patch(allow_rnn=side == "ours"):  # inductor would unroll the steps
                made = _result(run(**operands))
            first[side] = time.perf_counter() - start
            _check(name, side, made, wanted)
            runs[side] = _timed(run, operands)
        return {"first": first, "ms": in_turn(runs, rounds)}


def _check(
    name: str, side: str, made: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]
) -> None:
    for one, other in zip(made, wanted, strict=True):
        error = float((one - other).abs().max() / other.abs().max())
        if not error < AGREE:
            raise SystemExit(f"{name}: {side} is {error:.1e} from eager")


def _timed(run: Callable[..., Any], operands: dict[str, torch.Tensor]) -> Callable[[], float]:
    def turn() -> float:
        """Milliseconds of the fastest call in a turn."""
        best, end = math.inf, time.perf_counter() + SECONDS
        while True:
            start = time.perf_counter()
            run(**operands)
            now = time.perf_counter()
            best = min(best, now - start)
            if now > end:
                return best * 1e3

    return turn


def apart(name: str, batch: int, threads: int, rounds: int, sides: str, cache: str) -> Any:
    """`measure` in a process of its own."""
    settings = thread_settings(threads) | {
        "GPTRS_CACHE_DIR": f"{cache}/gptrs",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
    }
    given = name, str(batch), str(threads), str(rounds), sides
    with on_cores(threads):
        printed = run_python("-m", "benchmarks.torch_models", "--measure", *given, **settings)
    return json.loads(printed.splitlines()[-1])


def lines(options: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    """The figures of all modules."""
    found: list[dict[str, Any]] = []
    for name in options.models.split(",") if options.models else NETWORKS:
        for batch in options.batch:
            for threads in options.threads:
                with tempfile.TemporaryDirectory() as cache:
                    made = apart(name, batch, threads, options.rounds, options.sides, cache)
                    made["warm"] = apart(name, batch, threads, 0, "ours", cache)["first"]["ours"]
                found.append({"model": name, "batch": batch, "threads": threads, **made})
                console.print(_row(found[-1]))
    return found


def _row(line: dict[str, Any]) -> str:
    ms = {side: median(figures) for side, figures in line["ms"].items()}
    text = ", ".join(f"{side} {value:.1f}" for side, value in ms.items())
    return f"{line['model']}, batch {line['batch']}, {line['threads']} threads: {text} ms"


def table(found: Sequence[dict[str, Any]]) -> Table:
    """Medians; how many times as fast ours is; the first calls."""
    made = Table(box=None, header_style="bold")
    others = [side for side in found[0]["ms"] if side != "ours"]
    for head in ("model", "batch", "threads", "ours, ms", *(f"× {o}" for o in others)):
        made.add_column(head, justify="left" if head == "model" else "right")
    for head in ("first, s", "warm", *(f"first {o}" for o in others if o != "eager")):
        made.add_column(head, justify="right")
    ratios: dict[str, list[float]] = {other: [] for other in others}
    for line in found:
        ours = line["ms"]["ours"]
        cells = [line["model"], str(line["batch"]), str(line["threads"]), f"{median(ours):.1f}"]
        for other in others:
            pairs = zip(line["ms"][other], ours, strict=True)
            ratios[other].append(median(theirs / own for theirs, own in pairs))
            cells.append(f"{ratios[other][-1]:.2f}")
        cells += [f"{line['first']['ours']:.1f}", f"{line['warm']:.2f}"]
        made.add_row(*cells, *(f"{line['first'][o]:.1f}" for o in others if o != "eager"))
    means = (math.exp(sum(map(math.log, r)) / len(r)) for r in ratios.values())
    made.add_row("geometric mean", "", "", "", *(f"{mean:.2f}" for mean in means))
    return made


def main(arguments: Sequence[str]) -> None:
    """The command."""
    if arguments[:1] == ["--measure"]:
        name, batch, threads, rounds, sides = arguments[1:]
        figures = measure(name, int(batch), int(threads), int(rounds), sides.split(","))
        print(json.dumps(figures))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", help="names with commas between them; all unless told")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, cores()])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sides", default="ours,eager,inductor")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    console = Console()
    found = lines(options, console)
    console.print(table(found))
    write_json(options.json, machine(["torch", "transformers"]), lines=found)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main(sys.argv[1:])
