"""What gptrs changes in a running IPython: on its import the printing of tracebacks, on
``%load_ext gptrs`` the magics too."""

from __future__ import annotations

from typing import Any

from gptrs.notebook.tracebacks import shorten_tracebacks


def attach(shell: Any) -> None:
    """Called when gptrs is imported in IPython, a notebook's or a terminal's."""
    shorten_tracebacks(shell)


def load(shell: Any) -> None:
    """Called by ``%load_ext gptrs``."""
    from gptrs.notebook.magics import GptrsMagics  # late: loads the compiler

    attach(shell)
    shell.register_magics(GptrsMagics)
