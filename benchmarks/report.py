"""Output of the benchmarks: a table of medians, figures as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from gptrs_bench.results import better
from gptrs_bench.turns import Measured


def table(results: list[Measured]) -> Table:
    """Medians; the others' in the order of how good they are, each with the median of the rounds'
    ratios in brackets: how many times as good ours is."""
    made = Table(box=None, header_style="bold")
    for name in ("mode", "threads", "unit", "ours", "best other", "times as good", "others"):
        made.add_column(name, justify="left" if name in ("mode", "others") else "right")
    for result in results:
        unit = result["unit"]
        ours = result["sides"]["ours"]
        others = {name: found for name, found in result["sides"].items() if name != "ours"}
        row = [result["mode"], str(result["threads"] or ""), unit, f"{median(ours):.4g}"]
        ratios: dict[str, float] = {}
        for name, found in others.items():
            pairs = zip(ours, found, strict=True)
            ratios[name] = median(better(unit, *pair) for pair in pairs) if all(ours) else 0
        if others:
            best, *rest = sorted(others, key=lambda name: better(unit, 1, median(others[name])))
            row += [f"{median(others[best]):.4g}", f"{ratios[best]:.2f}"]
            words = (f"{n} {median(others[n]):.4g} ({ratios[n]:.2f})" for n in rest)
            row.append("; ".join([best, *words]))
        made.add_row(*row)
    return made


def write_json(file: Path | None, about: dict[str, Any], **figures: Any) -> None:
    """Write ``about`` and the figures to ``file``, if there is one."""
    if file is not None:
        file.write_text(json.dumps({**about, **figures}, indent=1))


def kernel_machine(peak_gflops: float) -> dict[str, Any]:
    """What the figures of a kernel depend on; one thread's multiply-adds beside it."""
    from gptrs.kernels.compiler import isa

    return {"level": isa.current().name, "cpu": isa.host()[1], "peak_gflops": peak_gflops}
