"""Rewrite fuel: a process-wide limit on the number of rewrites, to bisect miscompilations.

GPTRS_FUEL=n applies the first n rewrites of a process only; ``gptrs bisect`` searches the n at
which a command begins to fail. `gptrs.jit.lower` takes the fuel of each program from here.
GPTRS_FUEL_LOG records the counts, and the last rewrite that the limit allows with its pass and
diff.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from gptrs import events
from gptrs.debug.diff import changes
from gptrs.errors import SettingError
from gptrs.ir.rewrite import Fuel
from gptrs.locks import new_lock
from gptrs.passes.base import PassRan


class _ProcessFuel:
    """The rewrites that the process has applied, and their limit; shared by all threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit  # -1: no limit
        self.applied = 0
        self.lock = new_lock()
        self.token = secrets.token_hex(4)  # process ids are used again


class ProgramFuel(Fuel):
    """The fuel of one program, spent from that of the process. The log is the program's own."""

    def __init__(self, process: _ProcessFuel) -> None:
        super().__init__()
        self._process = process
        self.number = 0
        """The number of the last rewrite, counted over the process from 1."""

    @property
    def empty(self) -> bool:
        return self._process.applied == self._process.limit

    def spend(self, what: str) -> bool:
        with self._process.lock:
            if self._process.applied == self._process.limit:
                return False
            self._process.applied += 1
            self.number = self._process.applied
        self.log.append(what)
        return True


_current: list[_ProcessFuel] = []
_lock = new_lock()


def _process_fuel(limit: int) -> _ProcessFuel:
    """The fuel of this process; a changed limit starts a new count."""
    with _lock:
        if not _current or _current[0].limit != limit:
            _current[:] = [_ProcessFuel(limit)]
        return _current[0]


@contextmanager
def limited_fuel(limit: int, log: str, program: str) -> Generator[Fuel]:
    """Fuel for lowering ``program``, from the ``limit`` of this process (-1: unlimited).

    At the end a line of JSON is appended to the file ``log``, if there is one: the number of
    rewrites, and name, location and diff of the last one that the limit allows.
    """
    process = _process_fuel(limit)
    fuel = ProgramFuel(process)
    if not log:
        yield fuel
        return
    ran: list[PassRan] = []
    problem = ""
    try:
        with events.listen(lambda event: ran.append(event) if isinstance(event, PassRan) else None):
            yield fuel
    except Exception as error:
        problem = str(error) or type(error).__name__
        raise
    finally:
        row: dict[str, Any] = {
            "process": f"{os.getpid()}-{process.token}",
            "program": program,
            "rewrites": len(fuel.log),
            "total": process.applied,
        }
        if fuel.log and fuel.number == limit:
            row["last"] = {**_last(fuel, ran), "program": program, "error": problem}
        _append(log, row)


def _last(fuel: ProgramFuel, passes: Sequence[PassRan]) -> dict[str, Any]:
    """The last rewrite, for the log; without its pass when that pass failed."""
    found = {"number": fuel.number, "rewrite": fuel.log[-1], "pass": "", "where": "", "diff": ""}
    if sum(len(ran.rewrites) for ran in passes) == len(fuel.log):
        ran = next(ran for ran in reversed(passes) if ran.rewrites)
        count = len(ran.rewrites)
        (change,) = changes(ran.again(Fuel(count - 1)), ran.again(Fuel(count)))
        found |= {"pass": ran.name, "where": str(change.where or ""), "diff": str(change)}
    return found


def _append(log: str, row: dict[str, Any]) -> None:
    try:
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(file, f"{json.dumps(row)}\n".encode())  # one write, so that lines stay whole
        finally:
            os.close(file)
    except OSError as error:
        raise SettingError(
            f"GPTRS_FUEL_LOG={log!r}: {error.strerror}", fix="give a file that can be written"
        ) from None
