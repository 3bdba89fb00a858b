"""Exceptions of signal handlers during compilation propagate, and leave the caches intact."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.tensor import Tensor
from gptrs.kernels.compiler import numba_lowering, shield
from gptrs.kernels.compiler.shield import shielded

pytestmark = [
    pytest.mark.usefixtures("fresh_kernels"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
]

X = np.arange(6, dtype=np.float32)


class OwnError(Exception):
    """What a handler raises."""


@pytest.fixture(params=[KeyboardInterrupt, TimeoutError, OwnError])
def raised(request: pytest.FixtureRequest) -> Generator[type[BaseException]]:
    """An exception that the handler of SIGALRM raises."""
    kind: type[BaseException] = request.param

    def handle(_signal: int, _frame: object) -> NoReturn:
        raise kind

    before = signal.signal(signal.SIGALRM, handle)
    yield kind
    signal.signal(signal.SIGALRM, before)


def send() -> None:
    """As a clock does it: to this process, whatever thread asked for it."""
    os.kill(os.getpid(), signal.SIGALRM)


def test_results_and_errors() -> None:
    word = ContextVar("word", default="")
    word.set("mine")
    assert shielded(lambda: (word.get(), threading.current_thread())) != (
        "mine",
        threading.main_thread(),
    )
    assert shielded(word.get) == "mine"
    with pytest.raises(ZeroDivisionError):
        shielded(lambda: 1 // 0)


def test_other_threads_have_no_handlers() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(shielded(threading.current_thread)))
    thread.start()
    thread.join()
    assert found == [thread]


def test_a_system_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(threading.Thread):
        def start(self) -> NoReturn:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(shield, "Thread", Refused)
    assert shielded(threading.current_thread) is threading.main_thread()


def test_an_exception_waits_for_the_end(raised: type[BaseException]) -> None:
    heard, done = threading.Event(), threading.Event()

    def work() -> None:
        send()
        heard.wait(0.2)  # the handler runs meanwhile, nobody sets this
        done.set()

    with pytest.raises(raised):
        shielded(work)
    assert done.is_set()


def test_a_second_exception_does_not_wait(raised: type[BaseException]) -> None:
    caught, done = threading.Event(), threading.Event()

    def work() -> None:
        while not caught.wait(0.05):
            send()
        done.set()

    with pytest.raises(raised) as found:
        shielded(work)
    assert isinstance(found.value.__context__, raised)
    caught.set()
    assert done.wait(30)


def test_a_signal_at_the_end(raised: type[BaseException]) -> None:
    """The other thread hears it, so that the main thread does so when it has waited."""
    for _ in range(50):
        with pytest.raises(raised):
            shielded(lambda: signal.raise_signal(signal.SIGALRM))
    assert shielded(lambda: 1) == 1


def test_a_handler_that_forks() -> None:
    """In the child nobody does the work that it waits for: it is begun again."""
    forked = threading.Event()
    children: list[int] = []

    def handle(_signal: int, _frame: object) -> None:
        children.append(os.fork())
        forked.set()

    def work() -> int:
        if not children:
            send()
            assert forked.wait(30)
        return os.getpid()

    before = signal.signal(signal.SIGALRM, handle)
    try:
        found = shielded(work)
        if children == [0]:
            os._exit(0 if found == os.getpid() else 1)
    except BaseException:
        if children == [0]:
            os._exit(2)
        raise
    finally:
        signal.signal(signal.SIGALRM, before)
    assert found == os.getpid()
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0


@pytest.mark.slow
def test_while_numba_compiles(
    raised: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    early: Any = numba_lowering._early_module  # pyright: ignore[reportPrivateUsage]
    sent: list[None] = []

    def interrupted(*given: object) -> Any:
        if not sent:
            sent.append(send())
        return early(*given)

    monkeypatch.setattr(numba_lowering, "_early_module", interrupted)

    @ptir.jit(backend="faer")
    def function(x: Any) -> Tensor:
        for _ in raised.__name__:  # nobody has compiled so many sines
            x = ptir.sin(x)
        return x

    with pytest.raises(raised):
        function(X)
    assert sent
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [], "nothing half done is kept"
    expected = X
    for _ in raised.__name__:
        expected = np.sin(expected)
    np.testing.assert_allclose(function(X).numpy(), expected, rtol=1e-5)
    assert {p.suffix for p in tmp_path.rglob("*") if p.is_file()} == {".kernel"}


IMPORT = """
import os, signal, sys, numpy, gptrs

armed, seen, interrupts = False, 0, 0

def interrupt(*_):
    global armed
    if armed:
        armed = False  # one at a time: the next may come outside of what catches it
        raise KeyboardInterrupt

class Finder:
    def find_spec(self, name, *_):
        global seen
        if name.partition(".")[0] == "numba":
            seen += 1
            if seen % 40 == 1:
                os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, interrupt)
sys.meta_path.insert(0, Finder())
x = numpy.ones(3, numpy.float32)
for number in 1.5, 2.5:
    function = gptrs.ptir.jit(lambda x: gptrs.ptir.tanh(x) * number)
    while True:
        try:
            armed = True
            result = function(x)
            armed = False
            break
        except KeyboardInterrupt:
            interrupts += 1
    print(numpy.allclose(result, numpy.tanh(x) * number))
print(interrupts > 0, seen > 200)
"""


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GPTRS_CACHE_DIR": str(folder), "GPTRS_BACKEND": "faer"}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_while_numba_is_imported(tmp_path: Path) -> None:
    done = run(IMPORT, tmp_path)
    assert (done.stdout, done.stderr) == ("True\nTrue\nTrue True\n", "")


END = """
import os, signal, sys, numpy, gptrs

class Finder:
    def find_spec(self, name, *_):
        if name == "numba.core.types":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
gptrs.ptir.jit(lambda x: gptrs.ptir.tanh(x) * 2)(numpy.ones(3, numpy.float32))
"""


@pytest.mark.slow
def test_a_program_that_an_interrupt_ends(tmp_path: Path) -> None:
    done = run(END, tmp_path)
    assert done.returncode == -signal.SIGINT
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert done.stderr.count("Traceback") == 1
