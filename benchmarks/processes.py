"""Python processes that are measured: on which cores they run, with which settings, how soon they
print something, and those that answer requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any


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


def thread_settings(threads: int, omp_spin: str) -> dict[str, str]:
    """Environment variables: our threads, and how long idle ones of torch spin ("default": as they
    do)."""
    spin = {} if omp_spin == "default" else {"GOMP_SPINCOUNT": omp_spin}
    return {"GPTRS_NUM_THREADS": str(threads), "TQDM_DISABLE": "1", **spin}


def run_python(*arguments: str, **settings: str) -> str:
    """What Python prints."""
    command, env = [sys.executable, *arguments], os.environ | settings
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


def seconds_to_output(arguments: tuple[str, ...], **settings: str) -> float:
    """Seconds from starting Python to the first byte that it prints."""
    env = os.environ | settings
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    start, command = time.perf_counter(), [sys.executable, *arguments]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stdout.read(1), "no output"
        seconds = time.perf_counter() - start
        process.stdout.read()
    return seconds


def cold_and_warm(
    arguments: tuple[str, ...], bytecode: str, **settings: str
) -> tuple[float, float]:
    """Without kernels that were kept, and with those that the first run keeps."""
    with tempfile.TemporaryDirectory() as cache:
        given = {"PYTHONPYCACHEPREFIX": bytecode, "GPTRS_CACHE_DIR": cache, **settings}
        run = partial(seconds_to_output, arguments, **given)
        return run(), run()


class Worker:
    """A Python process that runs ``module`` and answers requests, each a line of JSON.

    It starts at once, on the cores that this process has then, and ends when it is closed.
    """

    def __init__(self, module: str, *arguments: str, **settings: str) -> None:
        command = [sys.executable, "-m", module, *arguments]
        pipe: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=os.environ | settings, **pipe)

    def ask(self, *request: Any) -> Any:
        """The answer to ``request``, which is a function of the module's and its arguments."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        if answer := process.stdout.readline():
            return json.loads(answer)
        raise SystemExit(f"{process.args} ended with {process.wait()} when asked for {request}")

    def close(self) -> None:
        self.process.communicate()


def serve(begin: Callable[[], dict[str, Callable[..., Any]]]) -> None:
    """Answer the requests of a `Worker` with the functions that ``begin`` returns by name.

    Whatever else is printed, by ``begin`` too, goes to stderr.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    functions = begin()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(functions[name](*arguments)), file=answers, flush=True)
