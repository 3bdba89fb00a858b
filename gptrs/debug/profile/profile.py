"""`Profile`: the steps that ran in a block of code, as tables and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gptrs.debug.machine_limits import Limits, limits_at
from gptrs.debug.profile.exports import jsonl, speedscope, trace_events
from gptrs.debug.profile.roofline import draw_roofline
from gptrs.debug.profile.steps import ProfiledStep, Row, Span
from gptrs.errors import ArgumentError
from gptrs.html_tables import Markup, block, fragment, joined, opening, table
from gptrs.lazy_dataclass import dataclass

Group: TypeAlias = Literal["kernel", "op", "line", "function", "module", "program", "step"]
_KEYS: dict[str, Callable[[ProfiledStep], str]] = {
    "kernel": lambda step: step.kernel,
    "op": lambda step: step.op,
    "line": lambda step: _short(step.line),
    "function": lambda step: step.function,
    "module": lambda step: step.module or "(no layer)",
    "program": lambda step: step.program,
    "step": lambda step: f"{step.program} {step.number} {step.kernel}",
}
_ONCE = ("trace", "pass", "plan", "bind", "compile", "load", "pack")
_FLAME = ".speedscope.json"
_SHOWN = 100  # rows of a table in a notebook


@dataclass(eq=False)
class Profile:
    """What `gptrs.profile` found; complete when its block has ended.

    Printed, it is the table of the kernels. ``result`` is that of ``fn.profile``.
    """

    steps: list[ProfiledStep] = field(default_factory=list[ProfiledStep])
    """The steps that ran, each with the time of all its runs."""
    spans: list[Span] = field(default_factory=list[Span])
    """What ran when, on which thread, by start."""
    start: float = 0.0
    end: float = 0.0
    """Of the block, in ns of `time.perf_counter_ns`."""
    lost: int = 0
    """Runs of which there is no record, as the buffer was full."""
    threads: int = 0
    """The most threads that a run had; 0 where nothing ran."""
    result: Any = None

    def fill(
        self,
        *,
        steps: list[ProfiledStep],
        spans: list[Span],
        start: float,
        end: float,
        lost: int,
        threads: int,
    ) -> None:
        """Called when the block ends."""
        self.steps, self.spans, self.start, self.end, self.lost = steps, spans, start, end, lost
        self.threads = threads

    @property
    def ms(self) -> float:
        """The time of the block."""
        return (self.end - self.start) / 1e6

    @property
    def steps_ms(self) -> float:
        """The time of all steps."""
        return sum(step.ns for step in self.steps) / 1e6

    def once_ms(self) -> dict[str, float]:
        """The time of what is done once, by kind: tracing, passes, planning, binding of a plan to
        sizes, compilation or load of kernels, packing of weights. Kernels that are compiled while a
        program is planned count for both, and several are compiled at a time."""
        found: dict[str, float] = {}
        for span in self.spans:
            if span.kind in _ONCE:
                found[span.kind] = found.get(span.kind, 0.0) + (span.end - span.start) / 1e6
        return found

    def rows(self, group: Group = "kernel", *, depth: int | None = None) -> list[Row]:
        """The steps by ``group``, those that took longest first. ``depth`` is how many parts of a
        module's path count: 2 is one row a block of a model. Raises `ArgumentError`."""
        if group not in _KEYS:
            raise ArgumentError(f"group is {group!r}, expected one of {', '.join(_KEYS)}")
        groups: dict[str, list[ProfiledStep]] = {}
        for step in self.steps:
            name = _KEYS[group](step)
            if group == "module" and depth is not None:
                name = ".".join(name.split(".")[:depth])
            groups.setdefault(name, []).append(step)
        whole = sum(step.ns for step in self.steps) or 1.0
        limits = limits_at(self.threads)
        rows = [_row(name, steps, whole, limits) for name, steps in groups.items()]
        return sorted(rows, key=lambda row: -row.ms)

    def table(
        self, group: Group = "kernel", most: int | None = None, *, depth: int | None = None
    ) -> str:
        """`rows` as text; ``most`` of them, and what is left as one line. The column "% of limit"
        is there once ``gptrs env --measure`` has measured as many threads as ran."""
        rows = self.rows(group, depth=depth)
        shown = rows if most is None or len(rows) <= most else rows[:most]
        lines = _aligned([*_cells(group, shown)])
        if len(shown) < len(rows):
            rest = sum(row.ms for row in rows[len(shown) :])
            lines.append(f"{len(rows) - len(shown)} more, {rest:.3f} ms")
        return "\n".join(lines)

    def compare(self, other: Profile, group: Group = "kernel") -> str:
        """A table of both profiles, those of the largest difference first: ms a group here and in
        ``other``, and how many times as long it took there."""
        here, there = ({row.name: row.ms for row in p.rows(group)} for p in (self, other))
        names = sorted(
            {*here, *there}, key=lambda name: -abs(there.get(name, 0.0) - here.get(name, 0.0))
        )
        rows = [(name, here.get(name, 0.0), there.get(name, 0.0)) for name in names]
        total = ("all steps", self.steps_ms, other.steps_ms)
        cells = [(group, "ms", "other, ms", "times"), *map(_compared, [*rows, total])]
        return "\n".join(_aligned(cells))

    def flamegraph(self, path: str | os.PathLike[str]) -> Path:
        """Write a flame graph for speedscope.app, and return its path: ``path``, which is made to
        end in ``.speedscope.json``."""
        target = Path(path)
        if not target.name.endswith(_FLAME):
            target = target.with_name(target.name.removesuffix(".json") + _FLAME)
        return self.save(target)

    def roofline(self) -> Any:
        """The roofline of this machine with a dot for each kernel: a matplotlib ``Figure``, which
        ``.savefig("roofline.png")`` writes.

        Logarithmic axes: operations a byte, as arrays are read and written once a step, against
        GFLOP/s; dots are as large as the kernel's time. Kernels without counted operations have no
        dot. Raises `ArgumentError` where the limits on as many threads were not measured (by
        ``gptrs env --measure``) or no kernel has a dot, `MissingPackageError` without matplotlib.
        """
        return draw_roofline(self.rows(), limits_at(self.threads), self.threads)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the profile by the ending of ``path``: ``.speedscope.json`` a flame graph for
        speedscope, ``.jsonl`` a line for each step, another ``.json`` Chrome's trace events, which
        ui.perfetto.dev shows: a track for each thread. Raises `ArgumentError` for another ending.
        """
        target = Path(path)
        if target.name.endswith(_FLAME):
            text = speedscope(self.steps)
        elif target.suffix == ".jsonl":
            text = jsonl(self.steps)
        elif target.suffix == ".json":
            text = trace_events(self.spans, self.start)
        else:
            raise ArgumentError(
                f"{target.name} has no ending that a profile is written with",
                fix="use trace.json (Perfetto), flame.speedscope.json or steps.jsonl",
            )
        target.write_text(text, encoding="utf-8")
        return target

    def __str__(self) -> str:
        return "\n".join([*self._summary(), "", self.table(most=20)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        others: tuple[Group, ...] = ("line", "op", "module")
        tables = [opening(f"by {group}", self._as_html(group)) for group in others]
        summary = joined(map(block, self._summary()))
        return fragment(summary, self._as_html("kernel"), *tables)

    def _as_html(self, group: Group) -> Markup:
        rows = self.rows(group)
        heads, *cells = _cells(group, rows[:_SHOWN])
        if len(rows) > _SHOWN:
            rest = sum(row.ms for row in rows[_SHOWN:])
            more = f"{len(rows) - _SHOWN} more", "", f"{rest:.3f}"
            cells.append((*more, *[""] * (len(heads) - len(more))))
        return table(heads, cells, numbers=range(1, len(heads)))

    def _summary(self) -> Iterator[str]:
        runs = sum(span.kind == "run" for span in self.spans)
        yield f"{self.ms:.3f} ms, of which {self.steps_ms:.3f} ms in steps of {runs} runs"
        once = [f"{kind} {ms:.1f} ms" for kind, ms in self.once_ms().items()]
        if once:
            yield ", ".join(once)
        if self.lost:
            yield f"{self.lost} runs are missing: the buffer was full"


def _row(name: str, steps: Sequence[ProfiledStep], whole: float, limits: Limits | None) -> Row:
    ns = sum(step.ns for step in steps)
    flops = sum(step.calls * step.flops for step in steps)
    moved = sum(step.calls * step.bytes for step in steps)
    calls = sum(step.calls for step in steps)
    gflops, gbytes = flops / (ns or 1.0), moved / (ns or 1.0)
    limit = None
    if limits is not None:
        limit = max(gflops / limits.gflops, gbytes / limits.gbytes)
    return Row(name, calls, ns / 1e6, ns / whole, gflops, gbytes, limit)


def _cells(group: str, rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """The heads of a table and its rows, as text."""
    limited = any(row.limit is not None for row in rows)
    heads = (group, "calls", "ms", "%", "GFLOP/s", "GB/s")
    yield (*heads, "% of limit") if limited else heads
    for row in rows:
        cells = [row.name, str(row.calls), f"{row.ms:.3f}", f"{100 * row.share:.1f}"]
        cells.append(f"{row.gflops:.2f}" if row.gflops else "")
        cells.append(f"{row.gbytes:.2f}" if row.gbytes else "")
        if limited:
            cells.append(f"{100 * row.limit:.0f}" if row.limit else "")
        yield tuple(cells)


def _compared(row: tuple[str, float, float]) -> tuple[str, ...]:
    name, here, there = row
    return name, f"{here:.3f}", f"{there:.3f}", f"{there / here:.2f}" if here else ""


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def _short(line: str) -> str:
    return "/".join(line.split("/")[-2:])
