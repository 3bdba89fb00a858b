"""Step tables by address, with what reports their steps: what recorded timestamps belong to.

A recording (`gptrs.kernels.driver.recording`) has the addresses of tables alone. Who makes a table
adds it here, which costs a dictionary entry; a profile asks for the reports. Steps that Python runs
are in no recording: whoever runs them tells the listeners, while there are any.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from gptrs.kernels.driver.step_table import StepTable

Listener = Callable[[int, object, int, int, int], None]
"""Called with the address of a table, a step, the thread, and the ns before and after the step."""

listeners: list[Listener] = []
_tables: dict[int, tuple[weakref.ref[Any], Callable[[Any], Any]]] = {}
_copies: dict[int, int] = {}  # address of a copy: that of the table
_kept: list[list[object]] = []


def add(table: StepTable, owner: Any, report: Callable[[Any], Any]) -> None:
    """Add the table of ``owner``, until that is freed; ``report(owner)`` describes its steps."""
    address = table.address
    _tables[address] = weakref.ref(owner, lambda _: _tables.pop(address, None)), report
    for kept in _kept:
        kept.append(owner)


def add_copy(table: StepTable, copy: StepTable) -> None:
    """Add a copy of a table, whose steps have the same numbers."""
    address = copy.address
    _copies[address] = table.address
    weakref.finalize(copy, _copies.pop, address, None)


def report_of(address: int) -> Any:
    """The report of the table at ``address``; None if it was freed."""
    owner, report = _tables.get(_copies.get(address, address), (lambda: None, id))
    found = owner()
    return None if found is None else report(found)


@contextmanager
def kept() -> Generator[None]:
    """Free no table inside the block, so that each recorded address has its report."""
    alive: list[object] = [owner() for owner, _ in list(_tables.values())]
    _kept.append(alive)
    try:
        yield
    finally:
        _kept.remove(alive)


def tell(table: StepTable, step: object, start: int, end: int) -> None:
    """Tell the listeners about a step that Python ran."""
    for listener in listeners:
        listener(table.address, step, get_ident(), start, end)
