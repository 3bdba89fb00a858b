"""Parameter identities, the same on every machine, and where parameters come from."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def base_param_id(name: str) -> int:
    """The 128-bit id of a parameter's dotted name: BLAKE2b-128 of its UTF-8 text, little-endian."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest(), "little")


class ParamSource(Protocol):
    """Random access to parameters: nothing is read before it is asked for."""

    def load(self, param_id: int) -> Array:
        """The elements of one parameter. Raises `LoadError` when they cannot be read."""
        ...


@runtime_checkable
class RowSource(ParamSource, Protocol):
    """A source that can read a part of a parameter: large ones need never be there whole."""

    def load_rows(self, param_id: int, first: int, last: int) -> Array:
        """The elements [first:last] along the first axis. Raises `LoadError`."""
        ...
