"""GPTRS_DEBUG and GPTRS_DUMP: output on stderr and dumps for each program that is traced.

`gptrs.jit.function` wraps every trace in `watched`. Without these settings it does nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager

from gptrs import events, settings
from gptrs.backends.base import PlanReport
from gptrs.debug.dump import Dump, target
from gptrs.debug.explain import Explanation, columns
from gptrs.debug.lowering import Lowering
from gptrs.debug.passes import counted
from gptrs.debug.stderr import say
from gptrs.errors import Location


@contextmanager
def watched(function: str, reason: object, where: Location | None) -> Generator[None]:
    """Report the lowering inside the block on stderr and as a dump, even if it fails.
    ``function`` is traced for ``reason``, whose text is it, by the call at ``where``."""
    level, folder = settings.debug(), target()
    if not level and folder is None:
        yield
        return
    lowering = Lowering(function, str(reason), where)
    dump = None if folder is None else Dump(folder, function)
    try:
        with ExitStack() as stack:
            for listener in (lowering.hear, *(() if dump is None else (dump.hear,))):
                stack.enter_context(events.listen(listener))
            yield
    finally:
        report = None if lowering.planned is None else lowering.planned.report()
        if level:
            say("\n".join(described(lowering, report, level)))
        if dump is not None:
            dump.finish(report)


def described(lowering: Lowering, report: PlanReport | None, level: int) -> Iterator[str]:
    """The output at ``level``: 1 a line, 2 also passes, 3 also programs, 4 also plan and loops,
    5 also the LLVM IR of all kernels, 6 also their assembly."""
    yield _line(lowering, report)
    if level >= 2:
        yield from _passes(lowering)
        yield from [f"  timed {benchmark}" for benchmark in lowering.benchmarks]
    if level >= 3:
        for name, found in (("traced", lowering.traced), ("lowered", lowering.lowered)):
            if found is not None:
                yield f"\n# {lowering.function}, {name}\n{found.program}"
    if level >= 4 and report is not None:
        explanation = Explanation(report)
        yield f"{explanation}\n"
        yield from explanation.sources.values()
        for name, kernel in explanation.kernels.items() if level >= 5 else ():
            yield f"\n; {name}, LLVM IR\n{kernel.llvm()}"
            if level >= 6:
                yield f"\n# {name}, assembly\n{kernel.assembly()}"


def _line(lowering: Lowering, report: PlanReport | None) -> str:
    at = f" at {lowering.where}" if lowering.where else ""
    parts = [f"gptrs: {lowering.function}{at}, traced for {lowering.reason}"]
    parts.append(lowering.times())
    if lowering.traced is not None and lowering.lowered is not None:
        before, after = (len(s.program.body) for s in (lowering.traced, lowering.lowered))
        parts.append(f"{before} → {after} instructions")
    if report is None:
        return "; ".join(filter(None, [*parts, f"the {lowering.failed} failed"]))
    parts.append(f"{len(report.steps)} steps")
    parts.append(f"kernels: {lowering.kernels_compiled} compiled, {lowering.kernels_loaded} loaded")
    return "; ".join(parts)


def _passes(lowering: Lowering) -> Iterator[str]:
    rows = [("", "pass", "ms", "instructions", "rewrites")]
    idle = [ran for ran in lowering.passes if ran.after is ran.before]
    for number, ran in enumerate(lowering.passes, 1):
        if ran.after is not ran.before:
            sizes = f"{len(ran.before.body)} → {len(ran.after.body)}"
            milliseconds = f"{ran.seconds * 1e3:.1f}"
            rows.append((str(number), ran.name, milliseconds, sizes, counted(ran.rewrites)))
    if len(rows) > 1:
        yield from columns(rows)
    if idle:
        seconds = sum(ran.seconds for ran in idle)
        yield f"  {len(idle)} passes changed nothing ({seconds * 1e3:.1f} ms)"
