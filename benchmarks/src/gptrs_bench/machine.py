"""Description of the machine and of library versions, for reports."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gptrs_bench.processes import cores

LIBRARIES = ("numpy", "llvmlite", "numba")


def machine(packages: Sequence[str]) -> dict[str, Any]:
    """The CPU, what kernels use of it, and the versions of Python, our libraries and those of
    ``packages`` that are installed."""
    # After the settings that a benchmark makes.
    from gptrs.backends.host import cpu_model
    from gptrs.kernels.compiler import isa

    versions = {n: found for n in [*LIBRARIES, *packages] if (found := _version(n))}
    return {
        "cpu": cpu_model(),
        "isa": isa.current().name,
        "cores": cores(),
        "versions": {"python": platform.python_version()} | versions,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
