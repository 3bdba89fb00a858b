"""Measured Python processes: affinity, settings, and time to the first output."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any

from gptrs.errors import BenchError
from gptrs.isolated import start_python

_LAST = 2000  # bytes of what a process said on stderr that may tell why it ended


OMP_SPIN = "10000"
"""Turns that idle threads of OpenMP spin, some 0.1 ms.

By default they spin 300,000, some 3 ms, after each call: whoever has the next turn shares a core
with them. With 10,000 torch itself is as fast on a machine without other work.
"""
OPENBLAS_TIMEOUT = "20"
"""The power of two of cycles that idle threads of NumPy's OpenBLAS spin, some 0.3 ms.

By default it is 26, some 20 ms after each call, in which others have half a core less. With 20
NumPy itself is as fast in its own turns, and torch faster in those after them.
"""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@contextmanager
def on_cores(count: int) -> Generator[None]:
    """Processes started here run on the first ``count`` cores of this one."""
    if sys.platform != "linux":
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def thread_settings(threads: int, omp_spin: str = OMP_SPIN) -> dict[str, str]:
    """Environment variables: our threads, and how long idle ones of torch and NumPy spin
    ("default": as they do)."""
    limits = {"GOMP_SPINCOUNT": omp_spin, "OPENBLAS_THREAD_TIMEOUT": OPENBLAS_TIMEOUT}
    spin = {} if omp_spin == "default" else limits
    return {"GPTRS_NUM_THREADS": str(threads), "TQDM_DISABLE": "1", **spin}


def run_python(*arguments: str, **settings: str) -> str:
    """What Python prints."""
    options: Any = {"env": os.environ | settings, "stdout": subprocess.PIPE, "text": True}
    with start_python(*arguments, **options) as process:
        printed, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(arguments))
    return printed


def first_output(arguments: tuple[str, ...], **settings: str) -> tuple[float, str]:
    """Seconds from starting Python to the first byte that it prints, and all that it prints.

    Raises `BenchError`.
    """
    env = os.environ | settings
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": said, "bufsize": 0}
        with start_python(*arguments, env=env, **pipes) as process:
            assert process.stdout is not None
            first = process.stdout.read(1)
            seconds = time.perf_counter() - start
            printed = first + process.stdout.read()
        if not printed or process.returncode:
            raise BenchError(f"its process ended with {process.returncode}{last_words(said)}")
    return seconds, printed.decode()


def last_words(said: IO[bytes]) -> str:
    """The last line of what a process said on stderr, behind a colon, or nothing."""
    said.seek(0, os.SEEK_END)
    said.seek(max(0, said.tell() - _LAST))
    lines = said.read().decode(errors="replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def seconds_to_output(arguments: tuple[str, ...], **settings: str) -> float:
    """Seconds from starting Python to the first byte that it prints."""
    return first_output(arguments, **settings)[0]


def cold_and_warm(
    arguments: tuple[str, ...], bytecode: str, **settings: str
) -> tuple[float, float]:
    """Without kernels that were kept, and with those that the first run keeps."""
    with tempfile.TemporaryDirectory() as cache:
        given = {"PYTHONPYCACHEPREFIX": bytecode, "GPTRS_CACHE_DIR": cache, **settings}
        run = partial(seconds_to_output, arguments, **given)
        return run(), run()
