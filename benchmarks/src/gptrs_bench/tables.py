"""Output of ``gptrs bench``: result tables and a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gptrs import events
from gptrs.cli import interrupt

if TYPE_CHECKING:
    from gptrs_bench.results import Result

_THINGS = {"prefill": "token", "decode": "token", "latency": "image"}


def print_result(result: Result) -> None:
    """Print the sides with medians, quartiles, and how many times as good as each ours is."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from gptrs_bench.results import thread_count

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 2))
    for name in ("side", f"median, {result.unit}", "quartiles", "ours is … times as good"):
        table.add_column(name, justify="left" if name == "side" else "right")
    for row in result.rows():
        ratio = "" if row.side == "ours" else f"{row.times_as_good:.2f}"
        quartiles = f"{row.first_quartile:.4g} to {row.third_quartile:.4g}"
        table.add_row(Text(row.side), f"{row.median:.4g}", quartiles, ratio)
    console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False)
    title = f"{result.model}: {what(result.mode, result.count)}, {thread_count(result.threads)}"
    console.print(Text(f"\n{title}"))
    console.print(table)


def what(mode: str, count: int) -> str:
    """What is measured: ``prefill 64 tokens``."""
    return f"{mode} {count} {_THINGS[mode]}{'s' * (count > 1)}" if mode in _THINGS else mode


@contextmanager
def showing_progress() -> Generator[None]:
    """A progress bar on the terminal while sides start, are compared and have their turns."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    from gptrs_bench.measure import CaseBegan, SideStarting
    from gptrs_bench.results import thread_count
    from gptrs_bench.turns import TurnEnded

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task, label = bar.add_task("starting", total=None), ""

    def hear(event: object) -> None:
        nonlocal label
        if isinstance(event, SideStarting):
            bar.update(task, description=f"{event.model}: {event.side} starts", total=None)
        elif isinstance(event, CaseBegan):
            label = f"{event.model}: {what(event.case.mode, event.case.count)}"
            label = f"{label}, {thread_count(event.threads)}"
            bar.update(task, description=f"{label}: comparing", completed=0, total=None)
        elif isinstance(event, TurnEnded):
            bar.update(task, description=label, completed=event.number, total=event.total)

    try:  # a bar that is half started or half stopped would leave the cursor hidden
        with interrupt.deferred():
            bar.start()
        with events.listen(hear):
            yield
    finally:
        with interrupt.deferred():
            bar.stop()
