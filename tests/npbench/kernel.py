"""A kernel of the suite: a function in NumPy's words, and arguments for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Arguments = tuple[Any, ...]


class Kernel(NamedTuple):
    """``function`` of a namespace and of what ``make`` draws, which is traced."""

    function: Callable[..., Any]
    make: Callable[[np.random.Generator], Arguments]

    def __str__(self) -> str:
        return self.function.__name__


def of_shapes(
    function: Callable[..., Any],
    *shapes: tuple[int, ...],
    dtype: type[Any] = np.float64,
) -> Kernel:
    """A kernel of arrays with elements from [0, 1)."""

    def make(rng: np.random.Generator) -> Arguments:
        return tuple(rng.random(shape).astype(dtype) for shape in shapes)

    return Kernel(function, make)
