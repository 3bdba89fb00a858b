"""What gptrs changes in a running IPython.

On its import the printing of tracebacks and, in notebooks, progress; on ``%load_ext gptrs`` the
magics too, and progress on a terminal.
"""

from __future__ import annotations

from typing import Any

from gptrs.notebook.progress import progress
from gptrs.notebook.tracebacks import shorten_tracebacks


def attach(shell: Any) -> None:
    """Called when gptrs is imported in IPython, a notebook's or a terminal's."""
    shorten_tracebacks(shell)
    if getattr(shell, "kernel", None) is not None:
        progress()


def load(shell: Any) -> None:
    """Called by ``%load_ext gptrs``."""
    from gptrs.notebook.magics import GptrsMagics  # late: loads the compiler

    shorten_tracebacks(shell)
    progress()
    shell.register_magics(GptrsMagics)
