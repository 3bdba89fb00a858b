"""This machine: the processor's name and caches, and the memory that is available to a process.

As the system reports them, and its control groups (versions 1 and 2).
"""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

from gptrs.backends.base import DeviceInfo
from gptrs.kernels.compiler import isa
from gptrs.lazy_dataclass import dataclass

_MODEL = re.compile(r"^(?:model name|Model|cpu model|uarch)\s*:\s*(.+)$", re.MULTILINE)
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_UNLIMITED = 2**60  # bytes; version 1 says "no limit" with a number close to 2**63


@cache
def cpu_model(info: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the processor, with LLVM's name for it: ``"AMD EPYC 9B14 (znver4)"``."""
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


def cpu_device() -> DeviceInfo:
    """The processor as a device."""
    memory = machine_memory()
    total = memory.total if memory.limit is None else min(memory.total, memory.limit)
    return DeviceInfo(0, cpu_model(), total, memory.available, unified_memory=True)


@dataclass(frozen=True)
class MachineMemory:
    """In bytes: total, available (free or reclaimable), and the limit of the control groups (None:
    none, or unknown)."""

    total: int
    available: int
    limit: int | None


def machine_memory(
    meminfo: Path = Path("/proc/meminfo"),
    membership: Path = Path("/proc/self/cgroup"),
    mounts: Path = Path("/sys/fs/cgroup"),
) -> MachineMemory:
    """The memory of this machine, limited by control groups (versions 1 and 2). Where the system
    does not report the available memory, the total counts."""
    total = available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        entries = {
            n: int(k) * 1024 for n, k in re.findall(r"(\w+): +(\d+) kB", meminfo.read_text())
        }
        total, available = entries["MemTotal"], entries["MemAvailable"]
    except (OSError, KeyError):  # another system, or an old kernel
        pass
    limit: int | None = None
    for group in _groups(membership, mounts):
        granted = _granted(group)
        if granted is not None:
            most, used = granted
            limit = most if limit is None else min(limit, most)
            available = min(available, max(most - used, 0))
    return MachineMemory(total, available, limit)


def _groups(membership: Path, mounts: Path) -> list[Path]:
    """The folders of the control groups that this process is in, each with those around it."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []
    found: dict[Path, None] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        for mount in ("memory",) if controllers else ("", "unified"):
            group = mounts / mount / path.lstrip("/")
            # Inside a container the path may be the host's: then only the root is here.
            for folder in (group, *group.parents):
                found[folder] = None
                if folder == mounts / mount:
                    break
    return list(found)


def _granted(group: Path) -> tuple[int, int] | None:
    """The limit of one control group and its usage; None without a limit.

    Inactive page cache counts as free: it is reclaimed first.
    """
    try:
        if (v2 := group / "memory.max").exists():
            limit, used = v2.read_text().strip(), (group / "memory.current").read_text()
            cached = "inactive_file"
        else:
            limit = (group / "memory.limit_in_bytes").read_text().strip()
            used = (group / "memory.usage_in_bytes").read_text()
            cached = "total_inactive_file"
        if limit == "max" or int(limit) >= _UNLIMITED:
            return None
        stat = (group / "memory.stat").read_text()
        found = re.search(rf"^{cached} (\d+)$", stat, re.MULTILINE)
        return int(limit), max(int(used) - int(found[1] if found else 0), 0)
    except (OSError, ValueError):
        return None
