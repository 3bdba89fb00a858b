"""``ptir.signal``: windows, by the names of ``scipy.signal.windows`` and ``torch.signal.windows``.

| module | functions |
|---|---|
| `windows` | boxcar, hann, hamming, blackman, kaiser, gaussian, tukey, ..., get_window |
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.names import unknown_name
from gptrs.locks import late_import


def __getattr__(name: str) -> Any:
    """The module called ``name``."""
    if name != "windows":
        raise unknown_name("ptir.signal", name)
    return late_import(f"{__name__}.windows")


def __dir__() -> list[str]:
    return ["windows"]
