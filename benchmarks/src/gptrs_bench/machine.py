"""Description of the machine and of library versions, for reports."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gptrs_bench.processes import cores

LIBRARIES = ("numpy", "llvmlite", "numba")


def machine(packages: Sequence[str]) -> dict[str, Any]:
    """The CPU, what kernels use of it, and the versions of Python, our libraries and those of
    ``packages`` that are installed."""
    from gptrs.kernels.compiler import isa  # after the settings that a benchmark makes

    name = platform.processor()
    if (info := Path("/proc/cpuinfo")).exists():
        lines = info.read_text().splitlines()
        name = next((n.split(":")[1].strip() for n in lines if n.startswith("model name")), name)
    versions = {n: found for n in [*LIBRARIES, *packages] if (found := _version(n))}
    return {
        "cpu": f"{name} ({isa.host()[1]})",
        "isa": isa.current().name,
        "cores": cores(),
        "versions": {"python": platform.python_version()} | versions,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
