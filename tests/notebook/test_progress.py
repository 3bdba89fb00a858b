"""``gptrs.progress``: long work is shown while it goes on, by threads, terminals and kernels."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import sleep

import pytest

import gptrs
from gptrs import events
from gptrs.events import Work
from gptrs.notebook import progress as module
from gptrs.notebook.display import Display, TerminalDisplay
from gptrs.notebook.progress import Progress, described, share_of
from tests.support.html_pages import Page
from tests.support.ipython_kernel import Kernel

SOON = 60.0  # seconds until what must come has come


class Recorded(Display):
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.drawn = Event()

    def show(self, text: str, share: float | None) -> None:
        self.texts.append(text)
        self.drawn.set()

    def clear(self) -> None:
        self.texts.append("")


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    """What shows the work of this process, at once."""
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    made = Recorded()
    events.watch_work(Progress(lambda: made))
    yield made
    events.watch_work(None)


def test_long_work_is_shown_until_it_ends(display: Recorded) -> None:
    with events.working("compiling f"):
        assert display.drawn.wait(SOON)
    assert set(display.texts[:-1]) == {"compiling f"}
    assert display.texts[-1] == ""


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_it_ends_with_an_error(display: Recorded, error: type[BaseException]) -> None:
    def fail() -> None:
        with events.working("compiling f"):
            assert display.drawn.wait(SOON)
            raise error

    with pytest.raises(error):
        fail()
    assert display.texts[-1] == ""


def test_short_work_is_not_shown(display: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 3600.0)
    with events.working("compiling f"):
        pass
    assert display.texts == []


def test_measurements_are_not_shown(display: Recorded) -> None:
    with events.silence(), events.working("compiling f") as work:
        work.done += 1
    assert display.texts == []


def test_work_that_an_interrupt_left(display: Recorded) -> None:
    watcher = Progress(lambda: display)
    watcher.begin(Work("compiling f"))
    assert display.drawn.wait(SOON)
    watcher.end_all()
    assert display.texts[-1] == ""
    watcher.end(Work("of a cell before"))


def test_the_words() -> None:
    inner = Work("compiling", 14, "kernels", 3)
    works = [Work("generating", 0, "tokens", 2), Work("compiling gpt2"), inner]
    assert described(works) == "generating 2 tokens › compiling gpt2 › compiling 3 of 14 kernels"
    assert described([Work("loading weights", 200, done=50)]) == "loading weights 25 %"
    assert [share_of(inner), share_of(works[1])] == [3 / 14, None]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "is_shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_a_terminal(stream: io.StringIO, is_shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "20")
    display = TerminalDisplay()
    display.show("compiling something long", 0.5)
    display.clear()
    written = stream.getvalue()
    assert written == ("\r\x1b[K 50 % compiling som\r\x1b[K" if is_shown else "")


def test_scripts_show_nothing_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    assert events._watchers == []  # pyright: ignore[reportPrivateUsage]
    gptrs.progress()
    (watcher,) = events._watchers  # pyright: ignore[reportPrivateUsage]
    assert isinstance(watcher, Progress)
    with events.working("compiling f"):
        for _ in range(int(SOON * 1000)):
            if "compiling f" in stream.getvalue():
                break
            sleep(0.001)
    assert stream.getvalue().endswith("compiling f …\r\x1b[K")
    gptrs.progress(False)
    assert events._watchers == []  # pyright: ignore[reportPrivateUsage]


PATIENT_COMPILER = """
%env GPTRS_CACHE_DIR={new}
from time import sleep
from unittest import mock
from gptrs.kernels.compiler import compile_processes

def first_and_wait(*given, made=compile_processes.object_codes):
    for each in made(*given):
        yield each
        sleep(3600)  # until the interrupt, however late it comes

patch = mock.patch.object(compile_processes, "object_codes", first_and_wait)
"""
COMPILING = """
@ptir.jit
def many(x):
    for n in range(6):
        x = ptir.exp(x * n) / ptir.exp(x).sum()
    return x

with patch:
    many(X)
"""
GENERATING = """
model.generate("Once", max_tokens=10**6, context_shift=True, ignore_eos=True)
"""
KINDS = {
    "compiling": (
        COMPILING,
        PATIENT_COMPILER,
        "compiling many",
        "print(len(many(X)), len(many.retraces()))",
        "3 1\n",
    ),
    "generating": (
        GENERATING,
        "model = gptrs.load('stories')",
        "generating",
        "print(len(model.generate('Once', max_tokens=5)) > 5)",
        "True\n",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "before", "words", "again", "text"), KINDS.values(), ids=KINDS)
def test_interrupted_work(
    kernel: Kernel, cell: str, before: str, words: str, again: str, text: str, tmp_path: Path
) -> None:
    kernel.run(before.format(new=tmp_path))
    kernel.run("progress._PATIENCE = 0.01")
    found = kernel.run(cell, interrupt_at="display_data")
    after, cached = kernel.run(again), kernel.run(again)
    kernel.run("progress._PATIENCE = 3600")
    kernel.run(f"%env GPTRS_CACHE_DIR={os.environ['GPTRS_CACHE_DIR']}")

    assert words in Page(found.shown[0]).text
    assert found.html == [""], "it is gone"
    assert found.traceback.rstrip().endswith("KeyboardInterrupt:")
    where = re.findall(r"^(?:Cell In\[\d+\], line|File ).*", found.traceback, re.M)
    assert where
    assert all(each.startswith("Cell In[") for each in where), found.traceback
    for done in (after, cached):
        assert (done.text, done.traceback) == (text, "")
        assert {*done.html} <= {""}
