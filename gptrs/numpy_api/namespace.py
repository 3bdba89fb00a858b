"""``ptir.__array_namespace_info__``. Source: the array API standard 2024.12, "Inspection"."""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError
from gptrs.ir.promotion import DEFAULT_COMPLEX, DEFAULT_FLOAT, DEFAULT_INTEGER
from gptrs.ir.types import DType
from gptrs.numpy_api.constants import STANDARD_DTYPES
from gptrs.numpy_api.creation import check_device
from gptrs.numpy_api.data_types import isdtype
from gptrs.numpy_api.function import public

__all__ = ["namespace_info"]


class NamespaceInfo:
    """What `__array_namespace_info__` returns: the abilities of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks and sizes that depend on values work on arrays, not while tracing."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        return "cpu"

    def devices(self) -> list[str]:
        return ["cpu"]

    def default_dtypes(self, *, device: object = None) -> dict[str, DType]:
        """The dtypes of Python numbers, and of positions."""
        check_device(device)
        return {
            "real floating": DEFAULT_FLOAT,
            "complex floating": DEFAULT_COMPLEX,
            "integral": DEFAULT_INTEGER,
            "indexing": DEFAULT_INTEGER,
        }

    def dtypes(self, *, device: object = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes, of one kind or several if they are given."""
        check_device(device)
        if kind is not None and not isinstance(kind, str | tuple):
            raise ArgumentError(f"kind is {kind!r}, expected a string or a tuple of strings")
        return {
            name: dtype
            for name, dtype in STANDARD_DTYPES.items()
            if kind is None or isdtype(dtype, kind)
        }


@public
def namespace_info() -> NamespaceInfo:
    """The abilities of the namespace; ``ptir.__array_namespace_info__`` is this function."""
    return NamespaceInfo()
