"""GPT-2 124M with random weights against torch: the same threads, sides in turn, medians.

    python -m benchmarks.gpt2 [decode prefill first-token call memory passes]
                              [--threads 1 2] [--backend NAME] [--rounds 7] [--json FILE]

- decode: 64 tokens, greedy, one text, after a prompt of 16
- prefill: 512 tokens, logits of the last
- first-token: from starting Python to the first token of the bundled model; cold means that no
  compiled kernels are kept
- call: gelu(x @ w + b) on 1 × 64 by 64 × 64; back to back, and after 20 ms of idling
- passes: tracing a step over a cache, and all passes over its program
- memory: the most resident memory of loading and 8 tokens after 16; the limit is 1.3 times the
  weights and 150 MB

The weights are written once as a Hugging Face directory, from which all sides load; before timing
they must agree. Torch is the fastest of a hand-written eager loop and transformers' own model with
either cache. Each number of threads has a process of its own, on as many cores. One thread is
measured in CPU time, which other processes disturb less. Idle threads of torch spin 10,000 turns,
some 0.1 ms, instead of 300,000 (--omp-spin): as fast on a machine without other work, and two to
three times as fast on one with. Asleep at once (OMP_WAIT_POLICY=passive) two threads can be left on
one core.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

MODES = ("decode", "prefill", "first-token", "call", "memory", "passes")
LIBRARIES = ("numpy", "llvmlite", "numba", "torch", "transformers")
MEMORY = """
import re, sys
from pathlib import Path
import gptrs
model = gptrs.load(sys.argv[1])
assert len(list(model.stream_tokens(range(100, 116), max_tokens=8))) == 8
# Unlike ru_maxrss it does not include what the parent had when it started this process.
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""

Measured = dict[str, Any]  # mode, threads, unit, sides: see gpt2_measure.Measurement


@contextmanager
def on_cores(count: int) -> Generator[None]:
    """Processes started here run on the first ``count`` cores of this one."""
    if sys.platform != "linux":
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def run_python(*arguments: str, **settings: str) -> str:
    """What Python prints."""
    command, env = [sys.executable, *arguments], os.environ | settings
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


def measure(mode: str, directory: Path, rounds: int, threads: int, spin: str) -> list[Measured]:
    settings = {"GPTRS_NUM_THREADS": str(threads), "TQDM_DISABLE": "1"}
    if spin != "default":
        settings["GOMP_SPINCOUNT"] = spin
    with on_cores(threads):
        arguments = ("-m", "benchmarks.gpt2_measure", mode, str(directory), str(rounds))
        return json.loads(run_python(*arguments, **settings))


def first_token(cache: str, bytecode: str) -> float:
    """Seconds from starting Python to the first text, with what Python compiled in ``bytecode``."""
    command = [sys.executable, "-m", "gptrs", "generate", "Once upon a time", "--max-tokens", "1"]
    env = os.environ | {"GPTRS_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stdout.read(1), "no text"
        seconds = time.perf_counter() - start
        process.stdout.read()
    return seconds


def measure_first_token(rounds: int) -> list[Measured]:
    cold: list[float] = []
    warm: list[float] = []
    with tempfile.TemporaryDirectory() as bytecode:
        for number in range(rounds + 1):
            with tempfile.TemporaryDirectory() as cache:
                times = first_token(cache, bytecode), first_token(cache, bytecode)
            if number > 0:  # the first time, Python compiles this package
                cold.append(times[0])
                warm.append(times[1])
    modes = {"first-token, cold": cold, "first-token, warm": warm}
    return [
        {"mode": mode, "threads": None, "unit": "s", "sides": {"ours": found}}
        for mode, found in modes.items()
    ]


def measure_memory(directory: Path) -> list[Measured]:
    weights = (directory / "model.safetensors").stat().st_size / 1e6
    peak = int(run_python("-c", MEMORY, str(directory))) * 1024 / 1e6
    sides = {"ours": [peak], "limit": [1.3 * weights + 150]}
    return [{"mode": "memory", "threads": None, "unit": "MB", "sides": sides}]


def better(unit: str, ours: float, theirs: float) -> float:
    """How many times as good ours is."""
    return ours / theirs if unit == "tokens/s" else theirs / ours


def table(results: list[Measured]) -> Table:
    """Medians; the ratio is that of the rounds' ratios."""
    made = Table(box=None, header_style="bold")
    for name in ("mode", "threads", "unit", "ours", "best other", "times as good", "others"):
        made.add_column(name, justify="left" if name in ("mode", "others") else "right")
    for result in results:
        unit = result["unit"]
        ours = result["sides"]["ours"]
        others = {name: found for name, found in result["sides"].items() if name != "ours"}
        row = [result["mode"], str(result["threads"] or ""), unit, f"{median(ours):.4g}"]
        if others:
            names = sorted(others, key=lambda name: better(unit, median(others[name]), 1))
            best, *rest = reversed(names)
            ratio = median(better(unit, *pair) for pair in zip(ours, others[best], strict=True))
            row += [f"{median(others[best]):.4g}", f"{ratio:.2f}"]
            row.append("; ".join([best, *(f"{n} {median(others[n]):.4g}" for n in rest)]))
        made.add_row(*row)
    return made


def machine() -> dict[str, Any]:
    """What the figures depend on besides the code."""
    from gptrs.kernels import isa

    name = platform.processor()
    if (info := Path("/proc/cpuinfo")).exists():
        lines = info.read_text().splitlines()
        name = next((n.split(":")[1].strip() for n in lines if n.startswith("model name")), name)
    return {
        "cpu": f"{name} ({isa.host()[1]})",
        "isa": isa.current().name,
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "versions": {"python": platform.python_version()} | {n: version(n) for n in LIBRARIES},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modes", nargs="*", metavar="mode", help=f"of {', '.join(MODES)}; all")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--backend", help="the backend of gptrs, instead of its default")
    parser.add_argument("--omp-spin", default="10000", help="GOMP_SPINCOUNT, or: default")
    default = Path(tempfile.gettempdir()) / "gptrs-random-gpt2-124m"
    parser.add_argument("--directory", type=Path, default=default, help="of the model")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    modes: list[str] = options.modes or list(MODES)
    if unknown := sorted(set(modes) - set(MODES)):
        parser.error(f"there is no mode {unknown[0]!r}")
    if options.backend is not None:
        os.environ["GPTRS_BACKEND"] = options.backend
    from benchmarks.gpt2_models import write_directory

    write_directory(options.directory)
    load = [os.getloadavg()[0]]
    results: list[Measured] = []
    for mode in modes:
        if mode == "first-token":
            results += measure_first_token(options.rounds)
        elif mode == "memory":
            results += measure_memory(options.directory)
        else:
            for threads in options.threads:
                given = (options.directory, options.rounds, threads, options.omp_spin)
                results += measure(mode, *given)
    load.append(os.getloadavg()[0])
    about = machine() | {"load": load, "omp_spin": options.omp_spin}
    console = Console(width=130)
    console.print(table(results))
    console.print(about)
    if options.json is not None:
        options.json.write_text(json.dumps({**about, "results": results}, indent=1))


if __name__ == "__main__":
    main()
