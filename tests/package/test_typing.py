"""Public types: ops of `ptir`, jitted functions, layers and models."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gptrs import ptir
from gptrs.ir.dispatch import OPS
from tests.support import ROOT

USER_CODE = "tests/typing/user_code.py"


def test_every_op_has_its_name_and_its_type() -> None:
    ops = {name for name, op in OPS.items() if op.__module__.startswith("gptrs.")}
    assert ops <= set(ptir.__all__)
    assert len(ptir.__all__) == len(set(ptir.__all__))
    assert all(hasattr(ptir, name) for name in ptir.__all__)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["basedpyright", "--level", "error"], ["mypy", "--strict", "--no-incremental"]],
    ids=lambda command: command[0],
)
def test_user_code(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command, USER_CODE], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
