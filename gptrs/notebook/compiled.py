"""What was compiled in a block: for each function the reason, sizes, times, and how it runs."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import field

from gptrs import events
from gptrs.debug.explain import Explanation, columns
from gptrs.debug.lowering import Lowering, LoweringBegan
from gptrs.html_tables import block, fragment, opening, table
from gptrs.jit.cache import Retrace
from gptrs.lazy_dataclass import dataclass

_HEAD = ("function", "reason", "instructions", "steps", "ms", "kernels")


@dataclass
class Compiled:
    """The functions that were traced and compiled, in order; shown as a table, and in a notebook
    with the explanation of each, which opens."""

    lowerings: list[Lowering] = field(default_factory=list[Lowering])
    """Those that an error ended are among them."""
    _running: list[Lowering] = field(default_factory=list[Lowering])
    _took: dict[int, float] = field(default_factory=dict[int, float])

    def hear(self, event: object) -> None:
        """Record ``event``."""
        if isinstance(event, LoweringBegan):
            lowering = Lowering(event.function, str(event.reason), event.where)
            self.lowerings.append(lowering)
            self._running.append(lowering)
        elif isinstance(event, Retrace):
            self._took[id(self._running.pop())] = event.milliseconds
        elif self._running:
            self._running[-1].hear(event)

    def __repr__(self) -> str:
        if not self.lowerings:
            return "nothing was compiled"
        return "\n".join(columns([_HEAD, *map(self._cells, self.lowerings)]))

    def _repr_html_(self) -> str:
        if not self.lowerings:
            return fragment(block(repr(self), "dim"))
        rows = table(_HEAD, map(self._cells, self.lowerings), numbers=(3, 4))
        parts = [
            opening(f"how {lowering.function} runs", explanation.markup())
            for lowering, explanation in self._explanations()
        ]
        return fragment(rows, *parts)

    def _explanations(self) -> Iterator[tuple[Lowering, Explanation]]:
        for lowering in self.lowerings:
            if lowering.planned is not None:
                yield lowering, Explanation(lowering.planned.report())

    def _cells(self, lowering: Lowering) -> tuple[str, ...]:
        stages = [lowering.traced, lowering.lowered]
        sizes = [str(len(stage.program.body)) for stage in stages if stage is not None]
        steps = "" if lowering.planned is None else str(len(lowering.planned.report().steps))
        took = self._took.get(id(lowering))
        kernels = f"{lowering.kernels_compiled} compiled, {lowering.kernels_loaded} loaded"
        return (
            lowering.function,
            lowering.reason,
            " → ".join(sizes),
            steps,
            "failed" if took is None else f"{took:.1f}",
            kernels,
        )


@contextmanager
def compiled() -> Generator[Compiled]:
    """The functions that are compiled in the block by this thread."""
    found = Compiled()
    with events.listen(found.hear):
        yield found
