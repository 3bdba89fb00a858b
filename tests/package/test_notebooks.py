"""Every notebook runs from its first cell to its last."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT

pytestmark = pytest.mark.usefixtures("own_definitions")

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    scope: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            assert not cell["outputs"], f"{path.name}: clear the outputs before committing"
            name, text = f"{path.name}, cell {number}", "".join(cell["source"])
            # As IPython does: the source of a cell can be read.
            linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
            exec(compile(text, name, "exec"), scope)
    assert capsys.readouterr().out
