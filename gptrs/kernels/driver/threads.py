"""The number of threads of this process: CPU affinity, control groups (cgroups) and settings.

`thread_count` is what plans run on, `thread_reason` says why; `limit_threads` overrides it in a
context; `spread` runs a function over items on Python threads, for work that releases the GIL.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import islice
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TypeVar

from gptrs import settings
from gptrs.environment_variables import raw
from gptrs.locks import new_lock

T = TypeVar("T")

MAX_THREADS = 1024
"""Most threads of a run, whatever is requested."""


def thread_count() -> int:
    """Threads that a plan should run on, at least 1.

    What `limit_threads` says in this context, else ``GPTRS_NUM_THREADS``, if it is not 0; else the
    available cores, or ``OMP_NUM_THREADS`` if that is less.
    """
    if wanted := _limit.get() or settings.num_threads():
        return min(wanted, MAX_THREADS)
    cores = recent_cores()
    if raw("OMP_NUM_THREADS") is None:
        return cores
    return min(cores, _openmp_limit(os.environ.get("OMP_NUM_THREADS", "")))


def thread_reason() -> str:
    """What decides `thread_count`, in words."""
    if limit := _limit.get():
        return f"limited to {limit}"
    if wanted := settings.num_threads():
        return f"{settings.num_threads.name}={wanted}"
    cores, every = available_cores(), os.cpu_count() or 1
    openmp = os.environ.get("OMP_NUM_THREADS", "")
    if _openmp_limit(openmp) < cores:
        return f"OMP_NUM_THREADS={openmp}"
    if (allowed := _affine_cores()) > cores:
        return f"the control group grants {_own_quota():g} of {allowed} cores"
    if cores < every:
        return f"the CPU affinity of this process: {cores} of {every} cores"
    return "all cores"


_limit: ContextVar[int] = ContextVar("gptrs_threads", default=0)


@contextmanager
def limit_threads(count: int) -> Generator[None]:
    """Inside the block plans run on ``count`` threads; 0 changes nothing."""
    token = _limit.set(count or _limit.get())
    try:
        yield
    finally:
        _limit.reset(token)


def spread(function: Callable[[T], object], items: Iterable[T], threads: int) -> None:
    """Call ``function`` with every item, on up to ``threads`` Python threads at once.

    For work that releases the GIL: reading, and kernels, which run on one thread each. Items are
    taken in their order. After an error no more are begun, and it is raised when the others have
    ended.
    """
    left, lock = iter(items), new_lock()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with limit_threads(1):
                while not errors:
                    with lock:
                        item = [*islice(left, 1)]
                    if not item:
                        return
                    function(item[0])
        except BaseException as error:
            errors.append(error)

    others = [Thread(target=copy_context().run, args=(work,)) for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    for error in errors:
        raise error


_RECENT = 0.1  # seconds; asking the system takes several microseconds, as long as a small call
RECENT = array("d", (0.0, 1.0))
"""Until when `recent_cores` holds on the monotonic clock, and what it is."""


def recent_cores() -> int:
    """`available_cores`, cached for `_RECENT` seconds."""
    until, cores = RECENT
    if (now := monotonic()) >= until:
        cores = available_cores()
        RECENT[1] = cores
        RECENT[0] = now + _RECENT
    return int(cores)


@cache
def _openmp_limit(text: str) -> int:
    first = text.split(",")[0].strip()  # a list, one per level
    return int(first) if first.isdecimal() and int(first) > 0 else MAX_THREADS


def available_cores() -> int:
    """Cores that this process may use, by CPU affinity and cgroup quota; at least 1.

    A quota is rounded down: a thread too many stops all of them until the next period.
    """
    return max(1, int(min(_affine_cores(), _own_quota())))


def _affine_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@cache
def _own_quota() -> float:
    """Read once: that takes some 0.2 ms, and quotas seldom change while a process lives."""
    return cgroup_quota()


def cgroup_quota(
    membership: Path = Path("/proc/self/cgroup"), mounts: Path = Path("/sys/fs/cgroup")
) -> float:
    """CPUs that the control groups of this process grant, versions 1 and 2; infinite if all."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return math.inf
    quota = math.inf
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for mount in ("", "unified") if not controllers else (controllers, "cpu", "cpu,cpuacct"):
            group = mounts / mount / path.lstrip("/")
            # Inside a container the path may be the host's: then only the root is here.
            for folder in (group, *group.parents):
                quota = min(quota, _granted(folder))
                if folder == mounts / mount:
                    break
    return quota


def _granted(folder: Path) -> float:
    """The quota of one control group."""
    try:
        if (v2 := folder / "cpu.max").exists():
            quota, period = v2.read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        return math.inf if quota == "max" or int(quota) <= 0 else int(quota) / int(period)
    except (OSError, ValueError):
        return math.inf
