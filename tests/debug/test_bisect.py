"""``gptrs bisect``: finds a wrong rewrite by its number, and reports its rule and place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.cli.app import run
from gptrs.debug.fuel import limited_fuel
from gptrs.errors import SettingError

PATIENCE = 120  # seconds until a process counts as stuck
COMMAND = str(Path(sys.executable).with_name("gptrs"))

WRONG = """
import os, signal, sys
import numpy as np
from gptrs import ptir
from gptrs.ir.rewrite import apply_rules, rewrite
from gptrs.ir.tensor import Tensor
from gptrs.passes import pipeline

@rewrite(lambda x, y: ptir.maximum(x, y), samples=[{"x": "f32[3]", "y": "f32[3]"}])
def confuse_extremes(x: Tensor, y: Tensor) -> Tensor:
    "Wrong on purpose."
    least = ptir.minimum(x, y)
    return least.astype("f16") if "ill-typed" in sys.argv else least

def confuse(program, context):
    if "ill-formed" in sys.argv:
        lost = lambda each: each.op.name == "sub" and context.fuel.spend("lose sub")
        return program.with_body([i for i in program.body if not lost(i)], program.results)
    return apply_rules(program, (confuse_extremes,), context.fuel)

pipeline.PIPELINE = (*pipeline.PIPELINE, confuse)

@ptir.jit(backend="reference")
def before(x):
    return -(-x)

@ptir.jit(backend="reference")
def choose(x, y):
    once = ptir.exp(x) - ptir.exp(x)
    return ptir.maximum(once, y)  # the line

x = np.array([1.0, 2.0], np.float32)
before(x)
wrong = choose(x, x + 1).numpy().tolist() != [2.0, 3.0]
before(x[:1])
print("looked at it")
if wrong and "crash" in sys.argv:
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(3 if wrong else 0)
"""
LINE = WRONG.splitlines().index("    return ptir.maximum(once, y)  # the line") + 1

Bisect = Callable[..., tuple[int, str, str]]


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    return str(file)


@pytest.fixture
def bisect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bisect:
    """Runs ``gptrs bisect`` in this process: its exit code and what it said."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["gptrs", "bisect", *arguments])
        code = run()
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.mark.slow
def test_the_guilty_rewrite_is_named(bisect: Bisect, script: str) -> None:
    code, out, err = bisect("--", sys.executable, script)
    assert code == 0, err
    first, place, *rest = out.splitlines()
    assert first.startswith("rewrite ")
    assert first.endswith(": confuse_extremes, in the pass confuse, of the program choose")
    assert place == f"  at {script}:{LINE} in choose"
    number = int(first.split()[1].removesuffix(":"))
    assert number > 1, "another program was rewritten before"
    assert any(line.startswith("-") and "ptir.maximum(" in line for line in rest)
    assert any(line.startswith("+") and "ptir.minimum(" in line for line in rest)
    assert f"GPTRS_FUEL={number - 1} succeeds, GPTRS_FUEL={number} fails" in out
    assert "with every rewrite: fails with exit status 3" in err
    assert "with 0 rewrites: succeeds" in err
    assert "looked at it" not in out + err


@pytest.mark.slow
def test_json_and_bounds(bisect: Bisect, script: str) -> None:
    code, out, _ = bisect("--json", "--", sys.executable, script)
    assert code == 0
    found = json.loads(out)
    assert found["rewrites"][0]["rewrite"] == "confuse_extremes"
    guilty: int = found["guilty"]
    bounds = ["--low", str(guilty - 1), "--high", str(guilty)]
    code, out, _ = bisect(*bounds, "--json", "--", sys.executable, script)
    again = json.loads(out)
    assert (code, again["guilty"], again["runs"]) == (0, guilty, 2)
    assert again["rewrites"] == found["rewrites"]
    code, _, err = bisect("--low", str(guilty), "--", sys.executable, script)
    assert code == 1
    assert f"fails with {guilty} rewrites too" in err
    code, _, err = bisect("--high", str(guilty - 1), "--", sys.executable, script)
    assert code == 1
    assert f"succeeds with {guilty - 1} rewrites" in err


@pytest.mark.slow
def test_a_crash_is_a_failure(bisect: Bisect, script: str) -> None:
    code, out, err = bisect("--", sys.executable, script, "crash")
    assert code == 0
    assert ": confuse_extremes, " in out
    assert "with every rewrite: ended by SIGKILL" in err


@pytest.mark.slow
def test_a_rewrite_that_breaks_the_program(bisect: Bisect, script: str) -> None:
    code, out, _ = bisect("--", sys.executable, script, "ill-formed")
    assert code == 0
    assert ": lose sub, of the program choose\n" in out
    assert "pass confuse: choose, instruction " in out
    assert "reads a value that is not defined before it" in out


@pytest.mark.slow
def test_a_rule_of_another_type(bisect: Bisect, script: str) -> None:
    code, out, _ = bisect("--", sys.executable, script, "ill-typed")
    assert code == 0
    assert ": confuse_extremes, of the program choose\n" in out
    assert "rule confuse_extremes replaces f32[2] by f16[2]" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("pass", "succeeds with every rewrite"),
        ("import sys; sys.exit(1)", "applies no rewrite"),
        (
            "import sys; from gptrs import ptir;"
            " ptir.jit(lambda x: -(-x), backend='reference')(1.0); sys.exit(1)",
            "fails with 0 rewrites too",
        ),
    ],
    ids=["good", "idle", "bad"],
)
def test_commands_that_cannot_be_bisected(bisect: Bisect, command: str, named: str) -> None:
    code, out, err = bisect("--", sys.executable, "-c", command)
    assert (code, out) == (1, "")
    assert named in err
    assert err.count("error: ") == 1
    assert "fix: " in err


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ([], 2, "COMMAND"),
        (["--low", "5", "--high", "5", "--", "true"], 2, "--high is 5, expected more than --low"),
        (["--low", "-1", "--", "true"], 2, "--low"),
        (["--", "/no/such/command"], 1, "'/no/such/command' cannot be run: No such file"),
    ],
    ids=["none", "bounds", "low", "missing"],
)
def test_wrong_usage(bisect: Bisect, arguments: list[str], code: int, named: str) -> None:
    found, out, err = bisect(*arguments)
    assert (found, out) == (code, "")
    assert err.count("error: ") == 1
    assert named in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_verbose_shows_what_the_command_prints(script: str) -> None:
    command = [COMMAND, "bisect", "--verbose", "--", sys.executable, script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert "looked at it" in done.stderr
    assert "looked at it" not in done.stdout


@pytest.mark.slow
def test_ctrl_c_ends_it_and_its_command(tmp_path: Path) -> None:
    started = tmp_path / "started"
    waits = f"import time, pathlib; pathlib.Path({str(started)!r}).touch(); time.sleep(600)"
    command = [COMMAND, "bisect", "--", sys.executable, "-c", waits]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True)
    try:
        until = monotonic() + PATIENCE
        while not started.exists() and monotonic() < until:
            sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it, to both
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


def test_every_process_counts_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: None
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("GPTRS_FUEL_LOG", str(log))
    monkeypatch.setenv("GPTRS_FUEL", "3")
    x = np.ones(2, np.float32)

    @ptir.jit
    def twice(x: Any) -> Any:
        return ptir.neg(-x)

    for size in (1, 2, 3, 4):
        twice(np.ones(size, np.float32))
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(row["rewrites"], row["total"]) for row in rows] == [(1, 1), (1, 2), (1, 3), (0, 3)]
    assert len({row["process"] for row in rows}) == 1
    assert [row["last"]["number"] for row in rows if "last" in row] == [3]
    np.testing.assert_array_equal(twice(x).numpy(), x)


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with (
        pytest.raises(SettingError, match=r"GPTRS_FUEL_LOG=.*directory"),
        limited_fuel(5, str(tmp_path), "f"),
    ):
        pass
