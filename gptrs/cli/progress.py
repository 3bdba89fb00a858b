"""Progress bars on the terminal: driven by events, until the first output, or by steps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gptrs import events
from gptrs.cli import interrupt

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def progress() -> Generator[Callable[[], None]]:
    """A progress bar on the terminal while weights load and programs compile, files are written, or
    a model is compared with torch's.

    Yields a function that removes the bar before text is written.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from gptrs.formats.write_events import PieceWritten, Writing
    from gptrs.loading.weights import WeightRead, WeightsOpened
    from gptrs.parity.comparing import Comparing
    from gptrs.text.generation import Prefilled
    from gptrs.text.prefill import Prefilling

    bar = _bar()
    task = bar.add_task("loading", total=None)
    inputs = bar.add_task("comparing", total=None, visible=False)

    size: int | None = None  # of weights in bytes, while they are read

    def hear(event: object) -> None:
        nonlocal size
        if isinstance(event, WeightsOpened):
            size = event.size
            bar.update(task, description="compiling")
        elif isinstance(event, WeightRead):
            bar.update(task, description="loading", total=size, advance=event.size)
        elif isinstance(event, Writing):
            bar.update(task, description="writing", total=event.size)
        elif isinstance(event, PieceWritten):
            bar.update(task, advance=event.size)
        elif isinstance(event, Comparing):
            bar.update(task, visible=False)
            what = f"comparing {event.name}"
            bar.update(
                inputs, description=what, completed=event.done, total=event.total, visible=True
            )
        elif isinstance(event, Prefilling):
            what = "reading the prompt"
            bar.update(task, description=what, completed=event.done, total=event.total)
        elif isinstance(event, Prefilled):
            end()

    def end() -> None:
        with interrupt.deferred():
            bar.stop()

    try:  # a bar that is half started or half stopped would leave the cursor hidden
        with interrupt.deferred():
            bar.start()
        with events.listen(hear):
            yield end
    finally:
        end()


@contextmanager
def step_progress() -> Generator[Callable[[str, float], None]]:
    """A progress bar on the terminal. Yields a function that takes what is being done, and the part
    of all that is done, 0 to 1."""
    if not sys.stderr.isatty():
        yield lambda what, part: None
        return
    bar = _bar()
    task = bar.add_task("", total=1.0)
    try:
        with interrupt.deferred():
            bar.start()
        yield lambda what, part: bar.update(task, description=what, completed=part)
    finally:
        with interrupt.deferred():
            bar.stop()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn("{task.percentage:>3.0f} %"),  # nothing where the end is not known
        console=Console(stderr=True),
        transient=True,
    )
