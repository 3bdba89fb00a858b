"""The processor of this machine: its model's name and its caches, as the system reports them."""

from __future__ import annotations

import platform
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

_MODEL = re.compile(r"^(?:model name|Model|cpu model|uarch)\s*:\s*(.+)$", re.MULTILINE)
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


@cache
def cpu_model(info: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the processor, with LLVM's name for it: ``"AMD EPYC 9B14 (znver4)"``."""
    from gptrs.kernels.compiler import isa  # loads LLVM

    name = platform.processor() or platform.machine()
    with suppress(OSError):
        if found := _MODEL.search(info.read_text(errors="replace")):
            name = " ".join(found[1].split())
    return f"{name} ({isa.host()[1]})"


def caches(folder: Path = _CACHES) -> dict[str, int]:
    """Bytes of the first core's caches, by name: ``L1d``, ``L1i``, ``L2``, ``L3``. Empty where the
    system does not say."""
    found: dict[str, int] = {}
    for index in sorted(folder.glob("index*")):
        with suppress(OSError, ValueError, KeyError):
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
            letter = {"Data": "d", "Instruction": "i", "Unified": ""}[kind]
            found[f"L{level}{letter}"] = _bytes(size)
    return found


def _bytes(size: str) -> int:
    """``"32768K"`` in bytes."""
    return int(size[:-1]) * _UNITS[size[-1]] if size[-1:] in _UNITS else int(size)
