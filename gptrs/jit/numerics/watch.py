"""What ``ptir.debug_nans`` and GPTRS_CHECK do around the run of one call.

A `Watch` keeps copies of donated arguments before the run, records its effects, and judges the
results after it. Without these settings there is none, and the fast path of calls, whose keys have
them, knows of none: a call that is watched is not stored there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gptrs import settings
from gptrs.ir.effect_tape import Tape, recorded
from gptrs.ir.nan_watch import NanMode, nan_mode
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array
from gptrs.jit.derived import Run
from gptrs.jit.numerics.traced_call import TracedCall
from gptrs.locks import late_import


def is_watched() -> bool:
    """Whether calls are watched in this context."""
    return nan_mode() is not None or settings.check()


class Watch:
    """The watch over one call."""

    def __init__(self, call: TracedCall) -> None:
        self._call = call.kept()
        self._mode: NanMode | None = nan_mode()
        self._check = settings.check()
        self._tape = Tape()

    def run(
        self, run: Run, given: Sequence[Array | Parameter], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        """``run(given, sizes)``, whose effects are recorded."""
        with recorded(self._tape):
            return run(given, sizes)

    def judge(self, results: Sequence[Array]) -> None:
        """Look at what the run gave. Raises `NanError` and `MismatchError`."""
        if self._mode is not None:
            nans = late_import("gptrs.jit.numerics.nans")  # what it needs is not for other calls
            nans.diagnose(self._call, results, self._mode, self._tape)
        if self._check:
            check = late_import("gptrs.jit.numerics.check")
            check.check(self._call, results, self._tape)
