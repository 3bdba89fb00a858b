"""Times of a run, collected from events: load, compile, prefill, decode (``--stats``)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from gptrs.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from rich.console import Console


@dataclass
class Times:
    """The times of the phases of a run, in seconds, collected from events."""

    load_seconds: float = 0.0
    compile_seconds: float = 0.0
    programs: int = 0
    kernels: int = 0
    kernels_compiled: int = 0  # the others came from the cache on disk
    prefill_tokens: int = 0
    prefill_seconds: float = 0.0
    decode_tokens: int = 0
    decode_seconds: float = 0.0

    def hear(self, event: object) -> None:
        """Add the time of ``event``."""
        from gptrs.jit.cache import Retrace
        from gptrs.kernels.compiler.loaded_object import KernelReady
        from gptrs.text.generation import Decoded, Prefilled
        from gptrs.text.session import PrefixReused

        compiled = self.compile_seconds
        if isinstance(event, Retrace):
            self.programs += 1
            self.compile_seconds = compiled + event.milliseconds / 1e3
        elif isinstance(event, KernelReady):
            self.kernels += event.kernel
            self.kernels_compiled += event.kernel and not event.cached
        elif isinstance(event, Prefilled):
            self.prefill_tokens += event.tokens
            self.prefill_seconds += max(event.seconds - compiled, 0.0)
        elif isinstance(event, PrefixReused):
            self.prefill_tokens -= event.tokens  # `Prefilled` counts the whole prompt
        elif isinstance(event, Decoded):
            self.decode_tokens += event.tokens
            self.decode_seconds += event.seconds

    def report(self) -> dict[str, float]:
        """The times and the rates, tokens per second."""
        return asdict(self) | {
            "prefill_rate": self.prefill_tokens / self.prefill_seconds
            if self.prefill_seconds
            else 0.0,
            "decode_rate": self.decode_tokens / self.decode_seconds if self.decode_seconds else 0.0,
        }


def print_times(times: Times) -> None:
    """Print ``times`` as a table to the standard error output."""
    from rich.console import Console
    from rich.table import Table

    table = Table("step", "seconds", "tokens", "tokens/s", box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    rates = times.report()
    table.add_row("load", f"{times.load_seconds:.3f}", "", "")
    programs = f"{times.programs} program{'s' * (times.programs != 1)}"
    table.add_row(f"compile ({programs})", f"{times.compile_seconds:.3f}", "", "")
    if times.kernels:
        compiled = times.kernels_compiled
        note = f"{compiled} compiled" if compiled else "all from the cache"
        table.add_row(f"kernels: {times.kernels}, {note}", "", "", "")
    for step in ("prefill", "decode"):
        seconds, tokens, rate = (rates[f"{step}_{n}"] for n in ("seconds", "tokens", "rate"))
        table.add_row(step, f"{seconds:.3f}", f"{tokens:.0f}", f"{rate:.1f}")
    console: Console = Console(stderr=True)
    console.print(table)
