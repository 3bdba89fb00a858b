"""The roofline model as a figure: kernels below the limits of the machine.

    GFLOP/s (log)      ________________  multiply-adds
                     /    ● gemm
       bandwidth    /
                   / ● gemv
                  operations a byte (log)

Source: Williams, Waterman, Patterson, "Roofline", Communications of the ACM 52 (2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from io import BytesIO
from typing import Any

from gptrs.debug.machine_limits import Limits
from gptrs.debug.profile.steps import Row
from gptrs.errors import ArgumentError
from gptrs.extras import needed_for
from gptrs.locks import late_import

_LABELLED = 12  # kernels, those that took longest: more names would cover each other
_LARGEST = 900.0  # of a dot, in square points
_SMALLEST = 20.0


def draw_roofline(rows: Sequence[Row], limits: Limits | None, threads: int) -> Any:
    """The figure of the kernels ``rows`` below ``limits``, those on so many threads.

    Raises `ArgumentError` without limits or without a kernel whose operations are counted, and
    `MissingPackageError` without matplotlib.
    """
    dots = [row for row in rows if row.gflops and row.gbytes]
    if not dots:
        raise ArgumentError(
            "no kernel of the profile does arithmetic on arrays, so there is nothing to draw",
            fix="profile a block in which a compiled function runs",
        )
    if limits is None:
        raise ArgumentError(
            f"the limits of this machine were not measured on {threads}"
            f" thread{'s' * (threads != 1)}",
            fix=f"gptrs env --measure --threads {threads}",
        )
    with needed_for("a roofline"):
        figures = late_import("matplotlib.figure")  # slow, and seldom needed
    figure: Any = figures.Figure(figsize=(9, 6), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    intensities = [row.gflops / row.gbytes for row in dots]
    _draw_limits(axes, limits, intensities)
    longest = max(row.ms for row in dots)
    sizes = [max(_SMALLEST, _LARGEST * row.ms / longest) for row in dots]
    speeds = [row.gflops for row in dots]
    axes.scatter(intensities, speeds, s=sizes, alpha=0.6, zorder=3)
    for row, x in list(zip(dots, intensities, strict=True))[:_LABELLED]:
        axes.annotate(
            f"{row.name}, {row.ms:.3g} ms",
            (x, row.gflops),
            xytext=(6, 6),
            textcoords="offset points",
            fontsize=8,
            parse_math=False,
        )
    axes.set_xlabel("operations a byte")
    axes.set_ylabel("GFLOP/s")
    axes.set_title(f"Kernels on {threads} thread{'s' * (threads != 1)}")
    axes.grid(which="both", alpha=0.2)
    axes.legend(loc="lower right")
    # Notebooks know pyplot's figures alone, and others by this method.
    figure._repr_png_ = partial(_as_png, figure)
    return figure


def _as_png(figure: Any) -> bytes:
    written = BytesIO()
    figure.savefig(written, format="png")
    return written.getvalue()


def _draw_limits(axes: Any, limits: Limits, intensities: Sequence[float]) -> None:
    """The two limits as one line, from left of the first dot to right of the last."""
    ridge = limits.gflops / limits.gbytes
    left, right = min([*intensities, ridge]) / 4, max([*intensities, ridge]) * 4
    label = f"{limits.gbytes:.1f} GB/s from memory, {limits.gflops:.0f} GFLOP/s of f32"
    axes.plot(
        [left, ridge, right], [left * limits.gbytes, limits.gflops, limits.gflops], label=label
    )
    axes.axvline(ridge, linestyle=":", alpha=0.4)
