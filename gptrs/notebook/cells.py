"""The code below a magic, run as a cell without one is: its name, its lines, its last value."""

from __future__ import annotations

import ast
import re
import sys
from typing import Any

from gptrs.cell_names import cell_name


def run_code(shell: Any, source: str, *, above: int = 1) -> Any:
    """Run ``source``, of which ``above`` lines of the cell stand above, in the namespace of the
    user; the value of its last expression, or None where a semicolon follows it.

    Errors have the lines of the cell.
    """
    above += len(source) - len(source.lstrip("\n"))  # which IPython's transformation takes away
    text = "\n" * above + shell.transform_cell(source)
    name = shell.compile.cache(text, _number(shell), raw_code=source)
    tree = shell.transform_ast(shell.compile.ast_parse(text, filename=name))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    scope = shell.user_global_ns, shell.user_ns
    exec(shell.compile(tree, name, "exec"), *scope)
    if last is None:
        return None
    value = eval(shell.compile(ast.Expression(last.value), name, "eval"), *scope)
    return None if source.rstrip().endswith(";") else value


def _number(shell: Any) -> int:
    """The number of the cell that runs: the innermost on the stack. IPython counts up before it
    runs a cell or after, by its version."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        found = re.fullmatch(r"Cell In\[(\d+)\]", cell_name(frame.f_code.co_filename) or "")
        if found:
            return int(found[1])
        frame = frame.f_back
    return shell.execution_count
