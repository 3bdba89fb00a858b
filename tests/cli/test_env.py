"""``gptrs env``: this machine, what gptrs uses of it, and its measured limits."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs import __version__, settings
from gptrs.cli.progress import step_progress
from gptrs.debug import measure_limits
from gptrs.debug.machine_limits import Limits, keep_limits, limits_file
from gptrs.kernels.compiler import isa
from gptrs.kernels.driver import threads
from tests.support import ROOT
from tests.support.cli import Cli, in_process, rows


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for what is kept, and no other settings."""
    for name in (*settings.SETTINGS, "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GPTRS_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys, "env")


def report(cli: Cli, *arguments: str) -> dict[str, Any]:
    done = cli("--json", *arguments)
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def test_json(cli: Cli, home: Path) -> None:
    said = report(cli)
    assert said["versions"]["gptrs"] == __version__
    assert said["versions"]["numpy"] == version("numpy")
    assert said["isa"]["level"] == isa.current().name
    assert set(isa.current().needs) <= set(said["isa"]["features"])
    assert said["threads"]["count"] == threads.thread_count()
    assert said["settings"] == {"GPTRS_CACHE_DIR": str(home)}
    assert said["cache"]["folder"] == str(home / "kernels")
    assert not said["cache"]["exists"]
    assert {"faer", "reference"} <= set(said["backends"])
    assert said["limits"] == {"file": str(home / "limits.json"), "measured": []}


def test_the_page_says_the_same(cli: Cli, home: Path) -> None:
    done = cli()
    assert (done.code, done.err) == (0, "")
    said = {line[0]: " ".join(line[1:]) for line in rows(done.out) if line}
    found = report(cli)
    assert said["numpy"] == version("numpy")
    assert said["cpu"] == found["cpu"]["model"]
    assert said["vectors"].startswith(f"{isa.current().name}, {isa.current().vector_bits} bits")
    assert said["threads"] == f"{threads.thread_count()}: {threads.thread_reason()}"
    assert said["GPTRS_CACHE_DIR"] == str(home)
    assert said["not"] == "measured gptrs env --measure"


def test_packages_that_are_not_installed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gptrs.cli.environment._PACKAGES", ("numpy", "no-such-package"))
    assert report(cli)["versions"]["no-such-package"] is None
    assert ["no-such-package", "not", "installed"] in rows(cli().out)


@pytest.mark.slow
def test_no_package_is_imported_for_its_version() -> None:
    code = (
        "import sys; from gptrs.cli.app import run; sys.argv = ['gptrs', 'env', '--json']\n"
        "assert run() == 0\n"
        "assert not {'torch', 'tokenizers', 'safetensors', 'numba'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("GPTRS_EAGER", "1", True),
        ("GPTRS_NUM_THREADS", "3", 3),
        ("GPTRS_CACHE_SIZE", "many", "GPTRS_CACHE_SIZE='many': expected an integer of at least 1"),
        ("GPTRS_ISA", "avx3", "GPTRS_ISA='avx3': expected avx512, avx2, neon or generic"),
        ("GPTRS_CACHE_BYTES", "-1", "GPTRS_CACHE_BYTES='-1': expected an integer of at least 0"),
        ("GPTRS_DRIVER", "x", "GPTRS_DRIVER='x': expected pool or numba"),
    ],
)
def test_settings_that_are_not_defaults(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: object
) -> None:
    monkeypatch.setenv(name, text)
    assert report(cli)["settings"][name] == said
    assert name in cli().out


def test_a_level_that_is_chosen(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_ISA", "generic")
    said = report(cli)["isa"]
    assert (said["level"], said["reason"]) == ("generic", "GPTRS_ISA=generic")
    missing = next(name for name in isa.ISAS if name not in said["offered"])
    monkeypatch.setenv("GPTRS_ISA", missing)
    said = report(cli)["isa"]
    assert said["level"] is None
    assert f"GPTRS_ISA='{missing}': this CPU" in said["reason"]


@pytest.mark.parametrize(
    ("variables", "affinity", "quota", "every", "expected"),
    [
        ({}, 4, 1e9, 4, (4, "all cores")),
        ({}, 2, 1e9, 4, (2, "the CPU affinity of this process: 2 of 4 cores")),
        ({}, 4, 2.5, 4, (2, "the control group grants 2.5 of 4 cores")),
        ({"OMP_NUM_THREADS": "2"}, 4, 1e9, 4, (2, "OMP_NUM_THREADS=2")),
        ({"OMP_NUM_THREADS": "9"}, 4, 1e9, 4, (4, "all cores")),
        ({"GPTRS_NUM_THREADS": "3", "OMP_NUM_THREADS": "2"}, 4, 1.0, 4, (3, "GPTRS_NUM_THREADS=3")),
    ],
)
def test_why_so_many_threads(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    affinity: int,
    quota: float,
    every: int,
    expected: tuple[int, str],
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    cores = set(range(affinity))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores, raising=False)  # pyright: ignore
    monkeypatch.setattr(os, "cpu_count", lambda: every)
    monkeypatch.setattr(threads, "_own_quota", lambda: quota)
    monkeypatch.setattr(threads, "recent_cores", threads.available_cores)
    assert (threads.thread_count(), threads.thread_reason()) == expected


def test_threads_of_the_option(cli: Cli) -> None:
    assert report(cli, "--threads", "5")["threads"]["count"] == 5
    assert "limited to 5" in cli("--threads", "5").out


MEASURED = [Limits(1, 50.0, 10.0, "2026-01-31"), Limits(3, 140.5, 25.25, "2026-01-31")]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """No measurement takes time; the numbers of threads that were asked for."""
    asked: list[list[int]] = []

    def measure(counts: list[int], **_: Any) -> list[Limits]:
        asked.append(counts)
        return [limits for limits in MEASURED if limits.threads in counts]

    monkeypatch.setattr(measure_limits, "measure_limits", measure)
    return asked


def test_limits_are_measured_and_kept(cli: Cli, counted: list[list[int]]) -> None:
    said = report(cli, "--measure", "--threads", "3")["limits"]["measured"]
    assert counted == [[1, 3]]
    assert said == [vars(limits) for limits in MEASURED]
    assert report(cli)["limits"]["measured"] == said
    printed = rows(cli().out)
    assert ["1", "50.0", "10.0", "2026-01-31"] in printed
    assert ["3", "140.5", "25.2", "2026-01-31"] in printed
    assert counted == [[1, 3]], "looking measures nothing"


def test_limits_that_cannot_be_kept(
    cli: Cli, counted: list[list[int]], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("GPTRS_CACHE_DIR", str(home / "file"))
    done = cli("--measure", "--json", "--threads", "1")
    assert done.code == 0
    assert done.err.startswith(f"warning: the limits are not kept: {home / 'file'}")
    assert json.loads(done.out)["limits"]["measured"] == [vars(MEASURED[0])]


def test_a_measurement(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_limits, "_SECONDS", 1e-9)
    monkeypatch.setattr(measure_limits, "_TURNS", 10_000)
    monkeypatch.setattr(measure_limits, "_LEAST_BYTES", 2**20)
    monkeypatch.setattr(measure_limits, "caches", dict[str, int])
    (said,) = report(cli, "--measure", "--threads", "1")["limits"]["measured"]
    assert said["threads"] == 1
    assert said["gflops"] > 0.1
    assert said["gbytes"] > 0.01
    assert report(cli)["limits"]["measured"] == [said]


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_limits, "_SECONDS", 1e-9)
    monkeypatch.setattr(measure_limits, "_TURNS", 1000)
    told: list[tuple[str, float]] = []
    found = measure_limits.measure_limits(
        [1, 2], most_bytes=2**20, told=lambda what, part: told.append((what, part))
    )
    assert [limits.threads for limits in found] == [1, 2]
    assert [part for _, part in told] == sorted(part for _, part in told)
    assert told[-1] == ("memory, 2 threads", 1.0)
    assert told[0][0] == "multiply-adds, 1 thread"


def test_no_memory_to_read(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(size: int) -> Any:
        raise MemoryError(size)

    monkeypatch.setattr(measure_limits, "streamed", fail)
    done = cli("--measure", "--threads", "1")
    assert (done.code, done.out) == (1, "")
    assert "there is no memory for the" in done.err


@pytest.mark.parametrize("level", [level.name for level in isa.host_levels()])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_kernels_do_what_is_counted(
    monkeypatch: pytest.MonkeyPatch, level: str, count: int
) -> None:
    monkeypatch.setenv("GPTRS_ISA", level)
    reading = measure_limits.Reading(count, measure_limits.streamed(2**20))
    reading.seconds(lambda: 0.0)
    assert reading.out.sum() == reading.data.size
    assert reading.work == pytest.approx(reading.data.nbytes / 1e9)
    peak = measure_limits.Peak(1)
    peak.out[:] = 2
    peak.table.words[0, 2] = count  # so many turns
    peak.seconds(lambda: 0.0)
    here = isa.current()
    expected = [2.0 + i for i in range(here.tile_rows * here.tile_vectors)]
    for _ in range(count):
        expected = [2 * value + 2 for value in expected]
    np.testing.assert_array_equal(peak.out, np.repeat(expected, here.lanes))


ENTRY = {"threads": 1, "gflops": 50.0, "gbytes": 1.0, "measured": "today"}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "\x00\xff", "[" * 100_000, '{"version": 1, "limits": 3}'),
        '{"version": 1, "limits": [3, null, [], {}]}',
        '{"version": 2, "limits": [ENTRY]}',
        '{"version": 1, "limits": [ENTRY]' + " " * 2**20 + "}",
    ],
    ids=lambda text: str(text)[:50],
)
def test_a_damaged_file_is_measured_again(
    cli: Cli, counted: list[list[int]], home: Path, text: str
) -> None:
    entry = {**ENTRY, "cpu": report(cli)["cpu"]["model"], "isa": isa.current().name}
    whole = text.replace("ENTRY", json.dumps(entry))
    (home / "limits.json").write_text(whole, encoding="latin-1")
    assert report(cli)["limits"]["measured"] == []
    assert report(cli, "--measure", "--threads", "1")["limits"]["measured"] == [vars(MEASURED[0])]
    assert report(cli)["limits"]["measured"] == [vars(MEASURED[0])]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("gflops", value) for value in (math.nan, math.inf, -1.0, 0.0, "5", None, 10**400)],
        *[("threads", value) for value in (0, True, 1.5, "1", None)],
        *[("measured", value) for value in (3, None)],
    ],
)
def test_a_damaged_entry_counts_as_none(cli: Cli, home: Path, name: str, value: object) -> None:
    entry = {**ENTRY, "cpu": report(cli)["cpu"]["model"], "isa": isa.current().name}
    for changed, count in ((entry, 1), ({**entry, name: value}, 0)):
        (home / "limits.json").write_text(json.dumps({"version": 1, "limits": [changed]}))
        assert len(report(cli)["limits"]["measured"]) == count


def test_limits_of_other_machines_stay(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_limits(MEASURED)
    with monkeypatch.context() as patch:
        patch.setattr("gptrs.debug.machine_limits.cpu_model", lambda: "another")
        assert report(cli)["limits"]["measured"] == []
        keep_limits([Limits(1, 1.0, 1.0, "2026-02-01")])
    monkeypatch.setenv("GPTRS_ISA", "generic")
    keep_limits([Limits(1, 2.0, 2.0, "2026-02-01")])
    assert len(report(cli)["limits"]["measured"]) == 1
    monkeypatch.delenv("GPTRS_ISA")
    keep_limits([Limits(3, 3.0, 3.0, "2026-02-01")])
    found = report(cli)["limits"]["measured"]
    assert [(row["threads"], row["gflops"]) for row in found] == [(1, 50.0), (3, 3.0)]
    file = limits_file()
    assert file is not None
    assert len(json.loads(file.read_text())["limits"]) == 4
    assert [path.name for path in file.parent.iterdir()] == ["limits.json"]


def test_the_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with step_progress() as told:
        told("reading", 0.5)
    assert "reading" in terminal.getvalue()
    assert "50 %" in terminal.getvalue()
