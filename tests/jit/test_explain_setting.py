"""GPTRS_EXPLAIN: a line on stderr for each trace, and a table at exit."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

import numpy as np
import pytest

from gptrs import ptir, settings
from gptrs.errors import PtirError, SettingError
from gptrs.jit.cache import Counters
from tests.support import ROOT
from tests.support.jitted import X, array

TIMES = r"[\d.]+ ms \(trace [\d.]+ ms, passes [\d.]+ ms, plan [\d.]+ ms\)"


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[], list[str]]:
    """The lines on stderr since the last call, with GPTRS_EXPLAIN=1."""
    monkeypatch.setenv("GPTRS_EXPLAIN", "1")

    def lines() -> list[str]:
        out, err = capsys.readouterr()
        assert out == ""
        return err.splitlines()

    return lines


def test_a_line_for_each_trace(said: Callable[[], list[str]]) -> None:
    step = ptir.jit(name="step")(lambda x, scale=1.0: x * scale)
    step(X)
    step(X)
    step(array(5))
    step(X.astype(np.float64))
    first, size, dtype = said()
    at = r"gptrs: step at \S+test_explain_setting.py:\d+ in test_a_line_for_each_trace"
    assert re.fullmatch(rf"{at}, traced for the first call; {TIMES}", first)
    fix = re.escape("fix: make the axis symbolic: ptir.jit(dynamic={'x': {0: 'S'}})")
    assert re.fullmatch(rf"{at}, traced for argument x: axis 0: 3 → 5; {TIMES}; {fix}", size)
    assert dtype.endswith("fix: convert x to f32 before the call")


def test_a_trace_that_fails_has_a_line(said: Callable[[], list[str]]) -> None:
    step = ptir.jit(name="step")(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(PtirError):
        step(X)
    (line,) = said()
    assert re.search(r"traced for the first call; [\d.]+ ms; the trace failed$", line)


@pytest.mark.parametrize("text", ["", "0"])
def test_no_line(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPTRS_EXPLAIN", text)
    ptir.jit(lambda x: x + 1)(X)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", "1"), (" Summary ", "summary"), ("summary,1", "1,summary"), ("0", ""), ("", "")],
)
def test_values(text: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_EXPLAIN", text)
    assert settings.explain() == value


@pytest.mark.parametrize("text", ["2", "yes", "1,table"])
def test_no_values(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_EXPLAIN", text)
    with pytest.raises(SettingError, match="expected 1, summary or 1,summary"):
        ptir.jit(lambda x: x + 1)(X)


@pytest.mark.parametrize("closed", [False, True])
def test_without_stderr(
    closed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Closed:
        def write(self, text: str) -> int:
            raise ValueError("I/O operation on closed file")

    monkeypatch.setenv("GPTRS_EXPLAIN", "1")
    monkeypatch.setattr(sys, "stderr", Closed() if closed else None)
    assert ptir.jit(lambda x: x + 1)(X).tolist() == [1, 2, 3]
    assert capsys.readouterr().out == ""


def test_threads_say_whole_lines(said: Callable[[], list[str]]) -> None:
    step = ptir.jit(name="step")(lambda x: x * 2)
    threads = [threading.Thread(target=step, args=(array(n % 4 + 1),)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = said()
    assert len(lines) == 4
    assert all(line.startswith("gptrs: step") for line in lines)


def test_hits_are_counted_by_the_cache() -> None:
    """Native calls too, and from before `clear_cache`."""
    step = ptir.jit(lambda x: x + 1)
    counters: Counters = step._cache.counters  # pyright: ignore[reportPrivateUsage]
    for _ in range(20):
        step(X)
    assert step.cache_info()[:2] == (19, 1)
    step.clear_cache()
    assert step.cache_info()[:2] == (0, 0)
    step(X)
    step(X)
    assert step.cache_info()[:2] == (1, 1)
    assert (counters.hits(), counters.misses) == (20, 2)


HEAD = """
    import numpy as np, os, sys, threading
    from gptrs import ptir

    @ptir.jit
    def step(x):
        return x + 1

    @ptir.jit
    def once(x):
        return x * 2

    def sizes(*counts):
        for count in counts:
            step(np.ones(count, np.float32))
"""


def table(source: str, expected_code: int = 0, explain: str = "summary") -> str:
    """Stderr of a process that runs the lines, which have ``step``, ``once`` and ``sizes``."""
    script = textwrap.dedent(HEAD) + textwrap.dedent(source)
    env = {**os.environ, "GPTRS_EXPLAIN": explain, "GPTRS_BACKEND": "reference"}
    env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.returncode == expected_code, done.stderr
    assert done.stdout == ""
    return done.stderr


def rows(text: str) -> list[list[str]]:
    """The cells of each table in ``text``."""
    found = re.findall(r"^  (?!File).*", text, re.MULTILINE)
    return [re.split(r"  +", line.strip()) for line in found]


@pytest.mark.slow
def test_the_table_at_exit() -> None:
    text = table("""
        once(np.ones(2, np.float32))
        sizes(*range(1, 9), *range(1, 9), 8, 8)
        twice = [ptir.jit(lambda y: y + 1, name="twice") for _ in range(4)]
        for function in twice:
            function(1.0)
    """)
    lead, *_ = text.splitlines()
    assert re.fullmatch(r"gptrs: 3 functions traced 13 times in [\d.]+ ms", lead)
    head, *others = rows(text)
    assert head == ["function", "calls", "hits", "misses", "ms", "commonest reason", "advice"]
    named = {row[0]: row for row in others}
    assert named["step"][1:4] == ["18", "10", "8"]
    fix = "make the axis symbolic: ptir.jit(dynamic={'x': {0: 'S'}})"
    assert named["step"][5:] == ["argument x: axis 0, 7 of 7", fix]
    assert named["once"][1:4] == ["1", "0", "1"]
    assert named["once"][5:] == ["the first call"]
    assert named["twice"][5:] == ["the first call, 4 of 4", "decorate it once: it was 4 times"]
    spent = [float(row[4]) for row in others]
    assert spent == sorted(spent, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "code", "tables"),
    [
        ("", 0, 0),
        ("sizes(1)\nraise SystemExit(3)", 3, 1),
        ("sizes(1)\nraise RuntimeError('on purpose')", 1, 1),
        ("sizes(1)\nsys.stderr.close()", 0, 0),
        ("sizes(1)\nsys.stderr = None", 0, 0),
        ("sizes(1)\nstep.clear_cache()\ndel step", 0, 1),
        ("sizes(1)\nif (child := os.fork()): os.waitpid(child, 0)", 0, 1),
        ("sizes(1)\nif (child := os.fork()): os.waitpid(child, 0)\nelse: sizes(1, 2, 2)", 0, 2),
        ("[threading.Thread(target=sizes, args=(n % 3 + 1,)).start() for n in range(9)]", 0, 1),
    ],
)
def test_exits(source: str, code: int, tables: int) -> None:
    text = table(source, code)
    assert text.count("commonest reason") == tables
    assert len(rows(text)) == 2 * tables
    assert ("on purpose" in text) == ("on purpose" in source)
    if "(1, 2, 2)" in source:  # the child counts what it called itself
        assert "forked process" in text
        assert sorted(row[1:4] for row in rows(text))[:2] == [["1", "0", "1"], ["2", "1", "1"]]


@pytest.mark.slow
def test_both_at_once() -> None:
    lines = table("sizes(1, 2, 2)", explain="1,summary").splitlines()
    assert [line.startswith("gptrs: step at <string>") for line in lines[:3]] == [True, True, False]
    assert lines[2].startswith("gptrs: 1 function traced 2 times in")
