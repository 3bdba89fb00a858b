"""Values at several places of a sequence, taken at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any


def getter(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Takes the values at ``places`` of a list or tuple; of a tuple as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1)) if places else lambda _: ()
