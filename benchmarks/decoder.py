"""Decoder language models with random weights against peers on equal threads, interleaved, medians.

    python -m benchmarks.decoder [--size smollm2-135m ...] [--dtype f32 bf16 f16]
                                 [--against torch,compile] [--threads 1 2] [--rounds 5] [--quick]
                                 [--directory FOLDER] [--json FILE]

- prefill: 512 tokens, logits of the last
- decode: 64 tokens, greedy, one text, after a prompt of 16
- of bandwidth: the bytes of the weights as they are stored, times steps a second, of what eight
  streams read meanwhile
- of peak: the operations of a prefill, of multiply-adds in registers
- first token: seconds from starting Python to the first token after 16, kernels kept
- memory: the most resident memory of that process, and after the first token of as many

--against: torch (transformers, eager, in the dtype of the weights), compile (the same by
torch.compile, with a cache of fixed size; it compiles for minutes), llama_cpp (weights as stored,
keys and values in f16 but for f32), openvino (weights of 16 bits in f16) and onnxruntime (f32
alone). What is not installed is left out, as are peers whose logits are not ours. --quick measures
two rounds and prompts of 128.

Weights are written once to a folder (in the system's one for temporary files), from which all sides
load. Each number of threads has a process of its own, on as many cores; one thread is measured in
CPU time. Idle threads of torch spin as in `benchmarks.gpt2`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.decoder_directory import CONFIGS, DTYPES, write_directory
from benchmarks.installed import installed
from benchmarks.report import table, write_json
from gptrs.errors import BenchError
from gptrs_bench.machine import machine
from gptrs_bench.peers import DECODERS, packages
from gptrs_bench.processes import first_output, on_cores, run_python, thread_settings
from gptrs_bench.side import DECODER, ONCE, PROMPT
from gptrs_bench.turns import Measured

LONG, SHORT = 512, 128  # tokens of a prompt
PREFILL_OF = {False: LONG, True: SHORT}  # by --quick


def measure(
    directory: Path, dtype: str, threads: int, options: argparse.Namespace
) -> list[Measured]:
    with on_cores(threads):
        given = str(directory), dtype, str(options.rounds), str(PREFILL_OF[options.quick])
        settings = thread_settings(threads)
        printed = run_python(
            "-m", "benchmarks.decoder_measure", *given, *options.against, **settings
        )
    return json.loads(printed.splitlines()[-1])


def measure_starts(
    directory: Path, vocabulary: int, threads: int, options: argparse.Namespace
) -> list[Measured]:
    """First tokens and memory; a first round only fills caches."""
    seconds: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    sides = ["ours", *DECODERS.quick(options.against)]
    with on_cores(threads):
        for number in range(1 + (1 if options.quick else 3)):
            for side in list(sides):
                given = side, DECODER, str(directory), str(threads), ONCE, str(PROMPT)
                command = ("-m", "gptrs_bench.side", *given, str(vocabulary))
                try:
                    taken, printed = first_output(command, **thread_settings(threads))
                except BenchError as error:  # a peer that cannot run this model
                    if side == "ours":
                        raise
                    print(f"{side} is left out: {error}", file=sys.stderr)
                    sides.remove(side)
                    continue
                if number:
                    seconds.setdefault(side, []).append(taken)
                    memory.setdefault(side, []).append(float(printed.split()[1]))
    return [
        {"mode": "first token, warm", "threads": threads, "unit": "s", "sides": seconds},
        {"mode": "memory", "threads": threads, "unit": "MB", "sides": memory},
    ]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", nargs="+", choices=CONFIGS, default=["smollm2-135m"])
    parser.add_argument("--dtype", nargs="+", choices=DTYPES, default=["f32", "bf16"])
    parser.add_argument("--against", default="torch", help=f"of {','.join(DECODERS.required)}")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    default = Path(tempfile.gettempdir())
    parser.add_argument("--directory", type=Path, default=default, help="of the models")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    options.rounds = 2 if options.quick else options.rounds
    return options


def main() -> None:
    options, console = parse(), Console(width=160)
    options.against = installed(DECODERS, options.against, console.print)
    load: list[float] = []
    about = machine(packages(options.against)) | {"load": load}
    console.print(about)
    results: list[Measured] = []
    for size in options.size:
        for dtype in options.dtype:
            directory = write_directory(options.directory, size, dtype)
            for threads in options.threads:
                load.append(os.getloadavg()[0])
                found = measure(directory, dtype, threads, options)
                vocabulary = CONFIGS[size]["vocab_size"]
                found += measure_starts(directory, vocabulary, threads, options)
                console.print(f"\n{size}, {dtype}, {threads} threads, load {load[-1]:.1f}")
                console.print(table([part for part in found if "ours" in part["sides"]]))
                results += [{"size": size, "dtype": dtype, **part} for part in found]
                write_json(options.json, about, results=results)


if __name__ == "__main__":
    main()
