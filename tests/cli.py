"""Running ``gptrs`` in the process of a test: what it returned and what it said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from gptrs.cli.app import run


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
