"""GPT-2 124M with random weights against others: the same threads, sides in turn, medians.

    python -m benchmarks.gpt2 [decode prefill ...] [--against torch,onnxruntime,...]
                              [--threads 1 2] [--backend NAME] [--rounds 7] [--json FILE]

- decode: 64 tokens, greedy, one text, after a prompt of 16
- prefill: 512 tokens, logits of the last
- sweep: the same with 1 to 1000 tokens
- batch: decoding 8 texts at once, and how much faster that is than one
- weights: decoding with weights kept in f16 and bf16, beside f32 and llama.cpp's F16
- bandwidth: decode beside reading memory with eight streams, prefill beside multiply-adds alone
- first-token: from starting Python to the first token, of the bundled model and of this one; cold
  means that no compiled kernels are kept
- new-length: how much longer the first prompt of a length takes than later ones, and the kernels
  made for it
- call: gelu(x @ w + b) on 1 × 64 by 64 × 64; back to back, and after 20 ms of idling
- passes: tracing a step over a cache, and all passes over its program
- memory: the most resident memory of loading and 8 tokens after 16; the limit is 1.2 times the
  weights and 150 MB

--against names the others: torch (a hand-written eager loop, and transformers' own model with
either cache), compile (torch.compile of a loop of static shapes, also with frozen weights),
onnxruntime (ONNX's own operations, and its own), openvino (cache passed along, and as state),
llama_cpp (F32 and F16), ctranslate2, jax. One that is not installed is left out.

The weights are written once as a Hugging Face directory, from which all sides load or which is
converted beside it; before timing they must agree, logits to 0.001 and all tokens, f16 to what its
rounding allows. Each number of threads has a process of its own, on as many cores. One thread is
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
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import peers
from benchmarks.gpt2_directory import write_directory
from benchmarks.gpt2_first import Measured, measure_first_token
from benchmarks.spinning import TURNS

MODES = (
    *("decode", "prefill", "sweep", "batch", "weights", "bandwidth"),
    *("first-token", "new-length", "call", "memory", "passes"),
)
HIGHER = ("tokens/s", "GB/s", "GFLOP/s", "×", "%")  # the units of which more is better
LIBRARIES = ("numpy", "llvmlite", "numba")
PACKAGES = {  # of the peers, where they have another name or several
    "torch": ("torch", "transformers"),
    "compile": ("torch",),
    "llama_cpp": ("llama-cpp-python",),
    "jax": ("jax", "jaxlib"),
}
MEMORY = """
import re, sys
from pathlib import Path
import gptrs
model = gptrs.load(sys.argv[1])
assert len(list(model.stream_tokens(range(100, 116), max_tokens=8))) == 8
# Unlike ru_maxrss it does not include what the parent had when it started this process.
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


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


def measure(mode: str, threads: int, options: argparse.Namespace) -> list[Measured]:
    settings = {"GPTRS_NUM_THREADS": str(threads), "TQDM_DISABLE": "1"}
    if options.omp_spin != "default":
        settings["GOMP_SPINCOUNT"] = options.omp_spin
    with on_cores(threads):
        given = mode, str(options.directory), str(options.rounds), *options.against
        printed = run_python("-m", "benchmarks.gpt2_measure", *given, **settings)
        return json.loads(printed.splitlines()[-1])


def measure_memory(directory: Path) -> list[Measured]:
    weights = (directory / "model.safetensors").stat().st_size / 1e6
    peak = int(run_python("-c", MEMORY, str(directory))) * 1024 / 1e6
    sides = {"ours": [peak], "limit": [1.2 * weights + 150]}
    return [{"mode": "memory", "threads": None, "unit": "MB", "sides": sides}]


def better(unit: str, ours: float, theirs: float) -> float:
    """How many times as good ours is."""
    return ours / theirs if unit in HIGHER else theirs / ours


def table(results: list[Measured]) -> Table:
    """Medians; the others' in the order of how good they are, each with the median of the rounds'
    ratios in brackets: how many times as good ours is."""
    made = Table(box=None, header_style="bold")
    for name in ("mode", "threads", "unit", "ours", "best other", "times as good", "others"):
        made.add_column(name, justify="left" if name in ("mode", "others") else "right")
    for result in results:
        unit = result["unit"]
        ours = result["sides"]["ours"]
        others = {name: found for name, found in result["sides"].items() if name != "ours"}
        row = [result["mode"], str(result["threads"] or ""), unit, f"{median(ours):.4g}"]
        ratios: dict[str, float] = {}
        for name, found in others.items():
            pairs = zip(ours, found, strict=True)
            ratios[name] = median(better(unit, *pair) for pair in pairs) if all(ours) else 0
        if others:
            best, *rest = sorted(others, key=lambda name: better(unit, 1, median(others[name])))
            row += [f"{median(others[best]):.4g}", f"{ratios[best]:.2f}"]
            words = (f"{n} {median(others[n]):.4g} ({ratios[n]:.2f})" for n in rest)
            row.append("; ".join([best, *words]))
        made.add_row(*row)
    return made


def machine(names: list[str]) -> dict[str, Any]:
    """What the figures depend on besides the code."""
    from gptrs.kernels import isa

    name = platform.processor()
    if (info := Path("/proc/cpuinfo")).exists():
        lines = info.read_text().splitlines()
        name = next((n.split(":")[1].strip() for n in lines if n.startswith("model name")), name)
    packages = dict.fromkeys([*LIBRARIES, *(p for n in names for p in PACKAGES.get(n, (n,)))])
    return {
        "cpu": f"{name} ({isa.host()[1]})",
        "isa": isa.current().name,
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "versions": {"python": platform.python_version()} | {n: version(n) for n in packages},
    }


def installed(asked: str, console: Console) -> list[str]:
    """Those of the peers asked for that can run here; the others are named."""
    names = [name for name in asked.split(",") if name]
    if unknown := sorted(set(names) - set(peers.REQUIRED)):
        raise SystemExit(f"there is no {unknown[0]!r}, only {', '.join(peers.REQUIRED)}")
    for name in names:
        if lacking := peers.missing(name):
            console.print(f"{name} is left out: not installed: {', '.join(lacking)}")
    return [name for name in names if not peers.missing(name)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modes", nargs="*", metavar="mode", help=f"of {', '.join(MODES)}; all")
    parser.add_argument("--against", default="torch", help=f"of {','.join(peers.REQUIRED)}")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--backend", help="the backend of gptrs, instead of its default")
    parser.add_argument("--omp-spin", default=TURNS, help="GOMP_SPINCOUNT, or: default")
    default = Path(tempfile.gettempdir()) / "gptrs-random-gpt2-124m"
    parser.add_argument("--directory", type=Path, default=default, help="of the model")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    if unknown := sorted(set(options.modes) - set(MODES)):
        parser.error(f"there is no mode {unknown[0]!r}")
    return options


def measure_mode(mode: str, options: argparse.Namespace) -> list[Measured]:
    if mode == "first-token":
        quick = [name for name in options.against if name in peers.QUICK]
        return measure_first_token(options.directory, options.rounds, quick)
    if mode == "memory":
        return measure_memory(options.directory)
    found = (measure(mode, threads, options) for threads in options.threads)
    return [measurement for part in found for measurement in part]


def main() -> None:
    options, console = parse(), Console(width=160)
    options.against = installed(options.against, console)
    if options.backend is not None:
        os.environ["GPTRS_BACKEND"] = options.backend
    write_directory(options.directory)
    load: list[float] = []
    about = machine(options.against) | {"omp_spin": options.omp_spin, "load": load}
    console.print(about)
    results: list[Measured] = []
    for mode in options.modes or MODES:
        load.append(os.getloadavg()[0])
        found = measure_mode(mode, options)
        console.print(table(found))
        results += found
        if options.json is not None:  # each time: what is measured is not lost
            options.json.write_text(json.dumps({**about, "results": results}, indent=1))
    console.print(f"load before each mode: {', '.join(f'{n:.1f}' for n in load)}")


if __name__ == "__main__":
    main()
