"""What `python -m build` puts into a wheel is enough to generate text; a source distribution has
all that is kept under version control."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import gptrs
from tests.support import ROOT

pytestmark = pytest.mark.slow


def build(kind: str, folder: Path) -> None:
    command = [sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)


def test_the_source_distribution(tmp_path: Path) -> None:
    build("--sdist", tmp_path)
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("benchmarks", "docs", "gptrs", "notebooks", "tests", "training", ".ci"):
        kept = {
            str(path.relative_to(ROOT))
            for path in (ROOT / folder).rglob("*")
            if path.is_file()
            and not set(path.parts) & {"__pycache__", ".ipynb_checkpoints", "node_modules"}
        }
        assert kept, folder
        assert kept <= names
    files = ["README.md", "LICENSE", "Makefile", "pyproject.toml", ".github/workflows/ci.yml"]
    assert {*files, "benchmarks/log/README.md"} <= names
    assert not [name for name in names if name.startswith((".venv", ".git/"))]


def test_wheel_generates_text(tmp_path: Path) -> None:
    build("--wheel", tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
        names = archive.namelist()
    assert "gptrs/py.typed" in names
    assert "gptrs_bench/command.py" in names, "the code of `gptrs bench`"
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"gptrs", "gptrs_bench", f"gptrs-{gptrs.__version__}.dist-info"}

    def python(*arguments: str) -> str:
        """Standard output of a Python that finds the unpacked wheel and not the checkout."""
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
            capture_output=True,
            text=True,
            check=True,
        )
        return result.stdout

    assert python("-c", "import gptrs; print(gptrs.__file__)").startswith(str(tmp_path))
    assert python("-m", "gptrs", "generate", "Once", "--max-tokens", "3").startswith("Once")
