"""Leases on forms of parameters: which bindings use a form, whether one runs now, and the last use.

Used by `gptrs.backends.parameter_cache` to decide what it may evict. A run sets ``running`` before
it reads ``given``; eviction clears ``given`` before it reads ``running``: one of the two sees the
other without a lock.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import field
from itertools import count
from threading import RLock

from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import new_lock

next_use = count(1).__next__
"""A counter that orders uses in time."""


@dataclass(eq=False)
class Entry:
    """One form of one parameter in the cache."""

    parameter: weakref.ref[Parameter]
    what: str
    size: int
    """The size in bytes."""
    is_kept_by_parameter: bool
    """Whether the form is the parameter's own array."""
    lock: RLock = field(default_factory=new_lock)
    """Held while the form is made."""
    array: Array | None = None
    counts: bool = False
    """Whether the form is in memory, or being made."""
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
        """The thread whose run uses the forms, which must stay; 0 if there is none. A run sets it
        before it reads ``given``; eviction clears ``given`` before it reads ``running``, so that
        one of the two sees the other."""
        self.used = 0
        self.given: object = None
        """The identities of the parameters, in the binding's order."""
        self.held: list[object] = []
        """References that keep their elements alive."""
        self.entries: list[Entry] = []

    def end(self, _: object = None) -> None:
        """Drop the references to the forms."""
        self.given, self.held, self.entries = None, [], []


class Uses:
    """A snapshot of leases: by form, the leases on it and its last use."""

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
        """The time of the last use of ``entry``."""
        return max(entry.used, self._last.get(entry, 0))

    def end(self, entry: Entry) -> bool:
        """End all leases on ``entry``; False while a run uses one of them."""
        leases = self._leases.get(entry, [])
        if any(lease.running for lease in leases):
            return False
        for lease in leases:
            lease.given = None  # a run that begins now sees this,
            if lease.running:  # or is seen here
                return False
            lease.end()
        return True
