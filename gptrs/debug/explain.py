"""``fn.explain``: the report of a plan as text.

Input: `PlanReport` of a backend. Output: a table of the steps, and a summary of steps by kind,
copies, arena, packed weights and selected implementations.
"""

from __future__ import annotations

from collections.abc import Iterable

from gptrs.backends.base import NativeKernel, PlanReport, StepKind, StepReport
from gptrs.html_tables import Markup, block, code, fragment, joined, opening, table
from gptrs.lazy_dataclass import dataclass

_WORDS: dict[StepKind, str] = {
    "call": "in kernels",
    "region": "in fused loops",
    "kernel": "in kernels of yours",
    "view": "for nothing, as views",
    "reference": "by the reference",
    "control": "for branches and loops",
    "loop": "in native branches and loops",
    "host": "by Python functions",
}


@dataclass(frozen=True)
class Explanation:
    """A plan's report; its text is a table of the steps and a summary."""

    report: PlanReport
    choices: tuple[str, ...] = ()
    """The implementations that the overrides selected."""

    def __str__(self) -> str:
        report = self.report
        rows = [
            (step.kind, step.name, str(step.instructions), step.result, step.note)
            for step in report.steps
        ]
        head = ("step", "what", "instructions", "result", "")
        return "\n".join([f"{report.program}:", *columns([head, *rows]), "", *self._summary()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for notebooks; the names of fused loops open their sources."""
        return fragment(self.markup())

    def markup(self) -> Markup:
        """The table and the summary, as a part of a page."""
        rows = [
            (step.kind, _opening(step), str(step.instructions), step.result, step.note)
            for step in self.report.steps
        ]
        head = ("step", "what", "instructions", "result", "")
        steps = table(head, rows, numbers=(2,))
        return joined([block(self.report.program), steps, *map(block, self._summary())])

    @property
    def sources(self) -> dict[str, str]:
        """The fused loops by name: each a Python module with the function ``name`` that was
        compiled, and ``name_parallel``, which runs it alone on arrays, on all cores."""
        sources: dict[str, str] = {}
        for step in self.report.steps:
            if step.name not in sources and (source := step.source):
                sources[step.name] = source
        return sources

    @property
    def kernels(self) -> dict[str, NativeKernel]:
        """The kernels by name: ``kernels[name].llvm()`` and ``.assembly()`` are what runs, as
        text, compiled once more when it is asked for."""
        return self.report.native

    def _summary(self) -> Iterable[str]:
        report = self.report
        counts = ((report.instructions(kind), words) for kind, words in _WORDS.items())
        shares = ", ".join(f"{count} {words}" for count, words in counts if count)
        yield f"{report.instructions()} instructions: {shares or 'none'}"
        yield f"{report.native_steps} native steps of {len(report.kernels)} kernels"
        yield f"{len(report.copies)} copies of whole arrays"
        memory = f"{_size(report.arena_bytes)} of intermediate values (arena)"
        yield f"{memory}, {_size(report.parameter_bytes)} of packed weights"
        yield from self.choices


def _opening(step: StepReport) -> str:
    source = step.source
    return opening(step.name, code(source)) if source else step.name


def _size(count: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 10_000:
            return f"{count:.0f} {unit}"
        count //= 1000
    return f"{count:.0f} GB"


def columns(rows: list[tuple[str, ...]]) -> list[str]:
    """The rows of a table as lines, their cells below one another."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
