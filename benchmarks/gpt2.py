"""GPT-2 124M with random weights against peers on equal threads, interleaved, medians.

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
either cache), compile (torch.compile of a loop of static shapes, also with frozen weights; not in
first-token), onnxruntime (ONNX's own operations, and its own), openvino (cache passed along, and as
state), llama_cpp (F32 and F16), ctranslate2, jax. One that is not installed is left out, as is
compile without a C++ compiler. Each of its two ways has a process of its own, whose threads compile
before anyone is timed; the seconds that this took follow the figures. Nothing compiled by an
earlier run is used, unless TORCHINDUCTOR_CACHE_DIR says where such are kept.

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
import tempfile
from pathlib import Path
from statistics import median

from rich.console import Console

from benchmarks.gpt2_directory import write_directory
from benchmarks.gpt2_first import measure_first_token
from benchmarks.installed import installed
from benchmarks.report import table, write_json
from gptrs_bench.machine import machine
from gptrs_bench.peers import GPT2, packages
from gptrs_bench.processes import OMP_SPIN, on_cores, run_python, thread_settings
from gptrs_bench.turns import Measured

MODES = (
    *("decode", "prefill", "sweep", "batch", "weights", "bandwidth"),
    *("first-token", "new-length", "call", "memory", "passes"),
)
MEMORY = """
import sys
import gptrs
from gptrs_bench.memory import peak_memory
model = gptrs.load(sys.argv[1])
assert len(list(model.stream_tokens(range(100, 116), max_tokens=8))) == 8
print(peak_memory())
"""


def measure(mode: str, threads: int, options: argparse.Namespace) -> list[Measured]:
    settings = thread_settings(threads, options.omp_spin)
    with on_cores(threads):
        given = mode, str(options.directory), str(options.rounds), *options.against
        printed = run_python("-m", "benchmarks.gpt2_measure", *given, **settings)
        return json.loads(printed.splitlines()[-1])


def measure_memory(directory: Path) -> list[Measured]:
    weights = (directory / "model.safetensors").stat().st_size / 1e6
    peak = float(run_python("-c", MEMORY, str(directory)))
    sides = {"ours": [peak], "limit": [1.2 * weights + 150]}
    return [{"mode": "memory", "threads": None, "unit": "MB", "sides": sides}]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modes", nargs="*", metavar="mode", help=f"of {', '.join(MODES)}; all")
    parser.add_argument("--against", default="torch", help=f"of {','.join(GPT2.required)}")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--backend", help="the backend of gptrs, instead of its default")
    parser.add_argument("--omp-spin", default=OMP_SPIN, help="GOMP_SPINCOUNT, or: default")
    default = Path(tempfile.gettempdir()) / "gptrs-random-gpt2-124m"
    parser.add_argument("--directory", type=Path, default=default, help="of the model")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    if unknown := sorted(set(options.modes) - set(MODES)):
        parser.error(f"there is no mode {unknown[0]!r}")
    return options


def measure_mode(mode: str, options: argparse.Namespace) -> list[Measured]:
    if mode == "first-token":
        return measure_first_token(options.directory, options.rounds, GPT2.quick(options.against))
    if mode == "memory":
        return measure_memory(options.directory)
    found = (measure(mode, threads, options) for threads in options.threads)
    return [measurement for part in found for measurement in part]


def show(found: list[Measured], console: Console) -> None:
    """A table; figures that ours has no part in stand below it."""
    console.print(table([part for part in found if "ours" in part["sides"]]))
    for part in found:
        if "ours" not in part["sides"]:
            words = (f"{name} {median(all_):.4g}" for name, all_ in part["sides"].items())
            where = f"{part['mode']}, {part['threads']} threads"
            console.print(f"{where}, {part['unit']}: {'; '.join(words)}")


def main() -> None:
    options, console = parse(), Console(width=160)
    options.against = installed(GPT2, options.against, console.print)
    if options.backend is not None:
        os.environ["GPTRS_BACKEND"] = options.backend
    write_directory(options.directory)
    load: list[float] = []
    about = machine(packages(options.against)) | {"omp_spin": options.omp_spin, "load": load}
    console.print(about)
    results: list[Measured] = []
    for mode in options.modes or MODES:
        load.append(os.getloadavg()[0])
        found = measure_mode(mode, options)
        show(found, console)
        results += found
        write_json(options.json, about, results=results)  # each time: what is measured is not lost
    console.print(f"load before each mode: {', '.join(f'{n:.1f}' for n in load)}")


if __name__ == "__main__":
    main()
