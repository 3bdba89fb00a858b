"""Code blocks of the documentation, and how a page's blocks run one after the other.

- ``python``: blocks of a page share one namespace and a temporary working directory.
- ``text`` directly after it: what the block prints; ``...`` stands for any text. A block that
  raises ends with ``Class: message`` there.
- ``pycon``: a session in the same namespace, checked as doctest does.
- ``console``: ``$ command`` lines, each with its output; without output lines nothing is compared.
- ``json``, ``yaml``, ``toml``: the text parses.
- without a language: a drawing or pseudo-code, which nothing checks.
- ``<!-- not run: reason -->`` before a block: nothing of it runs.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import linecache
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import ModuleType

import yaml

from gptrs.cli.app import run
from tests.support import ROOT

COMMANDS = {"gptrs", "python", "echo", "cat", "ls"}
_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\S*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.S | re.M
)
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*$", re.S)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    follows: bool
    """Nothing is between this block and the one before it."""
    not_run: str
    """Why it does not run; empty if it does."""


def blocks(path: Path) -> list[Block]:
    page, found, end = path.read_text(encoding="utf-8"), list[Block](), 0
    for match in _BLOCK.finditer(page):
        between = page[end : match.start()]
        marker = _NOT_RUN.search(between)
        text = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.M)
        line = page.count("\n", 0, match.start("text")) + 1
        reason = marker[1] if marker else ""
        follows = bool(found) and not between.strip()
        found.append(Block(match["language"], text, line, follows, reason))
        end = match.end()
    return found


def run_page(path: Path) -> None:
    """Run the blocks of a page in this process, and leave files in its working directory.

    Raises `AssertionError` for a block that does not do what the page shows.
    """
    module = ModuleType(f"page_{path.stem.replace('-', '_')}")
    sys.modules[module.__name__] = module  # dataclasses look for the module of a class
    found = blocks(path)
    try:
        for block, after in zip_longest(found, found[1:]):
            if not block.not_run:
                shown = after if after and after.language == "text" and after.follows else None
                _run(block, shown, f"{path.name}:{block.line}", module)
    finally:
        del sys.modules[module.__name__]


def _run(block: Block, shown: Block | None, place: str, module: ModuleType) -> None:
    match block.language:
        case "python":
            printed = _run_python(block, shown is not None, module)
            if shown is not None:
                _check(shown.text, printed, place)
        case "pycon":
            _run_session(block, place, module)
        case "console":
            _run_commands(block, place)
        case "json":
            json.loads(block.text)
        case "yaml":
            yaml.safe_load(block.text)
        case "toml":
            tomllib.loads(block.text)
        case "text" | "":
            pass
        case other:
            raise AssertionError(f"{place}: a block of {other!r} is not known")


def _run_python(block: Block, may_raise: bool, module: ModuleType) -> str:
    """What a block prints; an error, which has to be shown, is its last line."""
    name = f"{module.__name__.removeprefix('page_')}.py"
    linecache.cache[name] = (len(block.text), None, block.text.splitlines(keepends=True), name)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(block.text, name, "exec"), vars(module))
        except Exception as error:
            if not may_raise:
                raise
            print(f"{type(error).__name__}: {error}")
    return out.getvalue()


def _run_session(block: Block, place: str, module: ModuleType) -> None:
    # A blank line in a session is one that was printed.
    text = re.sub(r"^$", "<BLANKLINE>", block.text.rstrip(), flags=re.M) + "\n"
    test = doctest.DocTestParser().get_doctest(text, vars(module), place, place, 0)
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    result = runner.run(test, out=failures.append, clear_globs=False)
    vars(module).update(test.globs)  # the session ran in a copy
    assert not result.failed, "".join(failures)
    assert result.attempted, f"{place}: no line begins with >>>"


def _run_commands(block: Block, place: str) -> None:
    """Run each ``$`` line with its ``>`` lines, and compare what it printed."""
    for match in re.finditer(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", block.text, re.M):
        command, expected = re.sub(r"^> ", "", match[1], flags=re.M), match[2]
        words = shlex.split(command, comments=True)
        first = next(word for word in words if not re.match(r"[A-Z_]+=", word))
        assert first in COMMANDS, f"{place}: {first!r} is none of {sorted(COMMANDS)}"
        plain = words[0] == "gptrs" and not re.search(r"[|<>;&$`]", command)
        code, said = _in_process(words) if plain else _in_shell(command)
        assert code == 0, f"{place}: {command}{said}"
        if expected.strip():
            _check(expected, said, f"{place}: {command}")


def _in_process(words: list[str]) -> tuple[int, str]:
    """Exit status and output of the command line, without the time that a process takes."""
    said, arguments = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), sys.argv
    sys.argv = words
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = run()
    finally:
        sys.argv = arguments
    said.seek(0)
    return code, said.read()


def _in_shell(command: str) -> tuple[int, str]:
    path = f"{_programs()}:/usr/bin:/bin"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def _programs() -> Path:
    """A folder with ``gptrs`` and ``python`` of this interpreter."""
    folder = Path.cwd() / ".programs"
    if not folder.exists():
        folder.mkdir()
        for name, arguments in (("gptrs", "-m gptrs "), ("python", "")):
            (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
            (folder / name).chmod(0o755)
    return folder


def _check(expected: str, found: str, place: str) -> None:
    """Compare but for the number of spaces within lines and at their ends; ``...`` is any text."""
    said, real = (_spaced(text) for text in (expected, found))
    pattern = ".*?".join(re.escape(part) for part in said.split("..."))
    assert re.fullmatch(pattern, real, re.S), f"{place}: the page says\n{said}\n\nfound\n{real}"


def _spaced(text: str) -> str:
    lines = (re.sub(r"(?<=\S) +", " ", line.rstrip()) for line in text.strip("\n").splitlines())
    return "\n".join(lines)


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))
