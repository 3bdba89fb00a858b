"""Names that changed: the old ones work for one version, with a `DeprecationWarning`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any


def renamed(module: str, name: str, names: Mapping[str, str]) -> Any:
    """What `module` calls ``names[name]`` now. Raises `AttributeError` for other names."""
    if name not in names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    new = names[name]
    warnings.warn(
        f"{module}.{name} is called {module}.{new} now; the old name goes with the next version",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(sys.modules[module], new)
