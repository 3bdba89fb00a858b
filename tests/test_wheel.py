"""What `python -m build` puts into a wheel is enough to generate text."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_wheel_generates_text(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
        names = archive.namelist()
    assert "gptrs/py.typed" in names
    assert "gptrs_bench/command.py" in names, "the code of `gptrs bench`"
    assert not [n for n in names if n.startswith(("benchmarks/", "tests/", "training/"))]

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
