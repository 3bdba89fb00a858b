"""Selection of a backend at run time: which are there, what fits, and the one to take.

    gptrs.print_backend_summary()
    gptrs.init_backend("auto", required="4GB")

Backends are asked once for a process. ``auto`` takes the first of `PREFERENCE` that is available,
is no device that the CPU plays, and has the memory that is required. A fallback says why: a driver
that is broken, a device that is too small.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from gptrs import settings
from gptrs.backends.base import Availability, Backend, DeviceInfo
from gptrs.backends.discovery import (
    BACKENDS,
    backend_class,
    backend_path,
    get_backend,
    is_made,
    known_backends,
)
from gptrs.backends.probe import Probed, ask, probe
from gptrs.byte_sizes import as_size, size_text
from gptrs.errors import ArgumentError, BackendWarning, PtirError, warn
from gptrs.ir.device_array import DeviceArray, on_host
from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass

PREFERENCE = ("cuda", "rocm", "metal", "opencl", "webgpu", "faer")
"""The backends that ``auto`` chooses from, the best first."""
AUTO = "auto"
ALIASES = {"cpu": "faer"}
_ABSENT = Availability(
    "no package that is installed offers it",
    "install one with an entry point of the group gptrs.backends (docs/backend.md)",
    is_absent=True,
)


@dataclass(frozen=True)
class BackendStatus:
    """A backend on this machine: whether it is available, the reason if not, and its devices."""

    name: str
    availability: Availability
    devices: tuple[DeviceInfo, ...] = ()

    def fits(self, required: int) -> bool:
        """Whether the first device has so many bytes."""
        return not required or (bool(self.devices) and self.devices[0].room >= required)

    @property
    def is_software(self) -> bool:
        """Whether the CPU plays its first device."""
        return bool(self.devices) and self.devices[0].is_software


_answers: dict[str, BackendStatus] = {}
"""Of backends that a process of their own was asked."""


def backend_status(name: str) -> BackendStatus:
    """What the backend ``name`` finds on this machine. A driver is asked once for a process."""
    name = ALIASES.get(name, name)
    if _is_absent(name):
        return BackendStatus(name, _ABSENT)
    try:
        found = backend_class(name)
    except ArgumentError as error:
        if name not in known_backends():
            raise
        # A package that cannot be imported.
        return BackendStatus(name, Availability(error.problem, error.fix))
    if not (missing := found.missing()):
        return BackendStatus(name, missing)
    if not found.needs_driver:
        return _told(name, ask(found))
    if (known := _answers.get(name)) is None:
        path = backend_path(name)
        answer = ask(found) if path is None else probe(path)
        known = _answers.setdefault(name, _told(name, answer))
    return known


def _is_absent(name: str) -> bool:
    """Whether nothing is installed that is called ``name``, one of `PREFERENCE`."""
    return name in PREFERENCE and name not in BACKENDS and name not in known_backends()


@cache
def _automatic() -> str:
    return best_available_backend()


def _told(name: str, answer: Probed) -> BackendStatus:
    return BackendStatus(name, answer.availability, answer.devices)


def discover_backends() -> tuple[BackendStatus, ...]:
    """All backends: those that ``auto`` chooses from, the best first, then the others by name."""
    others = (name for name in known_backends() if name not in PREFERENCE)
    return tuple(backend_status(name) for name in (*PREFERENCE, *others))


def best_available_backend(*, required: int | str = 0) -> str:
    """The name of the backend that ``auto`` takes where ``required`` bytes of memory are needed.

    Raises `ArgumentError` with the free memory of each device if no backend has them.
    """
    return _choose(as_size(required, "required")).name


def init_backend(name: str = AUTO, *, required: int | str = 0) -> Backend:
    """Make the backend ``name`` the one of this process, and return it.

    ``"auto"`` takes the first that is available, of ``"cuda"``, ``"rocm"``, ``"metal"``,
    ``"opencl"``, ``"webgpu"`` and ``"cpu"`` (`best_available_backend`). With ``required`` (bytes or
    ``"4GB"``) its device has to have so much memory free. The variable ``GPTRS_BACKEND`` is set, so
    that processes started later use it too; ``ptir.jit(backend=...)`` and ``ptir.backend`` go
    before it.

    Raises `ArgumentError` for a backend that is not available here, saying why and how to get it,
    and for one with too little memory.
    """
    found = fitting_backend(name, as_size(required, "required"))
    chosen = get_backend(found)
    settings.backend.put(found)
    return chosen


def init_backend_with_memory_check(name: str, required: int | str) -> Backend:
    """`init_backend` with ``required`` bytes of memory, as the estimate of a model says them."""
    return init_backend(name, required=required)


def fitting_backend(name: str, required: int) -> str:
    """The backend that ``name`` stands for, if its device has so many bytes free.

    Raises `ArgumentError` as `init_backend` does.
    """
    return (_choose(required) if name == AUTO else _checked(name, required)).name


def selected(name: str) -> Backend:
    """The backend called ``name``, of which ``"auto"`` and ``"cpu"`` stand for others.

    Raises `ArgumentError` if there is none, or if it is not available here.
    """
    name = _automatic() if name == AUTO else ALIASES.get(name, name)
    if not is_made(name) and (_is_absent(name) or backend_class(name).needs_driver):
        _checked(name, 0)
    return get_backend(name)


def check_name(name: str) -> None:
    """Raise `ArgumentError` if there is no backend called ``name``. Which one ``"auto"`` stands for
    is found when a program is made."""
    if name != AUTO:
        selected(name)


def placed(array: Array | DeviceArray, name: str) -> DeviceArray:
    """A copy of ``array`` on the first device of the backend ``name``. Raises `ArgumentError` for
    one that is not available here or has no device of its own."""
    return selected(name).to_device(on_host(array))


def _checked(name: str, required: int) -> BackendStatus:
    """The status of a backend by its name. Raises `ArgumentError` if it cannot be used."""
    status = backend_status(name)
    if not status.availability:
        raise ArgumentError(
            f"backend {name!r} is not available: {status.availability.reason}",
            fix=status.availability.fix or "gptrs backends lists those that are",
        )
    if not status.fits(required):
        raise _too_small(required, [status])
    return status


def _choose(required: int) -> BackendStatus:
    """The first of `PREFERENCE` that can be used. Warns of devices that are there and are not
    taken."""
    passed: list[str] = []
    statuses: list[BackendStatus] = []
    for name in PREFERENCE:
        status = backend_status(name)
        if not status.availability:
            if not status.availability.is_absent:
                passed.append(f"{name}: {status.availability.reason}")
            continue
        statuses.append(status)
        if status.is_software:  # the CPU's own backend is the same device, and faster
            continue
        if not status.fits(required):
            passed.append(f"{name}: {_room(status)}, and {size_text(required)} are needed")
        else:
            if passed:
                warn(f"backend {name!r} is taken: {'; '.join(passed)}", BackendWarning)
            return status
    raise _too_small(required, statuses)


def _too_small(required: int, statuses: Iterable[BackendStatus]) -> PtirError:
    rooms = "; ".join(f"{status.name}: {_room(status)}" for status in statuses)
    return ArgumentError(
        f"{size_text(required)} are needed, and no device has them free: {rooms}",
        fix="take a shorter context, fewer rows, or weights in 16 bits: gptrs fit says what fits",
    )


def _room(status: BackendStatus) -> str:
    return ", ".join(f"{d.name} has {size_text(d.room)} free" for d in status.devices)
