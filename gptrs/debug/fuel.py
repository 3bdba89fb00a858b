"""Rewrites counted over a whole process, so that one of them can be found guilty by its number."""

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


class _Tank:
    """The rewrites that a process has applied, and how many it may; all threads share it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit  # -1: no limit
        self.applied = 0
        self.lock = new_lock()
        self.token = secrets.token_hex(4)  # a later process may have the number of this one


class Ration(Fuel):
    """The fuel for one program, out of that of the process. Its log is of this program alone."""

    def __init__(self, tank: _Tank) -> None:
        super().__init__()
        self._tank = tank
        self.number = 0
        """Of the last rewrite that it was spent on, counted over the process from 1."""

    @property
    def empty(self) -> bool:
        return self._tank.applied == self._tank.limit

    def spend(self, what: str) -> bool:
        with self._tank.lock:
            if self._tank.applied == self._tank.limit:
                return False
            self._tank.applied += 1
            self.number = self._tank.applied
        self.log.append(what)
        return True


_tanks: list[_Tank] = []
_lock = new_lock()


def _tank_of(limit: int) -> _Tank:
    """The one of this process; another limit starts a new one."""
    with _lock:
        if not _tanks or _tanks[0].limit != limit:
            _tanks[:] = [_Tank(limit)]
        return _tanks[0]


@contextmanager
def rationed(limit: int, log: str, program: str) -> Generator[Fuel]:
    """Fuel for lowering ``program``, out of ``limit`` rewrites of this process (-1: any number).

    At the end a line of JSON is appended to the file ``log``, if there is one: how many rewrites
    were applied, and of the last that the limit allows its name, place and diff.
    """
    tank = _tank_of(limit)
    fuel = Ration(tank)
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
            "process": f"{os.getpid()}-{tank.token}",
            "program": program,
            "rewrites": len(fuel.log),
            "total": tank.applied,
        }
        if fuel.log and fuel.number == limit:
            row["last"] = {**_last(fuel, ran), "program": program, "error": problem}
        _append(log, row)


def _last(fuel: Ration, passes: Sequence[PassRan]) -> dict[str, Any]:
    """The last rewrite that ``fuel`` was spent on; no pass is named when the pass failed."""
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
