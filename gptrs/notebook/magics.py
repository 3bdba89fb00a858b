"""``%%ptir``, ``%gptrs_profile`` and ``%gptrs_view``: the magics of ``%load_ext gptrs``."""

from __future__ import annotations

import ast
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_cell_magic, line_magic, magics_class
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from gptrs.debug.profile.recorder import profile
from gptrs.errors import ArgumentError
from gptrs.notebook.cells import run_code
from gptrs.notebook.compiled import compiled


@magics_class
class GptrsMagics(Magics):
    """The magics, for one shell."""

    shell: Any

    @cell_magic
    def ptir(self, line: str, cell: str) -> Any:
        """Run the cell, and show what gptrs compiled in it.

            %%ptir
            f(x)

        A table has a row for each function that was traced: the reason, instructions before and
        after the passes, steps of the plan, milliseconds in all, kernels. How it runs (the table of
        `fn.explain`) opens below. A function that was called with such arguments before is not
        compiled again, and has no row.
        """
        if line.strip():
            raise UsageError(f"%%ptir takes nothing on its line, found {line.strip()!r}")
        with compiled() as found:
            try:
                return run_code(self.shell, cell)
            finally:
                display(found)

    @line_cell_magic
    def gptrs_profile(self, line: str, cell: str | None = None) -> Any:
        """Run a statement or a cell under `gptrs.profile`, and show where the time went.

            %gptrs_profile f(x)

            %%gptrs_profile
            for _ in range(10):
                f(x)

        Tables by kernel, and by line, op and layer, which open. What ran before is not compiled
        again: call a function once before, to profile it warm.
        """
        if cell is not None and line.strip():
            raise UsageError(f"%%gptrs_profile takes nothing on its line, found {line.strip()!r}")
        source = line if cell is None else cell
        if not source.strip():
            raise UsageError("%gptrs_profile needs a statement: %gptrs_profile f(x)")
        try:
            with profile() as found:
                value = run_code(self.shell, source, above=0 if cell is None else 1)
        except ArgumentError as error:
            if "a profile is running" in error.problem:
                raise UsageError(f"%gptrs_profile: {error.problem}; {error.fix}") from None
            raise
        display(found)
        return value

    @line_magic
    def gptrs_view(self, line: str) -> Any:
        """Show the program, passes and plan of a call as a page, without running it.

            %gptrs_view f(x, y)

        It is what ``f.view(x, y)`` gives, for functions of `ptir.jit`; ``%gptrs_view model()`` for
        a loaded model.
        """
        try:
            call = ast.parse(line.strip(), mode="eval").body
        except SyntaxError:
            call = None
        if not isinstance(call, ast.Call):
            raise UsageError(f"%gptrs_view needs one call, such as f(x); found {line.strip()!r}")
        name = ast.unparse(call.func)
        target = run_code(self.shell, name, above=0)
        if not callable(getattr(target, "view", None)):
            raise UsageError(
                f"%gptrs_view: {name} is a {type(target).__name__}, expected a function of ptir.jit"
                " or a loaded model"
            )
        call.func = ast.Attribute(call.func, "view", ast.Load())
        return run_code(self.shell, ast.unparse(call), above=0)
