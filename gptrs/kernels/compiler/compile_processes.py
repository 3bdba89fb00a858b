"""Worker processes that compile kernels in parallel, as LLVM compiles one module at a time.

The protocol: a worker process first writes a line with its compiler version; then it reads jobs
(`CompileJob`), a line of JSON each, and answers each with a line (bytes, seconds) and the object
code; no bytes mean failure. Worker processes are started for a batch of jobs and end with it.
Whatever fails in a worker process, this process compiles what is left, so that errors are raised
here. Called by `gptrs.kernels.compiler.loaded_object`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, TypeAlias, cast

from gptrs.isolated import start_python
from gptrs.kernels.compiler.cache_key import Code, compiler_version
from gptrs.kernels.compiler.codegen import KernelError
from gptrs.kernels.compiler.compile_job import CompileJob
from gptrs.kernels.compiler.isa import Target

_START = "from gptrs.kernels.compiler.compile_processes import serve; serve()"

_TIMEOUT = 60.0  # seconds without an answer, after which this process compiles what is left

Answer: TypeAlias = tuple[Code, bytes, float]


def object_codes(
    codes: Sequence[Code], target: Target, processes: int
) -> Generator[Answer, None, None]:
    """The object code of ``codes`` in any order, and the seconds that each took.

    Up to so many other ``processes`` help. Raises `KernelError`.
    """
    # Worker processes take jobs from the front, which need Numba: this process may avoid importing
    # it.
    waiting = deque(sorted(codes, key=lambda code: code.language != "python"))
    answers: SimpleQueue[Answer] = SimpleQueue()
    others: list[_WorkerProcess] = []
    try:
        with suppress(OSError):
            for _ in range(processes if _can_start() else 0):
                others.append(_WorkerProcess(waiting, answers, target))
        left = dict.fromkeys(codes)
        while left:
            try:
                code, data, seconds = _next(waiting, answers)
            except Empty:
                code, data, seconds = next(iter(left)), b"", 0.0
            if code not in left:
                continue  # it comes too late
            del left[code]
            if not data:
                start = time.perf_counter()
                data = code.build(target)
                seconds = time.perf_counter() - start
            yield code, data, seconds
    finally:
        waiting.clear()
        for other in others:
            other.end()


def _next(waiting: deque[Code], answers: SimpleQueue[Answer]) -> Answer:
    """An answer, or without bytes a job for this process. Raises `Empty` after `_TIMEOUT`."""
    if answers.empty():
        with suppress(IndexError):
            return waiting.pop(), b"", 0.0
    return answers.get(timeout=_TIMEOUT)


def _can_start() -> bool:
    """Whether this program is a Python interpreter, rather than something that contains one."""
    return "python" in os.path.basename(sys.executable or "") and not hasattr(sys, "frozen")


class _WorkerProcess:
    """A worker process, and the thread that sends it the waiting jobs. Raises `OSError`."""

    def __init__(self, waiting: deque[Code], answers: SimpleQueue[Answer], target: Target) -> None:
        self._waiting, self._answers, self._target = waiting, answers, target
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        self._process = start_python("-c", _START, stdin=pipe, stdout=pipe, stderr=nothing)
        self._thread = Thread(target=self._hand_out, name="gptrs-compiler", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop the process, whatever it is doing."""
        with suppress(OSError), self._process as process:  # closes the pipes and waits
            process.kill()
            self._thread.join()

    def _hand_out(self) -> None:
        process = self._process
        jobs, answers = cast("tuple[IO[bytes], IO[bytes]]", (process.stdin, process.stdout))
        if answers.readline().strip() != compiler_version().encode():
            return  # it has other sources, or did not start
        with suppress(Exception):  # raised again when this process compiles the job
            while self._waiting:
                code, data, seconds = self._waiting.popleft(), b"", 0.0
                try:
                    jobs.write(code.job(self._target).to_json().encode() + b"\n")
                    jobs.flush()
                    size, taken = answers.readline().split()
                    read = answers.read(int(size))
                    if len(read) == int(size):
                        data, seconds = read, float(taken)
                finally:
                    self._answers.put((code, data, seconds))


def serve() -> None:
    """Compile jobs from the standard input until it ends, for `object_codes`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of other code is no answer
    answers.write(compiler_version().encode() + b"\n")
    answers.flush()
    for line in sys.stdin.buffer:
        start, data = time.perf_counter(), b""
        with suppress(KernelError):  # raised where the error is of use
            data = CompileJob.from_json(line).object_code()
        answers.write(f"{len(data)} {time.perf_counter() - start}\n".encode() + data)
        answers.flush()
