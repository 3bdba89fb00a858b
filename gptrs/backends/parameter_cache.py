"""The parameter cache: packed, derived and stored forms of weights, with a limit in bytes.

A plan reads a parameter as it is stored, or packed for its kernels; the parameter may be derived
from others by passes (`hoist`). Each form is made once, when a plan first needs it, and is dropped
with its parameter. The forms of all models and plans are in one cache, so that they can be listed,
kept below a limit, and released.

A run does not look up the cache: a plan's binding takes a `Lease` on its forms when it first meets
the parameters, and compares the parameters' identities in later runs. Eviction first ends the
leases on a form, which a running call prevents.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from threading import get_ident
from typing import NamedTuple, Protocol, cast

from gptrs import settings
from gptrs.backends.weight_residency import Entry, Lease, Uses, next_use
from gptrs.byte_sizes import as_size, size_text
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array, Type
from gptrs.locks import new_lock, tell_children
from gptrs.params import ParamSource

_SHOWN = 20  # forms shown in the text of a cache


class HasParameters(Protocol):
    """A model, loaded or built."""

    def parameters(self) -> Mapping[str, Parameter]: ...


class DerivedParameter(Parameter):
    """A parameter computed from others, its ``sources``, of which it holds weak references."""

    __slots__ = ("sources",)

    @classmethod
    def of(
        cls, name: str, type: Type, source: ParamSource, sources: Sequence[Parameter]
    ) -> DerivedParameter:
        """The parameter called ``name`` that ``source`` computes from ``sources``."""
        made = cast("DerivedParameter", cls.from_source(name, type, source))
        made.sources = [weakref.ref(parameter) for parameter in sources]
        return made


def form_name(is_derived: bool, is_packed: bool) -> str:
    """The name of a form of a parameter in listings."""
    return ", ".join(["derived"] * is_derived + ["packed"] * is_packed) or "as stored"


class HeldForm(NamedTuple):
    """A form in the cache, named as by `form_name`, and how often a binding was loaded with it."""

    name: str
    form: str
    bytes: int
    uses: int


class ParameterCacheInfo(NamedTuple):
    """Counters as in `functools.lru_cache`; ``bytes`` in the cache, and their ``limit`` (None: no
    limit)."""

    entries: int
    bytes: int
    limit: int | None
    hits: int
    misses: int
    evictions: int


class ParameterCache:
    """Forms of parameters, by the identity of the parameter and the form's key."""

    def __init__(self) -> None:
        # Held for dictionaries and counts, never while a form is made. Callbacks of references,
        # which may come at any time, must do without it.
        self._lock = new_lock()
        self._entries: dict[tuple[int, Hashable], Entry] = {}
        self._leases: dict[int, weakref.ref[Lease]] = {}
        self._derived: dict[int, weakref.ref[DerivedParameter]] = {}
        self._limit: int | None = None
        self._hits = self._misses = self._evictions = 0
        tell_children(self)

    def after_fork(self) -> None:
        """In a child process: end the leases of the parent's threads, and drop forms they were
        making."""
        for reference in list(self._leases.values()):
            lease = reference()
            if lease is not None and lease.running not in (0, get_ident()):
                lease.running = 0
                lease.end()
        for entry in self._entries.values():
            entry.counts = entry.array is not None

    def get(
        self,
        lease: Lease,
        parameter: Parameter,
        form: Hashable,
        size: int,
        make: Callable[[], Array],
    ) -> Array:
        """The form of ``parameter`` with the key ``form`` (None: its elements as stored).

        ``make`` returns it, about ``size`` bytes, on a miss. The form stays while a run of
        ``lease`` is in progress. Threads may make several forms at the same time.
        """
        entry = self._entry(lease, parameter, form, size)
        with entry.lock:
            if (array := entry.array) is not None:
                return array
            with self._lock:
                self._make_room(size)
                self._misses += 1
                entry.counts = True
            try:
                array = entry.array = make()
                entry.size = array.nbytes
            finally:
                entry.counts = entry.array is not None
            return array

    def _entry(self, lease: Lease, parameter: Parameter, form: Hashable, size: int) -> Entry:
        """The entry of a form, added to the entries of ``lease``."""
        key = id(parameter), form

        def drop(_: object) -> None:
            gone = self._entries.pop(key, None)
            if gone is not None:  # its parameter is, and with it all runs
                gone.array, gone.counts = None, False

        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.parameter() is not parameter:
                what = form_name(isinstance(parameter, DerivedParameter), form is not None)
                reference = weakref.ref(parameter, drop)
                entry = self._entries[key] = Entry(reference, what, size, form is None)
            self._hits += entry.array is not None
            entry.uses += 1
            entry.used = next_use()
            lease.entries.append(entry)
            if id(lease) not in self._leases:

                def forget(_: object, number: int = id(lease)) -> None:
                    self._leases.pop(number, None)

                self._leases[id(lease)] = weakref.ref(lease, forget)
            return entry

    def add_derived(self, parameter: DerivedParameter) -> None:
        """Register a derived parameter, so that `release` finds it whatever backend uses it."""

        def forget(_: object, number: int = id(parameter)) -> None:
            self._derived.pop(number, None)

        self._derived[id(parameter)] = weakref.ref(parameter, forget)

    @property
    def limit(self) -> int | None:
        """The limit of all forms in bytes, None for no limit; settable (also ``"2GB"``).

        Least recently used forms are evicted first, and made again when they are needed. A form
        that a run uses stays, and a plan that needs more than the limit gets more. When set to
        None, ``GPTRS_PARAMETER_CACHE_BYTES`` applies.
        """
        limit = settings.parameter_cache_bytes() if self._limit is None else self._limit
        return None if limit < 0 else limit

    @limit.setter
    def limit(self, limit: int | str | None) -> None:
        self._limit = None if limit is None else as_size(limit, "the limit of the parameter cache")
        with self._lock:
            self._make_room(0)

    def info(self) -> ParameterCacheInfo:
        """The counters of the cache."""
        forms = self.forms()
        with self._lock:
            counts = self._hits, self._misses, self._evictions
        return ParameterCacheInfo(len(forms), sum(f.bytes for f in forms), self.limit, *counts)

    def forms(self) -> list[HeldForm]:
        """The forms in memory, largest first."""
        entries = [e for e in self._entries.copy().values() if e.array is not None]
        found = [HeldForm(e.name, e.what, e.size, e.uses) for e in entries]
        known = {id(e.parameter()) for e in entries if e.is_kept_by_parameter}
        for reference in self._derived.copy().values():  # held for another backend
            parameter = reference()
            if parameter is not None and parameter.in_memory and id(parameter) not in known:
                found.append(HeldForm(parameter.name, "derived", parameter.bytes, 0))
        return sorted(found, key=lambda form: (-form.bytes, form.name))

    def release(self, model: HasParameters | None = None) -> int:
        """Free all forms that can be made again; with ``model``, those of that model alone.

        Forms that a run uses stay. Returns the number of bytes freed. Later calls make the forms
        again, with the same bits.
        """
        before = sum(form.bytes for form in self.forms())
        own = None if model is None else set(map(id, model.parameters().values()))
        with self._lock:
            entries = [e for e in self._entries.copy().values() if e.array is not None]
            uses = Uses(self._leases)
            for entry in entries:
                if own is None or _belongs(entry.parameter(), own):
                    self._take(entry, uses)
        for reference in self._derived.copy().values():
            parameter = reference()
            if parameter is not None and (own is None or _belongs(parameter, own)):
                parameter.release()
        if model is not None:  # elements that were loaded outside of plans
            for parameter in model.parameters().values():
                parameter.release()
        return before - sum(form.bytes for form in self.forms())

    def _make_room(self, size: int) -> None:
        """Evict the least recently used forms until ``size`` more bytes are below the limit."""
        if (limit := self.limit) is None:
            return
        entries = [e for e in self._entries.copy().values() if e.counts]
        excess = sum(entry.size for entry in entries) + size - limit
        if excess <= 0:
            return
        uses = Uses(self._leases)
        for entry in sorted(entries, key=uses.last):
            if excess <= 0:
                return
            if entry.array is not None and self._take(entry, uses):
                excess -= entry.size
                self._evictions += 1

    def _take(self, entry: Entry, uses: Uses) -> bool:
        """Free a form; False if a run uses it."""
        if not uses.end(entry):
            return False
        entry.array, entry.counts = None, False
        if entry.is_kept_by_parameter and (parameter := entry.parameter()) is not None:
            parameter.release()
        return True

    def __repr__(self) -> str:
        info = self.info()
        limit = "no limit" if info.limit is None else f"at most {size_text(info.limit)}"
        return (
            f"ParameterCache({info.entries} forms, {size_text(info.bytes)}, {limit};"
            f" {info.hits} hits, {info.misses} misses, {info.evictions} evictions)"
        )

    def __str__(self) -> str:
        return "\n".join([repr(self), *_lines(self.forms())])


def _belongs(parameter: Parameter | None, own: set[int]) -> bool:
    """Whether a parameter is one of ``own``, or derived from one."""
    if isinstance(parameter, DerivedParameter):
        return any(_belongs(source(), own) for source in parameter.sources)
    return id(parameter) in own


def _lines(forms: Sequence[HeldForm]) -> Iterator[str]:
    """A table of the largest ``forms``."""
    rows = [(f.name, f.form, size_text(f.bytes), str(f.uses)) for f in forms[:_SHOWN]]
    if rows:
        rows.insert(0, ("parameter", "form", "size", "uses"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for name, form, size, uses in rows:
            cells = f"{name:{widths[0]}}", f"{form:{widths[1]}}", f"{size:>{widths[2]}}"
            yield "  ".join(["", *cells, f"{uses:>{widths[3]}}"])
    if rest := forms[_SHOWN:]:
        yield f"  and {len(rest)} more of {size_text(sum(form.bytes for form in rest))}"


parameter_cache = ParameterCache()
"""The cache of this process."""
