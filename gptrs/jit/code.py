"""Bytecode analysis: the names that a function's code may read, and which modules are library code.

`gptrs.jit.captures` reads these names only: globals, imported modules and attributes that the
bytecode of a function and its nested functions mentions. Code of libraries is assumed not to
change.
"""

from __future__ import annotations

import dis
import sys
from functools import cache
from types import CodeType, ModuleType
from typing import NamedTuple

_OURS = {"gptrs", "numpy", "torch", "ml_dtypes", "builtins"}
# Functions that read attributes whose names no bytecode shows.
_READERS = {"getattr", "hasattr", "vars", "attrgetter", "__dict__", "eval", "exec"}

_READ_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"}


class Names(NamedTuple):
    """The names that the code of a function may read."""

    globals: tuple[str, ...]
    modules: tuple[str, ...]  # imported inside the function
    attributes: frozenset[str]
    computed: bool  # may read any attribute, by a computed name
    stored: tuple[str, ...]  # globals that it assigns or deletes

    def imported(self, package: str) -> list[ModuleType]:
        """The modules that the code imports where it stands, as far as they are loaded."""
        places = [n for name in self.modules for n in (name, f"{package}.{name}", package)]
        return [sys.modules[name] for name in places if name in sys.modules]


@cache
def names_in(code: CodeType) -> Names:
    """The names that ``code`` loads, nested functions included."""
    loads: set[str] = set()
    stored: set[str] = set()
    modules: set[str] = set()
    attributes: set[str] = set()
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name == "IMPORT_NAME":
            modules.add(instruction.argval)
        elif name == "LOAD_NAME" or (name.startswith("LOAD") and "GLOBAL" in name):
            loads.add(instruction.argval)
        elif name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            stored.add(instruction.argval)
        elif name in _READ_ATTRIBUTE:
            attributes.add(instruction.argval)
    computed = not _READERS.isdisjoint(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = names_in(constant)
            loads.update(inner.globals)
            modules.update(inner.modules)
            attributes |= inner.attributes
            computed |= inner.computed
            stored.update(inner.stored)
    return Names(
        tuple(sorted(loads)),
        tuple(sorted(modules)),
        frozenset(attributes),
        computed,
        tuple(sorted(stored)),
    )


@cache
def is_library(module: str, ours: bool = False) -> bool:
    """Whether ``module`` is library code, whose reads are assumed not to change.

    With ``ours`` only the standard library, gptrs and its own dependencies count.
    """
    top = module.partition(".")[0]
    if top == "__main__":
        return False
    if top in _OURS or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return not ours and ("site-packages" in file or "dist-packages" in file)
