"""A kernel's source as a Python file that runs: its loop as it is compiled, and the same loop over
its whole extent, in parallel, as Numba functions.

Input: the source of a kernel (`gptrs.kernels.compiler.numba_lowering`), one function whose last two
parameters are the range of its loop. Output: the text of a module, which this package shows and
`gptrs.kernels.driver.prange` runs. Numba is imported by nobody but the text.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import NamedTuple

_FLOATS = ("float32", "float64", "complex64", "complex128")
_NUMPY = (*_FLOATS, *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)))
NJIT = "@njit(error_model='numpy')"
"""Above each function of a loop's source."""
_WIDTH = 100
_IMPORTED = "from gptrs.kernels.compiler.intrinsics import "


def wrapped(items: str, indent: int = 0) -> str:
    """Parameters or arguments, in lines of their own if they are many."""
    if len(items) <= _WIDTH - 30:
        return items
    margin = " " * (indent + 4)
    lines, line = [""], margin
    for item in items.split(", "):  # `textwrap.fill` takes 100 us
        if len(line) + len(item) >= _WIDTH:
            lines.append(line.rstrip())
            line = margin
        line += f"{item}, "
    return "\n".join([*lines, line.rstrip(", "), " " * indent])


class LoopSource(NamedTuple):
    """The source of a kernel, and the name of its function."""

    name: str
    source: str

    @property
    def parallel(self) -> str:
        """The name of the function that runs the whole loop."""
        return f"{self.name}_parallel"

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters before ``first``, and how they are annotated: ``floats``, ``int64``."""
        return {
            argument.arg: ast.unparse(argument.annotation)
            for argument in self._function().args.args[:-2]
            if argument.annotation is not None
        }

    def text(self) -> str:
        """The text of a module with the function alone, which takes pointers."""
        return "\n".join([*self._imports("njit"), "", "", self.source])

    def module(self, values: Mapping[str, int | float] | None = None) -> str:
        """The text of the module; ``values`` are defaults of the parallel function's parameters."""
        call = [n if k in _NUMPY else f"{k}({n})" for n, k in self.parameters.items()]
        given = [*self.parameters, "extent", "chunks"]
        if values is not None:
            given = [f"{n}={values[n]!r}" if n in values else n for n in given]
        return "\n".join(
            [
                *self._imports("njit", "prange"),
                "",
                "",
                self.source,
                "",
                "@njit(parallel=True, error_model='numpy')",
                f"def {self.parallel}({wrapped(', '.join(given))}):",
                "    for chunk in prange(chunks):",
                "        first, last = extent * chunk // chunks, extent * (chunk + 1) // chunks",
                f"        {self.name}({wrapped(', '.join([*call, 'first', 'last']), 8)})",
                "",
            ]
        )

    def _function(self) -> ast.FunctionDef:
        *_, function = ast.parse(self.source).body  # after the scalar rules that it calls
        assert isinstance(function, ast.FunctionDef)
        return function

    def _imports(self, *of_numba: str) -> list[str]:
        nodes = [*ast.walk(ast.parse(self.source))]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        known = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        known |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        used = {node.id for node in names} - known - {"njit", *dir(builtins)}
        lines = ["import math"] if "math" in used else []
        lines.append(f"from numba import {', '.join(of_numba)}")
        if scalars := sorted(used & {*_NUMPY}):
            lines.append(f"from numpy import {', '.join(scalars)}")
        if ours := sorted(used - {*_NUMPY, "math"}):
            lines.append(_IMPORTED + ", ".join(ours))
        return lines
