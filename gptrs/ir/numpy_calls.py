"""The array protocols of `Tensor`: ``__array__``, ``__array_function__``, ``__array_ufunc__``,
DLPack.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gptrs.errors import ArgumentError
from gptrs.ir.types import Array
from gptrs.locks import late_import

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def array_namespace(version: str | None) -> Any:
    """The module ``ptir`` as a version of the array API standard. Raises `ArgumentError` for a
    version that it does not follow."""
    if version is not None and version not in _VERSIONS:
        raise ArgumentError(
            f"ptir does not follow version {version!r} of the array API standard",
            fix=f"use one of {', '.join(_VERSIONS)}",
        )
    return late_import("gptrs.ptir")  # the layer above


class NumPyOperand:
    """The methods that NumPy and DLPack call on tensors, in terms of their elements."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def type(self) -> object: ...

        value: Any

        @property
        def is_traced(self) -> bool: ...
        def numpy(self) -> Array: ...
        def unknown(self, what: str, fix: str = "") -> NoReturn: ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self.is_traced:
            self.unknown(
                "the elements",
                "use ptir.asarray(x), ptir.stack([x, y]) for a list of tensors and"
                " ptir.asarray(array)[x] for an array at traced places; or run NumPy in every call"
                " by ptir.callback",
            )
        return np.asarray(self.numpy(), dtype=dtype, copy=copy)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _module("numpy_functions").call_function(function, args, kwargs)

    def __array_ufunc__(self, function: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return _module("ufuncs").call_ufunc(function, method, args, kwargs)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        array = self.numpy()
        marks = max_version is not None and max_version[0] >= 1  # what cannot be written
        if not array.flags.writeable and not marks and copy is None:
            array = array.copy()
        return array.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> Any:
        return self.numpy().__dlpack_device__()


@cache
def _module(name: str) -> Any:
    return late_import(f"gptrs.numpy_api.{name}")  # the layer above
