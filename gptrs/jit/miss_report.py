"""GPTRS_EXPLAIN: a line on stderr for each trace, and a table of the functions traced at exit.

`gptrs.jit.function` wraps every miss of a program cache in `reported`. Calls and hits are read from
the cache's own counters, which native calls take too: counting costs a call nothing. A forked child
reports what it traced itself, and counts from there.
"""

from __future__ import annotations

import atexit
import inspect
import os
import re
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field
from time import perf_counter

from gptrs import events, settings
from gptrs.debug.explain import columns
from gptrs.debug.lowering import Lowering
from gptrs.debug.stderr import say
from gptrs.errors import Location
from gptrs.jit.advice import advice
from gptrs.jit.cache import Counters, Reason
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import new_lock, tell_children

_HEAD = "function", "calls", "hits", "misses", "ms", "commonest reason", "advice"
_OLD_AND_NEW = re.compile(r": \S+ → \S+?(?=[,;]?(?:\s|$))")
_MANY = 3  # decorations of one function that are not two models of a kind


@contextmanager
def reported(
    function: str,
    signature: inspect.Signature,
    counters: Counters,
    why: Reason,
    where: Location | None,
) -> Generator[None]:
    """Report the lowering inside the block as GPTRS_EXPLAIN says, even if it fails. ``function`` is
    traced for the reason ``why``, by the call at ``where``; ``counters`` are those of its cache."""
    wanted = settings.explain().split(",")
    if wanted == [""]:
        yield
        return
    reason = str(why)
    remedy = advice(reason, signature)
    lowering = Lowering(function, reason, where)
    start = perf_counter()
    try:
        with events.listen(lowering.hear):
            yield
    finally:
        milliseconds = (perf_counter() - start) * 1e3
        if "summary" in wanted:
            _SUMMARY.add(function, signature, counters, reason, remedy, milliseconds)
        if "1" in wanted:
            say(_line(lowering, remedy, milliseconds))


def _line(lowering: Lowering, remedy: str, milliseconds: float) -> str:
    at = f" at {lowering.where}" if lowering.where else ""
    parts = [f"gptrs: {lowering.function}{at}, traced for {lowering.reason}"]
    times = lowering.times()
    parts.append(f"{milliseconds:.1f} ms{f' ({times})' if times else ''}")
    if lowering.failed:
        parts.append(f"the {lowering.failed} failed")
    if remedy:
        parts.append(f"fix: {remedy}")
    return "; ".join(parts)


@dataclass
class _Traces:
    """The traces of one function, however often it was decorated."""

    caches: dict[Counters, int] = field(default_factory=dict[Counters, int])
    """The counters of each decoration, and the hits that do not count."""
    misses: int = 0
    milliseconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter[str])
    """The retraces by their reasons, without old and new values."""
    remedies: dict[str, str] = field(default_factory=dict[str, str])

    def row(self, name: str) -> tuple[str, ...]:
        """Its row in the table."""
        hits = sum(cache.hits() - before for cache, before in self.caches.items())
        reason, advice = "the first call", ""
        retraces = self.reasons.total()
        first = self.misses - retraces
        if len(self.caches) >= _MANY and first > retraces:
            reason = f"the first call, {first} of {self.misses}"
            advice = f"decorate it once: it was {len(self.caches)} times"
        elif self.reasons:
            ((commonest, count),) = self.reasons.most_common(1)
            reason, advice = f"{commonest}, {count} of {retraces}", self.remedies[commonest]
        counts = map(str, (hits + self.misses, hits, self.misses))
        return name, *counts, f"{self.milliseconds:.1f}", reason, advice


class _Summary:
    """The traces of this process, and the table of them at its exit."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._functions: dict[tuple[str, str], _Traces] = {}
        self._is_child = self._is_registered = False
        tell_children(self)

    def after_fork(self) -> None:
        """Forget the traces of the parent, which reports them."""
        self._functions.clear()
        self._is_child = True

    def add(
        self,
        function: str,
        signature: inspect.Signature,
        counters: Counters,
        reason: str,
        remedy: str,
        milliseconds: float,
    ) -> None:
        """Count a trace."""
        with self._lock:
            if not self._is_registered:
                self._is_registered = True
                atexit.register(self._tell)
            traces = self._functions.setdefault((function, str(signature)), _Traces())
            if counters not in traces.caches:
                traces.caches[counters] = counters.hits() if self._is_child else 0
            traces.misses += 1
            traces.milliseconds += milliseconds
            if reason != "the first call":
                alike = _OLD_AND_NEW.sub("", reason)
                traces.reasons[alike] += 1
                traces.remedies.setdefault(alike, remedy)

    def _tell(self) -> None:
        if self._functions:
            say("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        with self._lock:
            slowest = sorted(self._functions.items(), key=lambda each: -each[1].milliseconds)
            rows = [traces.row(name) for (name, _), traces in slowest]
            misses = sum(traces.misses for _, traces in slowest)
            milliseconds = sum(traces.milliseconds for _, traces in slowest)
        process = f" in the forked process {os.getpid()}" if self._is_child else ""
        count = f"{len(rows)} function{'s' * (len(rows) != 1)}"
        took = f"traced {misses} time{'s' * (misses != 1)} in {milliseconds:.1f} ms"
        return [f"gptrs: {count} {took}{process}", *columns([_HEAD, *rows])]


_SUMMARY = _Summary()
