"""Probes: what backends find on this machine, asked in a process for each of them.

A broken driver may crash or hang the process that asks it. `probe` starts one that imports the
class of a backend, asks it, and writes the answer as JSON; what comes in no time, or is none, is a
reason why the backend is not available.

    python -m gptrs.backends.probe my_package.backend:MyBackend
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict
from typing import Any

from gptrs.backends.base import Availability, Backend, DeviceInfo
from gptrs.errors import PtirError
from gptrs.isolated import start_python
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import late_import

SECONDS = 30.0
"""How long a probe may take: the import of a large package from a cold disk takes half of it."""
_MARK = "gptrs probe: "  # before the answer, as a driver may print too


@dataclass(frozen=True)
class Probed:
    """The answer of a backend."""

    availability: Availability
    devices: tuple[DeviceInfo, ...] = ()


def ask(backend: type[Backend]) -> Probed:
    """The answer of ``backend``, in this process. An error of it is a reason."""
    try:
        made = backend()
        found = made.is_available()
        return Probed(found, made.devices() if found else ())
    except PtirError as error:
        return Probed(Availability(error.problem, error.fix))
    except Exception as error:  # of any driver
        return Probed(Availability(f"asking it fails: {type(error).__name__}: {error}"))


def probe(path: str, seconds: float = SECONDS) -> Probed:
    """The answer of the class at ``path`` (``module:Class``), in a process of its own."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    asked = start_python("-m", __name__, path, stdin=subprocess.DEVNULL, text=True, **pipes)
    with asked:
        try:
            told, errors = asked.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return Probed(Availability(f"its driver gave no answer in {seconds:.0f} s"))
        finally:
            asked.kill()  # of an interrupt, too; it has ended where there is an answer
    for line in told.splitlines():
        if line.startswith(_MARK):
            return _read(line.removeprefix(_MARK))
    return Probed(Availability(f"asking it {_end(asked.returncode)}{_last(errors)}"))


def _read(text: str) -> Probed:
    found = json.loads(text)
    devices = tuple(DeviceInfo(**each) for each in found["devices"])
    return Probed(Availability(**found["availability"]), devices)


def _end(code: int) -> str:
    if code < 0:
        return f"ended the process with {signal.Signals(-code).name}"
    return f"ended the process with status {code}"


def _last(errors: str) -> str:
    lines = errors.strip().splitlines()
    return f": {lines[-1]}" if lines else ""


if __name__ == "__main__":
    _module, _, _name = sys.argv[1].partition(":")
    _found: type[Backend] = late_import(_module)
    for _part in _name.split("."):
        _found = getattr(_found, _part)
    print(f"{_MARK}{json.dumps(asdict(ask(_found)))}", flush=True)
