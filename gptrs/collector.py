"""Python's cyclic garbage collector, held off while many objects are made that live on.

Imports, traces and passes make some hundred thousand objects and hardly a cycle that is garbage.
Python collects after each 700 new ones (2,000 in later versions), and all objects anew whenever
they have grown by a quarter: a tenth of the time of a first call.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

from gptrs.locks import new_lock, tell_children

_HELD_OFF = 2**20  # new objects until a collection: a bound for the garbage of a traced function
_MANY = 2**14  # young objects that are not worth a look by the next collection
_LIMIT = 2**21  # objects that skip the young generations between two full collections


class Collector:
    """The thresholds of the collector before it was held off, and by how many blocks it is."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._blocks = 0
        self._before: tuple[int, int, int] | None = None
        self._promoted = self._full_collections = 0
        tell_children(self)

    def hold_off(self) -> None:
        with self._lock:
            self._blocks += 1
            young, *older = before = gc.get_threshold()
            if self._blocks == 1 and 0 < young < _HELD_OFF and gc.isenabled():
                self._before = before
                gc.set_threshold(_HELD_OFF, *older)

    def resume(self) -> None:
        with self._lock:
            self._blocks = max(0, self._blocks - 1)
            if self._blocks == 0:
                self._restore()

    def after_fork(self) -> None:
        """The blocks of other threads do not end in a forked child."""
        self._blocks = 0
        self._restore()

    def _restore(self) -> None:
        before, self._before = self._before, None
        if before is None or gc.get_threshold() != (_HELD_OFF, *before[1:]):
            return  # somebody has set other thresholds meanwhile: they stay
        self._promote()
        gc.set_threshold(*before)

    def _promote(self) -> None:
        """Move all young objects to the oldest generation without a look at them.

        Only so many between two full collections, so that a program that traces for ever has
        garbage collected. Objects that the user froze are left alone.
        """
        full, young = gc.get_stats()[2]["collections"], gc.get_count()[0]
        if full != self._full_collections:
            self._full_collections, self._promoted = full, 0
        if young < _MANY or self._promoted + young > _LIMIT or gc.get_freeze_count():
            return
        self._promoted += young
        gc.freeze()
        gc.unfreeze()


_collector = Collector()


@contextmanager
def rare_collections() -> Generator[None]:
    """In the block Python collects cyclic garbage rarely, in all threads.

    Afterwards the thresholds are those of before, unless they were set in the block.
    """
    _collector.hold_off()
    try:
        yield
    finally:
        _collector.resume()
