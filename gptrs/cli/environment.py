"""Facts about this machine and what gptrs uses of it, for `gptrs env`: as JSON has them."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gptrs import __version__, settings
from gptrs.backends.discovery import BACKENDS, GROUP
from gptrs.backends.host import caches, cpu_model, machine_memory
from gptrs.debug.machine_limits import kept_limits, limits_file
from gptrs.entry_points import described, installed_entry_points
from gptrs.errors import SettingError
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.cache_upkeep import cache_state
from gptrs.kernels.driver.threads import thread_count, thread_reason
from gptrs.kernels.driver.worker_pool import supported

_PACKAGES = ("numpy", "llvmlite", "numba", "ml_dtypes", "tokenizers", "safetensors", "torch")
# Beyond what a level needs, there are kernels for these.
_USED_BESIDES = ("avx512vnni", "avx512bf16")


def environment() -> dict[str, Any]:
    """All sections. Imports none of the packages whose versions it gives.

    Settings that cannot be read are said in the sections that they concern.
    """
    return {
        "versions": _versions(),
        "system": _system(),
        "cpu": _cpu(),
        "isa": _isa(),
        "threads": _threads(),
        "settings": _settings(),
        "cache": _cache(),
        "backends": _backends(),
        "limits": _limits(),
    }


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"gptrs": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        found[package] = None
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _system() -> dict[str, Any]:
    name = platform.system()
    with suppress(OSError):
        name = platform.freedesktop_os_release().get("PRETTY_NAME", name)
    memory = machine_memory()
    return {
        "name": name,
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "memory": {"total": memory.total, "available": memory.available, "limit": memory.limit},
    }


def _cpu() -> dict[str, Any]:
    return {"model": cpu_model(), "cores": os.cpu_count() or 1, "caches": caches()}


def _isa() -> dict[str, Any]:
    offered = [level.name for level in isa.host_levels()]
    try:
        level = isa.current()
    except SettingError as error:
        return {"level": None, "reason": error.problem, "offered": offered, "features": []}
    besides = _USED_BESIDES if level.vector_bits == 512 else ()
    used = [*level.needs, *(name for name in besides if isa.host()[2].get(name, False))]
    reason = "the best that this CPU offers"
    if settings.isa():
        reason = f"{settings.isa.name}={settings.isa()}"
    return {
        "level": level.name,
        "vector_bits": level.vector_bits,
        "reason": reason,
        "offered": offered,
        "features": used,
    }


def _threads() -> dict[str, Any]:
    driver = "pool" if supported() else "numba"
    try:
        driver = settings.driver() or driver
        return {"count": thread_count(), "reason": thread_reason(), "driver": driver}
    except SettingError as error:
        return {"count": None, "reason": error.problem, "driver": driver}


def _settings() -> dict[str, Any]:
    """Settings that are not at their defaults; the text of one that cannot be read."""
    found: dict[str, Any] = {}
    for name, setting in settings.SETTINGS.items():
        try:
            value = setting()
        except SettingError as error:
            value = error.problem
        if value != setting.default:
            found[name] = value
    return found


def _cache() -> dict[str, Any]:
    try:
        state = cache_state()
    except SettingError as error:
        return {"folder": None, "problem": error.problem}
    return {**asdict(state), "folder": None if state.folder is None else str(state.folder)}


def _backends() -> dict[str, str]:
    """Where each backend comes from."""
    found = {name: f"built in ({path})" for name, path in BACKENDS.items()}
    for entry in installed_entry_points(GROUP):
        found.setdefault(entry.name, described(entry))
    return found


def _limits() -> dict[str, Any]:
    file = limits_file()
    try:
        measured = [asdict(limits) for limits in kept_limits()]
    except SettingError:  # said of the vector level
        measured = []
    return {"file": None if file is None else str(file), "measured": measured}
