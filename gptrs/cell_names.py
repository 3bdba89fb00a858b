"""Cells of a running IPython, in a notebook or a terminal: their names, by the files of their code.

IPython gives the code of each cell a file name of its own (``/tmp/ipykernel_7/1203.py``), which is
no file and tells a reader nothing.
"""

from __future__ import annotations

import sys
from typing import Any


def running_shell() -> Any | None:
    """The shell of the IPython that runs in this process; None elsewhere."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get() if callable(get) else None


def cell_name(file: str) -> str | None:
    """``Cell In[5]`` for the code of that cell, by its latest run; None for other files."""
    name_of = getattr(getattr(running_shell(), "compile", None), "format_code_name", None)
    found = name_of(file) if callable(name_of) else None
    return " ".join(found) if isinstance(found, tuple) else None  # pyright: ignore
