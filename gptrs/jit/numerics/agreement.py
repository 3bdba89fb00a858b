"""Bounds of accumulated errors: how far the results of a whole program may be apart.

Worst cases of every op, one after the other, say nothing after a few layers. Rounding of a whole
program is measured instead: what it does to the program's own meaning, against f64.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gptrs.debug.numeric_diff.element_errors import comparable, dtype_of, eps
from gptrs.ir.effect_tape import Tape, replayed
from gptrs.ir.types import Array
from gptrs.jit.numerics.traced_call import TracedCall
from gptrs.jit.numerics.widen import run_widened

UNITS = 84
"""Units in the last place of a result's largest element: for f32 the 1e-4 at order 10 of
``gptrs validate``."""
_NOISE = 64
"""Times what rounding does to the program by NumPy's meaning."""


def plain_bounds(expected: Sequence[Array]) -> list[Array]:
    """`UNITS` for each element of each result; 0 for integers."""
    return [np.full(each.shape, UNITS * eps(dtype_of(each)) * _largest(each)) for each in expected]


def measured_bounds(call: TracedCall, expected: Sequence[Array], tape: Tape) -> list[Array]:
    """`plain_bounds`, and `_NOISE` times the largest error of each of ``expected``, which is what
    the program gives by NumPy's meaning."""
    with replayed(tape):
        exact = run_widened(call.program, call.given, call.sizes)
    bounds: list[Array] = []
    for plain, each, wide in zip(plain_bounds(expected), expected, exact, strict=True):
        with np.errstate(all="ignore"):
            noise = np.abs(comparable(each) - comparable(wide))
        bounds.append(plain + _NOISE * _largest(noise))
    return bounds


def _largest(array: Array) -> float:
    with np.errstate(all="ignore"):
        size = np.abs(comparable(array))
    return float(np.max(size, where=np.isfinite(size), initial=0.0))
