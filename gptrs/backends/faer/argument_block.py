"""The scalars of a region's argument block: sizes, offsets, strides and numbers, behind its
addresses.

The block is an array of 64-bit words: the addresses of the inputs and of the result, then these
scalars in the order of their first use (`expression_writer`).
"""

from __future__ import annotations

from gptrs.backends.faer.element_types import signed
from gptrs.ir.dims import DimLike
from gptrs.ir.types import DType


class ArgumentWords:
    """The scalars by name, in the order of their first use. A float is stored as its bits in
    f64."""

    def __init__(self) -> None:
        self.values: dict[str, DimLike | float] = {}
        self._names: dict[object, str] = {}
        self._counts: dict[str, int] = {}

    def size(self, value: DimLike, letter: str, *, shared: object = True) -> str:
        """The name of a size. Equal extents share a word, strides do not."""
        key = letter, str(value), shared
        if shared is False or key not in self._names:
            self._names[key] = self._new(letter, value)
        return self._names[key]

    def number(self, dtype: DType, value: bool | int | float) -> tuple[str, bool]:
        """The name of a number of the program, and whether it is new."""
        key = dtype.name, repr(value)
        new = key not in self._names
        if new:
            word = float(value) if dtype.is_float else signed(int(value))
            self._names[key] = self._new("number", word)
        return self._names[key], new

    def _new(self, letter: str, value: DimLike | float) -> str:
        count = self._counts[letter] = self._counts.get(letter, -1) + 1
        self.values[f"{letter}{count}"] = value
        return f"{letter}{count}"
