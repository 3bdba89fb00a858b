"""Keys of many values by identity, and getters of many values by index.

For sequences of hundreds of objects that are compared at every call: the values that a guard reads
(`gptrs.jit.guards`), the parameters of a plan (`gptrs.backends`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

_MANY = 40  # values for which an array takes less time than a list


def getter(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function that returns the values at the indices ``places``; of a tuple as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1)) if places else lambda _: ()


def identities(values: Sequence[object]) -> object:
    """A key that is equal for the same objects in the same order, while none of them is freed.

    An array of objects holds their addresses, which are their ids: copying its memory takes a
    quarter of the time of a list of ids.
    """
    if len(values) < _MANY:
        return [*map(id, values)]
    array = np.fromiter(values, object, len(values))
    return ctypes.string_at(array.__array_interface__["data"][0], array.nbytes)
