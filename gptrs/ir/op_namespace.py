"""The names in the text of a program: every op by its name, ``dim`` and ``array``.

``ptir.sort`` is NumPy's function, the op of that name is here (``gptrs.ptir.ops``): a text that is
run as Python means the ops.
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import dim
from gptrs.ir.dispatch import OPS
from gptrs.ir.names import unknown_name
from gptrs.ir.printing import array

__all__ = ["array", "dim"]


def __getattr__(name: str) -> Any:
    """The op called ``name``."""
    if name in OPS:
        return OPS[name]
    raise unknown_name("ptir.ops", name)


def __dir__() -> list[str]:
    return sorted({*__all__, *OPS})
