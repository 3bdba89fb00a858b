"""The programs of one decorated function, by key: least recently used out, every miss explained."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import RLock
from typing import Generic, NamedTuple, TypeVar

from gptrs.errors import Location
from gptrs.jit.arguments import difference

Key = tuple[tuple[str, Hashable], ...]
V = TypeVar("V")


class CacheInfo(NamedTuple):
    """Counters as in `functools.lru_cache`."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


@dataclass(frozen=True)
class Retrace:
    """A call that found no program: why, where from, and what tracing cost. Also an event."""

    function: str
    reason: str
    where: Location | None
    milliseconds: float

    def __str__(self) -> str:
        at = f" at {self.where}" if self.where else ""
        return f"{self.function} was traced in {self.milliseconds:.1f} ms{at}: {self.reason}"


class ProgramCache(Generic[V]):
    """A bounded dict that several threads may use."""

    def __init__(self, maxsize: Callable[[], int]) -> None:
        self.lock = RLock()
        self._maxsize = maxsize
        self._entries: OrderedDict[Key, V] = OrderedDict()
        self._hits = 0
        self._misses = 0

    def find(self, key: Key) -> V | None:
        """The entry for ``key``, now the most recently used."""
        with self.lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            self._hits += 1
            return entry

    def add(self, key: Key, entry: V) -> bool:
        """Keep ``entry``; true when another had to go for it."""
        with self.lock:
            self._misses += 1
            self._entries[key] = entry
            full = len(self._entries) > self._maxsize()
            while len(self._entries) > self._maxsize():
                self._entries.popitem(last=False)
            return full

    def clear(self) -> None:
        """Forget all entries and counts."""
        with self.lock:
            self._entries.clear()
            self._hits = self._misses = 0

    def info(self) -> CacheInfo:
        with self.lock:
            return CacheInfo(self._hits, self._misses, self._maxsize(), len(self._entries))

    def reason(self, key: Key) -> str:
        """Why ``key`` is not there: how it differs from the nearest key that is."""
        with self.lock:
            known = list(self._entries)
        if not known:
            return "the first call"
        changes = min((_changes(old, key) for old in reversed(known)), key=len)
        return "; ".join(changes)


def _changes(old: Key, new: Key) -> list[str]:
    before, after = dict(old), dict(new)
    changed = [
        f"{what}: {difference(before[what], token)}"
        for what, token in after.items()
        if what in before and before[what] != token
    ]
    changed += [f"{what} is new" for what in after if what not in before]
    return changed + [f"{what} is gone" for what in before if what not in after]


def advice(reason: str, signature: inspect.Signature) -> str:
    """What would avoid the retraces that ``reason`` describes."""
    for name in signature.parameters:
        if f"argument {name}" in reason and "axis" in reason:
            return f"make the axis symbolic: ptir.jit(dynamic={{{name!r}: {{axis: 'S'}}}})"
    return "pass changing values as arrays"
