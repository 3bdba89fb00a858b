"""``x.flat``: the elements of a Tensor in one row, in row-major order, as NumPy's arrays have them.

Elements are read as from ``x.ravel()``; ``x.flat[key] = v`` gives ``x`` new ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class FlatElements:
    """The elements of a Tensor in one row."""

    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getitem__(self, key: Any) -> Any:
        return self._of.reshape(-1)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        row = self._of.reshape(-1)
        row[key] = value
        self._of[...] = row.reshape(self._of.shape)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._of.reshape(-1))

    def __len__(self) -> int:
        return len(self._of.reshape(-1))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._of.reshape(-1).__array__(dtype, copy)

    def __repr__(self) -> str:
        return f"{self._of.reshape(-1)!r}"
