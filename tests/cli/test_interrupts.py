"""The command line in other processes: terminals, readers that go away, Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

import gptrs
from gptrs.loading.language_model import LanguageModel
from tests.support.cli import COMMAND, PATIENCE
from tests.support.models import tiny_gpt2

CTRL_C = 130
SHOW_CURSOR = b"\x1b[?25h"
HIDE_CURSOR = b"\x1b[?25l"


@pytest.fixture(scope="module")
def model(good: Path) -> LanguageModel:
    return gptrs.load(good)


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that never ends a text, with room for minutes of it, and slow at long prompts."""
    path = tmp_path_factory.mktemp("endless")
    return tiny_gpt2(path, n_positions=20_000, n_layer=12, eos_token_id=None)


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """A job in the background has SIGINT ignored, and the processes that it starts do too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that are ended when the test is over."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_it_quietly(
    endless: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    command = [COMMAND, "generate", "once", "--model", str(endless)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    processes.append(process)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(10).startswith(b"once")
    process.stdout.close()
    assert process.wait(PATIENCE) == -signal.SIGPIPE
    assert process.stderr.read() == b""


@pytest.mark.slow
def test_ctrl_c_while_streaming(endless: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    command = [COMMAND, "generate", "once", "--model", str(endless)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    processes.append(process)
    assert process.stdout is not None
    began = process.stdout.read(10)
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (CTRL_C, b"")
    assert (began + rest).startswith(b"once")


def read_until(terminal: int, pattern: bytes) -> bytes:
    """What a process writes to ``terminal``, up to a match of ``pattern`` or its end."""
    found = b""
    until = monotonic() + PATIENCE
    while not re.search(pattern, found):
        assert select.select([terminal], [], [], until - monotonic())[0], f"stuck after {found!r}"
        try:
            found += os.read(terminal, 1 << 12)
        except OSError:  # how Linux says that the other side was closed
            break
    return found


def on_a_terminal(
    processes: list[subprocess.Popen[bytes]], *arguments: str
) -> tuple[subprocess.Popen[bytes], int]:
    ours, theirs = pty.openpty()
    plain = os.environ | {"TERM": "xterm"}
    process = subprocess.Popen(
        [COMMAND, "generate", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=plain
    )
    os.close(theirs)
    processes.append(process)
    return process, ours


NEVER = rb"(?!)"


@pytest.mark.slow
def test_a_terminal_shows_progress_and_then_the_text(
    good: Path, model: LanguageModel, processes: list[subprocess.Popen[bytes]]
) -> None:
    process, terminal = on_a_terminal(processes, "once", "--model", str(good), "--max-tokens", "5")
    shown = read_until(terminal, NEVER)
    os.close(terminal)
    assert process.wait(PATIENCE) == 0
    progress, _, text = shown.rpartition(SHOW_CURSOR)
    assert b"loading" in progress or b"compiling" in progress
    assert not re.search(rb"compiling[^\r]*%", progress), "nobody knows how much of it is done"
    expected = "once" + model.generate("once", max_tokens=5) + "\n"
    assert text.decode().endswith(expected.replace("\n", "\r\n"))


@pytest.mark.slow
def test_ctrl_c_before_the_first_token(
    endless: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    process, terminal = on_a_terminal(processes, "x" * 2000, "--model", str(endless))
    shown = read_until(terminal, re.escape(HIDE_CURSOR))
    process.send_signal(signal.SIGINT)
    shown += read_until(terminal, NEVER)
    os.close(terminal)
    assert process.wait(PATIENCE) == CTRL_C
    assert shown.count(HIDE_CURSOR) == shown.count(SHOW_CURSOR) == 1
    assert b"Traceback" not in shown
    assert b"xxx" not in shown
    assert shown.endswith(b"\r\n")


def test_ctrl_c_while_starting(processes: list[subprocess.Popen[bytes]]) -> None:
    code = (
        "import os, signal, gptrs.cli.main as main\n"
        "class Interrupt:\n"
        "    def find_spec(self, *_): os.kill(os.getpid(), signal.SIGINT)\n"
        "import sys; sys.meta_path.insert(0, Interrupt())\n"
        "main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (CTRL_C, b"", b"")


@pytest.mark.slow
def test_a_ctrl_c_that_python_drops_still_ends_it() -> None:
    code = (
        "import os, signal, sys, weakref, gptrs.cli.main as main\n"
        "class Tree: pass\n"
        "leaf = Tree()\n"
        "reference = weakref.ref(leaf, lambda _: os.kill(os.getpid(), signal.SIGINT))\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'gptrs.loading.load': globals().pop('leaf', None)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv = ['gptrs', 'generate', 'Once', '--max-tokens', '3']\n"
        "main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (CTRL_C, b"", b"")
