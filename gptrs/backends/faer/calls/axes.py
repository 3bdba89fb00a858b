"""Axes of loops at the sizes of a call: an extent, and a stride in each array that is traversed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Axis(NamedTuple):
    """An axis of a copy, or around lines: strides in the source and in the result."""

    extent: int
    source: int
    result: int


def merged(axes: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The same positions in the same order with as few axes as possible: no axis of one element,
    and none that all arrays traverse as a part of the one before it."""
    found: list[tuple[int, ...]] = []
    for extent, *strides in axes:
        if extent == 1:
            continue
        if found and [*found[-1][1:]] == [extent * stride for stride in strides]:
            extent *= found.pop()[0]
        found.append((extent, *strides))
    return found
