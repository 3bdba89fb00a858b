"""Agreement of the results of two sides, before they are timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]


class DifferenceError(Exception):
    """A side computes something else than ours: what, in a line."""


def allowed(ours: Logits, tolerance: float, usual: float) -> float:
    """How far logits may lie from ``ours``, if ``tolerance`` is for a root mean square of up to
    ``usual``: rounding errors grow with what is rounded."""
    return tolerance * max(1.0, float(np.sqrt(np.mean(np.square(ours, dtype=np.float64)))) / usual)


def check_logits(ours: Logits, theirs: Logits, most: float) -> float:
    """How far ``theirs`` lie from ``ours`` [N, choices].

    Raises `DifferenceError` beyond ``most``.
    """
    if theirs.shape != ours.shape:
        raise DifferenceError(f"its logits are {theirs.shape}, ours {ours.shape}")
    difference = float(np.abs(theirs - ours).max())
    if not difference <= most:
        raise DifferenceError(f"its logits are {difference:.3g} from ours, more than {most:.3g}")
    return difference


def check_choice(logits: Any, ours: int, theirs: int, most: float) -> None:
    """``theirs`` is the choice that we make by ``logits``, or one as likely as far as logits may
    differ. Raises `DifferenceError`."""
    if ours != theirs and not (
        0 <= theirs < len(logits) and logits[ours] - logits[theirs] <= 2 * most
    ):
        raise DifferenceError(f"it chooses {theirs}, and we {ours}")


def check_tokens(
    ours: list[int],
    theirs: list[int],
    logits_after: Callable[[list[int]], Logits],
    most: Callable[[Logits], float],
) -> None:
    """``theirs`` are our tokens up to a choice between two that are as likely.

    ``logits_after`` gives our logits [1, vocabulary] after some of our tokens, ``most`` how far
    others may lie from them. Raises `DifferenceError`.
    """
    if len(theirs) != len(ours):
        raise DifferenceError(f"it gives {len(theirs)} tokens, and we {len(ours)}")
    for number, (own, their) in enumerate(zip(ours, theirs, strict=True)):
        if own != their:
            logits = logits_after(ours[:number])
            check_choice(logits[0], own, their, most(logits))
            return
