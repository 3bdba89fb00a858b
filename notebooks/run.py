"""Run the notebooks and keep their outputs: ``python notebooks/run.py [NOTEBOOK ...]``.

Each has a kernel of its own and an empty folder. An error in a cell ends the run, with its
traceback. ``--check`` writes nothing.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

# nbformat and nbclient have no complete types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

FOLDER = Path(__file__).resolve().parent
SECONDS = 300  # that a cell may take


def executed(path: Path) -> Any:
    """The notebook at ``path`` with the outputs of a run. Raises `CellExecutionError`."""
    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(
            notebook, timeout=SECONDS, kernel_name="python3", resources=place, coalesce_streams=True
        ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
        if cell.cell_type == "code":
            cell.outputs = [_anywhere(output) for output in cell.outputs if _is_kept(output)]
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = {"name": "python"}  # the version is this machine's
    return notebook


def _anywhere(output: Any) -> Any:
    """The output without the place of this checkout."""
    for holder in (output, output.get("data", {})):
        for name, value in holder.items():
            if isinstance(value, str):
                holder[name] = value.replace(f"{FOLDER.parent}/", "")
    return output


def _is_kept(output: Any) -> bool:
    """Whether a reader wants it: no warning of other libraries, no bar that has ended."""
    if output.output_type == "stream":
        return output.name == "stdout"
    return bool("".join(output.get("data", {}).get("text/html", "shown")))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("notebooks", type=Path, nargs="*", help="all unless told")
    parser.add_argument("--check", action="store_true", help="run them, write nothing")
    options = parser.parse_args()
    for path in options.notebooks or sorted(FOLDER.glob("*.ipynb")):
        notebook = executed(path)
        if not options.check:
            nbformat.write(notebook, path)
        print(path.name)


if __name__ == "__main__":
    main()
