"""Mutated files of every format (`make fuzz-files` opens more); planted bugs are found."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gptrs.errors import LoadError
from tests.fuzz_files.kinds import KINDS, Kind
from tests.fuzz_files.mutate import json_of
from tests.fuzz_files.search import Search, wrong_with

SEED = 7
COUNT = 2000

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no timer there")


@pytest.mark.slow
def test_changed_files_are_read_or_refused(tmp_path: Path) -> None:
    search = Search(SEED, tmp_path)
    search.run(0, COUNT)
    assert [finding.what for finding in search.findings] == []
    assert search.read.total() + search.refused.total() == COUNT
    for kind in KINDS:
        assert search.refused[kind] > 50
        assert search.read[kind] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_files_to_change(tmp_path: Path, kind: str) -> None:
    KINDS[kind].make(tmp_path)
    assert KINDS[kind].changeable(tmp_path)
    assert KINDS[kind].read(tmp_path) <= sum(f.stat().st_size for f in tmp_path.iterdir())


def test_the_json_of_files_is_found(tmp_path: Path) -> None:
    for kind in ("checkpoint", "safetensors", "tokenizer"):
        (tmp_path / kind).mkdir()
        KINDS[kind].make(tmp_path / kind)
        (file,) = KINDS[kind].changeable(tmp_path / kind)
        text = json_of(file.name, file.read_bytes())
        assert text is not None
        assert json.loads(file.read_bytes()[text.first : text.last])


def _make(folder: Path) -> None:
    (folder / "x").write_bytes(bytes(100))


def _spins(folder: Path) -> int:
    while time.monotonic():
        pass
    return 0


def _refuses(said: str) -> Callable[[Path], int]:
    def read(folder: Path) -> int:
        if (folder / "x").read_bytes() == bytes(100):
            return 0
        raise LoadError(said.format(folder / "x"))

    return read


def _once(wrong: Callable[[Path], int]) -> Callable[[Path], int]:
    """Right for the good file, ``wrong`` for others."""
    return lambda folder: 0 if (folder / "x").read_bytes() == bytes(100) else wrong(folder)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (_once(lambda folder: int(folder.name)), "ValueError: invalid literal for int"),
        (_once(_spins), "TooSlowError: it takes more than 0.05 s"),
        (_once(lambda folder: len(bytearray(2**20)) * 0), r"10\d{5} bytes of memory for files of"),
        (_once(lambda folder: 5000), "5000 bytes were read of files that have"),
        (_refuses("it is bad"), "the error names no file"),
    ],
    ids=["crash", "hang", "memory", "too much", "no name"],
)
def test_a_wrong_reader_is_found(tmp_path: Path, read: Callable[[Path], int], said: str) -> None:
    kinds = {"wrong": Kind(_make, read)}
    search = Search(SEED, tmp_path / "kept", kinds, seconds=0.05)
    search.run(0, 12)
    (finding,) = search.findings
    assert re.search(said, finding.what)
    assert search.repeated >= 5  # of 12, of which some change nothing
    kept = Path(finding.place)
    assert kept.name == f"wrong_{SEED}_{finding.number}"
    again = tmp_path / "again"
    assert Search(SEED, tmp_path, kinds).folder_of(finding.number, again) == "wrong"
    assert (again / "x").read_bytes() == (kept / "x").read_bytes() != bytes(100)


@pytest.mark.parametrize(
    "held",
    ["9" * 5000, "a\nb", "\x1b[31m", "\ud800", "\0" * 700],
    ids=["long", "lines", "colours", "surrogate", "bytes"],
)
def test_an_error_can_be_printed_and_read(tmp_path: Path, held: str) -> None:
    error = LoadError(f"{tmp_path}: a is {held}, expected less")
    assert wrong_with(error, tmp_path) is None
    assert error.problem.endswith(", expected less")
    error.problem += held
    assert wrong_with(error, tmp_path) is not None


@pytest.mark.slow
def test_the_long_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz_files", "--count", "20", "--seed", "3", "--json"]
    done = subprocess.run([*command, "--folder", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["changes"], said["findings"], said["ok"]) == (20, [], True)
    assert sum(said["read"].values()) + sum(said["refused"].values()) == 20
