"""Program cache of one jitted function: LRU by full key, with a reason for every miss.

The second cache level of a call, behind `gptrs.jit.fast_path`. Size: GPTRS_CACHE_SIZE. A miss is a
retrace; its `Reason` is the difference to the most similar of the keys used last, worded by
`gptrs.jit.differences` when somebody reads it. Entries are in slots, so that the call cache can see
an eviction.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from heapq import nlargest
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from gptrs.errors import Location
from gptrs.html_tables import block, fragment, table
from gptrs.jit.differences import difference, structure_change
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property, new_lock

Key = tuple[tuple[str, Hashable], ...]
V = TypeVar("V")
_COMPARED = 64  # the most keys that a miss is compared with


class CacheInfo(NamedTuple):
    """Counters as in `functools.lru_cache`."""

    hits: int
    misses: int
    maxsize: int
    currsize: int

    def _repr_html_(self) -> str:
        cells = [f"{count:,}" for count in self]
        return fragment(table(self._fields, [cells], numbers=range(len(cells))))


class Reason:
    """The reason of a miss: the difference of a key to the most similar of those ``known``.

    Finding it takes longer than a lookup, and grows with their number: it is found when read.
    """

    def __init__(self, key: Key, known: Sequence[Key]) -> None:
        self._key, self._known = key, known

    @property
    def is_first(self) -> bool:
        """Whether there was no program to compare with."""
        return not self._known

    @cached_property
    def _text(self) -> str:
        if self.is_first:
            return "the first call"
        return "; ".join(min((_changes(old, self._key) for old in self._known), key=len))

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True)
class Retrace:
    """A call that was traced: the reason, the user's line, and the time it took. Also an event."""

    function: str
    why: Reason
    where: Location | None
    milliseconds: float

    @property
    def reason(self) -> str:
        """What differs from the calls before."""
        return str(self.why)

    def __str__(self) -> str:
        at = f" at {self.where}" if self.where else ""
        return f"{self.function} was traced in {self.milliseconds:.1f} ms{at}: {self.reason}"


class Retraces(list[Retrace]):
    """The calls that were traced, oldest first; its text has a line for each."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "never traced"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (str(number), each.reason, str(each.where or ""), f"{each.milliseconds:.1f}")
            for number, each in enumerate(self, 1)
        ]
        title = f"traces of {self[0].function}" if self else "never traced"
        head = ("", "reason", "called at", "ms")
        return fragment(block(title), table(head, rows, numbers=(0, 3)) if rows else "")


@dataclass(slots=True)
class Slot(Generic[V]):
    """One entry, its last use, and whether it was evicted."""

    entry: V
    used: int  # the tick of the last use
    dropped: bool = False  # evicted


class Counters:
    """Hits and misses of a cache since it was made. A hit is counted by its tick alone, which
    native calls take too; `GPTRS_EXPLAIN` keeps these longer than the cache."""

    __slots__ = ("_others", "misses", "ticks")

    def __init__(self) -> None:
        self.ticks = count()  # one for each use; `next` needs no lock
        self.misses = 0
        self._others = 0  # ticks that are neither

    def hits(self) -> int:
        """The hits so far."""
        found = next(self.ticks) - self.misses - self._others
        self._others += 1
        return found


class ProgramCache(Generic[V]):
    """A bounded dict that several threads may use."""

    def __init__(self, maxsize: Callable[[], int]) -> None:
        self._lock = new_lock()
        self._maxsize = maxsize
        self._slots: dict[Key, Slot[V]] = {}
        self.counters = Counters()
        self.ticks = self.counters.ticks
        self._before = 0, 0  # hits and misses at the last `clear`

    def find(self, key: Key) -> Slot[V] | None:
        """The slot for ``key``, now the most recently used."""
        slot = self._slots.get(key)
        return slot if slot is not None and self.use(slot) else None

    def use(self, slot: Slot[V]) -> bool:
        """Make ``slot`` the most recently used; false when it was evicted."""
        if slot.dropped:
            return False
        slot.used = next(self.ticks)
        return True

    def add(self, key: Key, entry: V) -> tuple[Slot[V], bool]:
        """The new slot of ``entry``, and whether another was evicted."""
        with self._lock:
            self.counters.misses += 1
            slot = self._slots[key] = Slot(entry, next(self.ticks))
            full = len(self._slots) > self._maxsize()
            while len(self._slots) > self._maxsize():
                oldest = min(self._slots, key=lambda k: self._slots[k].used)
                self._slots.pop(oldest).dropped = True
            return slot, full

    def clear(self) -> None:
        """Remove all entries and reset the counters."""
        with self._lock:
            for slot in self._slots.values():
                slot.dropped = True
            self._slots.clear()
            self._before = self.counters.hits(), self.counters.misses

    def info(self) -> CacheInfo:
        with self._lock:
            hits, misses = self._before
            hits, misses = self.counters.hits() - hits, self.counters.misses - misses
            return CacheInfo(hits, misses, self._maxsize(), len(self._slots))

    def reason(self, key: Key) -> Reason:
        """The reason of a miss for ``key``, from the keys that were used last."""
        with self._lock:
            return Reason(key, nlargest(_COMPARED, self._slots, lambda k: self._slots[k].used))


def _changes(old: Key, new: Key) -> list[str]:
    before, after = _numbered(old), _numbered(new)
    differing = [
        what
        for what in dict.fromkeys((*after, *before))
        if what not in before or what not in after or before[what] != after[what]
    ]
    # A changed structure of an argument counts once, not again for each of its leaves.
    restructured = dict.fromkeys(
        _root(what)
        for what in differing
        if what[0].startswith(("argument ", "structure of argument "))
        and (what[0].startswith("structure") or what not in before or what not in after)
    )
    changed: list[str] = []
    for root in restructured:
        place, how = structure_change(_form(before, root), _form(after, root))
        changed.append(f"{root}{place}: {how}")
    for what in differing:
        if _root(what) not in restructured and what in before and what in after:
            changed.append(f"{what[0]}: {difference(before[what], after[what])}")
    if changed:  # changed captures are consequences of these
        return changed
    return [f"{what[0]} is read {'no longer' if what in before else 'now'}" for what in differing]


def _numbered(key: Key) -> dict[tuple[str, int], Hashable]:
    """The entries by name; repeated names are numbered."""
    seen: Counter[str] = Counter()
    entries: dict[tuple[str, int], Hashable] = {}
    for what, token in key:
        entries[what, seen[what]] = token
        seen[what] += 1
    return entries


def _root(what: tuple[str, int]) -> str:
    """``argument cache`` for ``argument cache.keys[0]``; other names as they are."""
    found = re.match(r"(?:structure of )?(argument \w+)", what[0])
    return found[1] if found else what[0]


def _form(entries: dict[tuple[str, int], Hashable], root: str) -> Hashable:
    """The structure of a container argument, or the token of another one."""
    return entries.get((f"structure of {root}", 0), entries.get((root, 0)))
