"""Running ``gptrs`` in the process of a test: exit code and output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs.cli.app import run

COMMAND = str(Path(sys.executable).with_name("gptrs"))
PATIENCE = 60  # seconds until a process counts as stuck


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Cli = Callable[..., Done]


def in_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *first: str
) -> Cli:
    """A function that runs ``gptrs`` with the arguments ``first`` and its own."""

    def call(*arguments: str) -> Done:
        monkeypatch.setattr("sys.argv", ["gptrs", *first, *arguments])
        code = run()
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return call


def rows(out: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in out.splitlines()]


def saved(cli: Cli, out: Path, *arguments: str) -> NDArray[Any]:
    """The logits that a command writes."""
    done = cli(*arguments, "--out", str(out))
    assert (done.code, done.err) == (0, "")
    return np.load(out)
