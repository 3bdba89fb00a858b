"""Events while tensors are written, for progress bars."""

from __future__ import annotations

from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Writing:
    """Event: ``size`` bytes of tensors are going to be written."""

    size: int


@dataclass(frozen=True)
class PieceWritten:
    """Event: ``size`` bytes of a tensor were written."""

    size: int
