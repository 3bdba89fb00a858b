"""Who holds forms of parameters: bindings of plans, and whether they run at this moment."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from threading import RLock

from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.locks import new_lock

next_use = count(1).__next__
"""Numbers uses in their order."""


@dataclass(eq=False)
class Entry:
    """One form of one parameter."""

    parameter: weakref.ref[Parameter]
    what: str
    size: int
    """In bytes."""
    is_kept_by_parameter: bool
    """Whether it is the parameter's own array."""
    lock: RLock = field(default_factory=new_lock)
    """Held while it is made."""
    array: Array | None = None
    counts: bool = False
    """Whether it is there, or being made."""
    uses: int = 0
    used: int = 0

    @property
    def name(self) -> str:
        parameter = self.parameter()
        return "" if parameter is None else parameter.name


class Lease:
    """The forms that a plan's binding points to. It serves one run at a time."""

    __slots__ = ("__weakref__", "entries", "given", "held", "running", "used")

    def __init__(self) -> None:
        self.running = 0
        """The thread whose run needs what is held, so that it must stay; 0 where none does. Set
        before a run looks at ``given``: who takes forms away looks the other way round, so that one
        of the two sees what the other does."""
        self.used = 0
        self.given: object = None
        """The identities of the parameters, in the binding's order."""
        self.held: list[object] = []
        """Their elements, which must not go away meanwhile."""
        self.entries: list[Entry] = []

    def end(self, _: object = None) -> None:
        """Let the parameters go."""
        self.given, self.held, self.entries = None, [], []


class Uses:
    """Which forms are in use at this moment, by whom, and when they were used last."""

    def __init__(self, leases: Mapping[int, weakref.ref[Lease]]) -> None:
        self._leases: dict[Entry, list[Lease]] = {}
        self._last: dict[Entry, int] = {}
        for reference in list(leases.values()):
            lease = reference()
            if lease is None:
                continue
            for entry in [*lease.entries]:
                self._leases.setdefault(entry, []).append(lease)
                self._last[entry] = max(self._last.get(entry, 0), lease.used)

    def last(self, entry: Entry) -> int:
        """When ``entry`` was used last."""
        return max(entry.used, self._last.get(entry, 0))

    def end(self, entry: Entry) -> bool:
        """End all leases on ``entry``; false, and nothing more, where a run has one."""
        leases = self._leases.get(entry, [])
        if any(lease.running for lease in leases):
            return False
        for lease in leases:
            lease.given = None  # a run that begins now sees this,
            if lease.running:  # or is seen here
                return False
            lease.end()
        return True
