"""Compiler processes: the same code as in this process, and recovery when they fail."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import closing
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from gptrs import events
from gptrs.isolated import start_python
from gptrs.kernels.compiler import compile_processes, isa, loaded_object
from gptrs.kernels.compiler.cache_key import Code, compiler_version
from gptrs.kernels.compiler.codegen import KernelError
from gptrs.kernels.compiler.compile import Kernel, compile_ir
from gptrs.kernels.compiler.compile_job import CompileJob
from gptrs.kernels.compiler.compile_processes import Answer, object_codes
from gptrs.kernels.compiler.loaded_object import KernelReady, Library, together
from gptrs.kernels.driver.threads import limit_threads
from tests.support.kernels import COUNT_IR, DOUBLE_IR, SCALE, run

pytestmark = pytest.mark.usefixtures("fresh_kernels")

TARGET = isa.target(isa.current())
CODES = [
    Code("llvm", DOUBLE_IR, ("double",)),
    Code("llvm", COUNT_IR, ("count",)),
    Code("python", SCALE, ("scale",)),
]
WRONG = DOUBLE_IR.replace("fadd float", "nonsense float")

Names = list[tuple[str, ...]]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Names:
    """What this process compiles, which has no kernels yet, not on disk either."""
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
    monkeypatch.setattr(loaded_object, "_libraries", dict[str, Library]())
    found: Names = []
    build = Code.build

    def noted(self: Code, target: isa.Target) -> bytes:
        found.append(self.names)
        return build(self, target)

    monkeypatch.setattr(Code, "build", noted)
    return found


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that were started."""
    found: list[subprocess.Popen[bytes]] = []
    start: Any = subprocess.Popen

    def noted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        found.append(start(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    return found


def wait_for_others(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Have this process compile nothing until others gave ``count`` answers."""
    given: list[Answer] = []
    as_always = compile_processes._next  # pyright: ignore[reportPrivateUsage]

    def next_one(waiting: deque[Code], answers: SimpleQueue[Answer]) -> Answer:
        if len(given) == count:
            return as_always(waiting, answers)
        given.append(answers.get())
        return given[-1]

    monkeypatch.setattr(compile_processes, "_next", next_one)


def made(codes: list[Code], processes: int) -> None:
    """Compile ``codes``, and see that they run."""
    with closing(object_codes(codes, TARGET, processes)) as answers:
        for code, data, _ in answers:
            found = Library(code, TARGET, "")
            found.take(data, 0.0)
            if code.names == ("double",):
                x = np.arange(4, dtype=np.float32)
                run(Kernel("double", found, code), x, extent=(0, 4))
                assert (x == [0, 2, 4, 6]).all()


def test_a_job_survives_json() -> None:
    for code in CODES:
        job = code.job(TARGET)
        assert CompileJob.from_json(job.to_json()) == job


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_others_compile_all(processes: int, monkeypatch: pytest.MonkeyPatch, here: Names) -> None:
    wait_for_others(monkeypatch, len(CODES))
    made(CODES, processes)
    assert not here


@pytest.mark.slow
def test_an_error_is_the_one_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_others(monkeypatch, 1)
    with pytest.raises(KernelError, match="nonsense") as found:
        made([Code("llvm", WRONG, ("double",))], 1)
    assert "kernel double" in str(found.value)


GREETED = """
from gptrs.kernels.compiler.cache_key import compiler_version
print(compiler_version(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "text"),
    [
        (0, "raise SystemExit(1)"),
        (0, "print('another version')"),
        (0, "import time; time.sleep(600)"),
        (0, "import sys; sys.stdout.buffer.write(b'\\xff' * 100)"),
        (1, GREETED + "input()"),
        (1, GREETED + "input(); print('no answer')"),
        (1, GREETED + "input(); print('1000000 0.1'); print('too little')"),
    ],
    ids=["ends", "another", "sleeps", "no text", "dies", "wrong answer", "short answer"],
)
def test_this_process_does_what_another_does_not(
    answers: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    here: Names,
    started: list[subprocess.Popen[bytes]],
) -> None:
    monkeypatch.setattr(compile_processes, "_START", text)
    wait_for_others(monkeypatch, answers)
    made(CODES, 1)
    assert sorted(here) == sorted(code.names for code in CODES)
    assert [process.poll() is not None for process in started] == [True]


@pytest.mark.slow
def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch, here: Names) -> None:
    monkeypatch.setattr(compile_processes, "_START", GREETED + "import time; time.sleep(600)")
    monkeypatch.setattr(compile_processes, "_TIMEOUT", 0.1)
    as_always = compile_processes._next  # pyright: ignore[reportPrivateUsage]

    def next_one(waiting: deque[Code], answers: SimpleQueue[Answer]) -> Answer:
        while len(waiting) == len(CODES):
            time.sleep(0.01)  # until the other one has taken what it will not answer
        return as_always(waiting, answers)

    monkeypatch.setattr(compile_processes, "_next", next_one)
    made(CODES, 1)
    assert sorted(here) == sorted(code.names for code in CODES)


@pytest.mark.slow
def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch, here: Names) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    made(CODES, 2)
    assert len(here) == len(CODES)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [False, True])
def test_what_is_no_interpreter_is_not_started(
    frozen: bool, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    if frozen:
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    else:
        monkeypatch.setattr(sys, "executable", "/usr/bin/an-editor")
    made(CODES, 2)
    assert not started


def test_processes_end_with_an_interrupt(started: list[subprocess.Popen[bytes]]) -> None:
    answers = object_codes(CODES, TARGET, 2)
    next(answers)
    with pytest.raises(KeyboardInterrupt):
        answers.throw(KeyboardInterrupt)
    assert [process.returncode for process in started] == [-signal.SIGKILL] * 2


@pytest.mark.slow
def test_a_process_ends_with_its_jobs_and_not_at_ctrl_c() -> None:
    code, pipe = compile_processes._START, subprocess.PIPE  # pyright: ignore[reportPrivateUsage]
    with start_python("-c", code, stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().decode().strip() == compiler_version()
        process.send_signal(signal.SIGINT)
        process.stdin.write(CODES[0].job(TARGET).to_json().encode() + b"\n")
        process.stdin.close()
        size, seconds = process.stdout.readline().split()
        assert len(process.stdout.read()) == int(size) > 0
        assert float(seconds) > 0
    assert process.returncode == 0


def test_kernels_are_compiled_where_the_outer_block_ends(here: Names) -> None:
    heard: list[KernelReady] = []

    def hear(event: object) -> None:
        if isinstance(event, KernelReady):
            heard.append(event)

    with events.listen(hear):
        with together():
            with together():
                kernels = [compile_ir(DOUBLE_IR, "double"), compile_ir(COUNT_IR, "count")]
                kernels.append(compile_ir(COUNT_IR, "count"))
            assert not here
        assert len(here) == len(heard) == 2
        assert kernels[1].address == kernels[2].address
    assert len(here) == len(heard) == 2


def test_an_address_does_not_wait_for_the_end(here: Names) -> None:
    with together():
        x = np.arange(4, dtype=np.float32)
        run(compile_ir(DOUBLE_IR, "double"), x, extent=(0, 4))
        assert here == [("double",)]
        assert x[3] == 6
    assert here == [("double",)]


def test_an_error_in_the_block_compiles_nothing(here: Names) -> None:
    kernels: list[Kernel] = []

    def fail() -> None:
        with together():
            kernels.append(compile_ir(COUNT_IR, "count"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not here
    assert kernels[0].address
    assert compile_ir(COUNT_IR, "count").library is kernels[0].library
    assert here == [("count",)]


def test_what_cannot_be_compiled_is_an_error_each_time() -> None:
    kernels: list[Kernel] = []
    with pytest.raises(KernelError, match="nonsense"), together():
        kernels.append(compile_ir(WRONG, "double"))
    with pytest.raises(KernelError, match="nonsense"):
        _ = kernels[0].address
    with pytest.raises(KernelError, match="nonsense"):
        compile_ir(WRONG, "double")


@pytest.mark.slow
def test_processes_are_started_where_they_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    codes_of = compile_processes.object_codes

    def noted(codes: list[Code], target: isa.Target, processes: int) -> Any:
        asked.append(processes)
        return codes_of(codes, target, 0)

    monkeypatch.setattr(compile_processes, "object_codes", noted)

    def ask(first: int, count: int) -> None:
        with together():
            for number in range(first, first + count):
                name = f"count{number}"
                compile_ir(COUNT_IR.replace("@count", f"@{name}"), name)

    monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
    monkeypatch.setenv("GPTRS_COMPILE_PROCESSES", "2")
    with limit_threads(3):
        ask(0, 3)
        ask(10, 4)
        ask(20, 12)
    with limit_threads(2):
        ask(40, 12)
    with limit_threads(1):
        ask(60, 12)
    monkeypatch.setenv("GPTRS_COMPILE_PROCESSES", "0")
    with limit_threads(3):
        ask(80, 12)
    assert asked == [0, 1, 2, 1, 0, 0]
