"""Child Python processes have this one's import path, and nothing of the current directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numba  # as it is looked for on the path where it is not imported
import pytest

import gptrs
from gptrs.isolated import start_python
from gptrs.kernels.compiler import compile_processes
from gptrs.kernels.compiler.cache_key import compiler_version
from gptrs_bench.processes import first_output, run_python
from gptrs_bench.worker import Worker

ROOT = str(Path(gptrs.__file__).parents[1])
PLANTED = [
    *("json", "numpy", "numba", "llvmlite", "signal", "typing", "runpy", "encodings", "scipy"),
    *("sitecustomize", "usercustomize", "gptrs", "importlib", "collections", "subprocess"),
]
START = compile_processes._START  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory full of modules that leave a trace when they are imported."""
    folder = tmp_path / "downloaded"
    folder.mkdir()
    for name in PLANTED:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')")
    monkeypatch.chdir(folder)
    return tmp_path / "ran"


@pytest.mark.slow
@pytest.mark.parametrize("path", [["", *sys.path], [".", "../downloaded", *sys.path], sys.path])
@pytest.mark.parametrize("variable", ["", ".", ":/nowhere"])
def test_compilers_run_nothing_of_the_current_directory(
    path: list[str], variable: str, planted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert numba.__version__
    monkeypatch.setattr(sys, "path", path)
    monkeypatch.setenv("PYTHONPATH", variable)
    pipe = subprocess.PIPE
    with start_python("-c", START, stdin=pipe, stdout=pipe) as process:
        answer, _ = process.communicate(b"")
    assert answer.decode().strip() == compiler_version(), "it compiles for this process"
    assert not planted.exists(), planted.read_text()


def test_the_check_finds_what_plain_python_runs(planted: Path) -> None:
    subprocess.run([sys.executable, "-c", "import json"], check=True)
    assert planted.read_text() == "json "


@pytest.mark.slow
def test_workers_and_starts_run_nothing_of_the_current_directory(planted: Path) -> None:
    worker = Worker("gptrs_bench.side", "ours", "text", "nowhere", "1", quiet=True)
    with pytest.raises(gptrs.PtirError, match="nowhere"):
        worker.ask("names")
    worker.close()
    assert first_output(("-m", "gptrs", "--version"))[1] == f"gptrs {gptrs.__version__}\n"
    assert run_python("-c", "import json, sys; print(json.dumps(sys.argv[1:]))", "a") == '["a"]\n'
    assert not planted.exists(), planted.read_text()


def test_the_package_is_found_where_it_was_loaded_from(
    planted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout that was the current directory, or came in through a hook of an editable install:
    its folder is not on the path."""
    monkeypatch.setattr(sys, "path", ["", *(p for p in sys.path if p not in ("", ROOT))])
    found = run_python("-c", "import gptrs.settings; print(gptrs.settings.__file__)")
    assert Path(found.strip()).parents[1] == Path(ROOT)
    assert not planted.exists()


def test_the_path_that_was_set_on_purpose_is_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "modules, of “mine” \udcff"
    folder.mkdir()
    (folder / "mine.py").write_text("print(7)")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    assert run_python("-c", "import mine") == "7\n"
