"""Memory of this machine that is available to a process: system and control groups (v1, v2)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED = 2**60  # bytes; version 1 says "no limit" with a number close to 2**63


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
