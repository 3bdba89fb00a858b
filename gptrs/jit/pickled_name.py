"""Pickling of jitted functions by reference: the name under which another process finds one.

A jitted function is pickled as functions are, by its module and qualified name: processes that
multiprocessing spawns import it, and find kernels on disk.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

from gptrs.errors import ArgumentError


def importable_name(function: Any) -> str:
    """The qualified name of ``function`` in its module. Raises `ArgumentError` where the module has
    another object or none there."""
    module, name = function.__module__, function.__qualname__
    label = f"{module}.{name}"
    if "<" in name:  # "<lambda>", "outer.<locals>.inner"
        what = "is a lambda" if name.endswith("<lambda>") else "is defined inside a function"
        raise ArgumentError(
            f"{label} cannot be pickled: it {what}, where another process cannot find it",
            fix="define it with def at the top of a module, and decorate it there",
        )
    try:
        found = operator.attrgetter(name)(sys.modules[module])
    except (KeyError, AttributeError):
        found = None
    if found is not function:
        held = "no object" if found is None else "another object"
        raise ArgumentError(
            f"{label} cannot be pickled: there is {held} of this name in {module}",
            fix="decorate it with @ptir.jit where it is defined, under its own name",
        )
    return name
