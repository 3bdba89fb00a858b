"""Parameter ids, equal on every machine, and the protocols of parameter sources.

Ids are those of the checkpoint format (`gptrs.formats.checkpoint`). A source gives random access to
the elements of parameters, which are read when a plan first needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from gptrs.extras import needed_for

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_KEY = b"gpt-rs:param-key:v1"


def base_param_id(name: str) -> int:
    """The 128-bit id of a parameter's dotted name: the first 16 bytes of BLAKE3 of its UTF-8 text,
    little-endian. Checkpoints store it (`gptrs.formats.checkpoint`)."""
    return _id(name.encode())


def param_key(namespace: int, base_id: int) -> int:
    """The 128-bit id of the parameter ``base_id`` of the model ``namespace``: models that name
    their parameters alike are told apart (``parameters().key(name)`` of a loaded model gives it).
    The first 16 bytes of BLAKE3 of "gpt-rs:param-key:v1" and both ids, 16 bytes each, all
    little-endian."""
    return _id(_KEY + namespace.to_bytes(16, "little") + base_id.to_bytes(16, "little"))


def _id(data: bytes) -> int:
    with needed_for("the id of a parameter"):
        from blake3 import blake3  # seldom needed, and slow to import

    return int.from_bytes(blake3(data).digest(16), "little")


class ParamSource(Protocol):
    """Random access to parameters by name; nothing is read before `load`."""

    def load(self, name: str) -> Array:
        """The elements of the parameter called ``name``.

        Raises `LoadError` when they cannot be read.
        """
        ...


@runtime_checkable
class RowSource(ParamSource, Protocol):
    """A source that can read a range of rows, so that large parameters need not fit in memory."""

    def load_rows(self, name: str, first: int, last: int) -> Array:
        """The elements [first:last] along the first axis. Raises `LoadError`."""
        ...


@runtime_checkable
class MatrixRowSource(RowSource, Protocol):
    """A source that can read a range of the rows of stacked matrices."""

    def load_matrix_rows(self, name: str, first: int, last: int) -> Array:
        """The rows [first:last] of the parameter as a matrix, with the axes before the last as
        one. Raises `LoadError`."""
        ...
