"""Deprecated aliases: a renamed name works for one version, with a `DeprecationWarning`.

A module's ``__getattr__`` calls `renamed` for names that it does not have.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

GOES = "the old name goes with the next version"


def renamed(module: str, name: str, names: Mapping[str, str]) -> Any:
    """The attribute ``names[name]`` of `module`. Raises `AttributeError` for unknown names."""
    if name not in names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    new = names[name]
    warnings.warn(
        f"{module}.{name} is called {module}.{new} now; {GOES}",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(sys.modules[module], new)
