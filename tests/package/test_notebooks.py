"""Every notebook runs in a kernel of its own, and has the outputs of such a run."""

# nbformat has no complete types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SMALL = 150_000  # bytes of a notebook with its outputs
PLACES = re.compile(r"(?<![\w.])/(?:tmp|home|root|Users|usr|work)/|site-packages")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
nbformat: Any = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def executed() -> Callable[[Path], Any]:
    return runpy.run_path(str(FOLDER / "run.py"))["executed"]


def kinds(notebook: Any) -> list[list[tuple[str, ...]]]:
    """What each cell shows: the kinds of its outputs."""
    cells = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return [[(o.output_type, *sorted(o.get("data", ()))) for o in outputs] for outputs in cells]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_shows(
    path: Path, executed: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    kept: Any = nbformat.read(path, as_version=4)
    assert kinds(executed(path)) == kinds(kept), "run `python notebooks/run.py`"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_names_no_place_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < SMALL
    assert PLACES.search(text) is None
    assert '"output_type": "error"' not in text


def test_all_seven_are_there() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"0{n}" for n in range(1, 8)]
