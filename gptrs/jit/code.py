"""What the code of a function may read, from its bytecode, and which code is the user's own."""

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
    """What the code of a function may read by name."""

    globals: tuple[str, ...]
    modules: tuple[str, ...]  # imported inside the function
    attributes: frozenset[str]
    computed: bool  # may read any attribute, by a name that it computes

    def imported(self, package: str) -> list[ModuleType]:
        """The modules that the code imports where it stands, as far as they are loaded."""
        places = [n for name in self.modules for n in (name, f"{package}.{name}", package)]
        return [sys.modules[name] for name in places if name in sys.modules]


@cache
def names_in(code: CodeType) -> Names:
    """What ``code`` loads by name, nested functions included."""
    loads: set[str] = set()
    modules: set[str] = set()
    attributes: set[str] = set()
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name == "IMPORT_NAME":
            modules.add(instruction.argval)
        elif name == "LOAD_NAME" or (name.startswith("LOAD") and "GLOBAL" in name):
            loads.add(instruction.argval)
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
    return Names(tuple(sorted(loads)), tuple(sorted(modules)), frozenset(attributes), computed)


@cache
def is_library(module: str, ours: bool = False) -> bool:
    """Whether code of ``module`` is not the user's: what it reads does not change under us.

    With ``ours`` only the standard library and what gptrs itself builds on count.
    """
    top = module.partition(".")[0]
    if top == "__main__":
        return False
    if top in _OURS or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return not ours and ("site-packages" in file or "dist-packages" in file)
