"""The array protocols of `Tensor`: ``__array__``, ``__array_function__``, ``__array_ufunc__``,
DLPack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gptrs import tree
from gptrs.errors import ArgumentError, TraceError
from gptrs.ir.dispatch import OPS
from gptrs.ir.traced import described, located
from gptrs.ir.types import Array
from gptrs.locks import late_import

# NumPy's names of operators, and the method of the right operand.
_REFLECTED = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__",
    "remainder": "__rmod__",
    "power": "__rpow__",
    "matmul": "__rmatmul__",
    "bitwise_and": "__rand__",
    "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__",
    "less": "__gt__",
    "less_equal": "__ge__",
    "greater": "__lt__",
    "greater_equal": "__le__",
    "equal": "__eq__",
    "not_equal": "__ne__",
}


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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.numpy(), dtype=dtype, copy=copy)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _call_numpy(function, args, kwargs)

    def __array_ufunc__(self, function: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            function = getattr(function, method)
        elif not isinstance(args[0], NumPyOperand) and function.__name__ in _REFLECTED:
            return getattr(self, _REFLECTED[function.__name__])(args[0])  # array + tensor
        return _call_numpy(function, args, kwargs)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        return self.numpy().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> Any:
        return self.numpy().__dlpack_device__()


def _call_numpy(function: Any, args: Any, kwargs: Any) -> Any:
    """A NumPy function on the elements of tensors; an error where one is traced."""
    leaves, structure = tree.flatten((args, kwargs), is_leaf=lambda x: isinstance(x, NumPyOperand))
    for leaf in leaves:
        if isinstance(leaf, NumPyOperand) and leaf.is_traced:
            name, found = function.__name__, described(leaf)
            raise located(
                TraceError(
                    f"NumPy's {name} cannot take a traced value ({found})",
                    fix=f"use ptir.{name}" if name in OPS else "use the ops of ptir",
                )
            )
    plain = [leaf.numpy() if isinstance(leaf, NumPyOperand) else leaf for leaf in leaves]
    args, kwargs = cast("tuple[Any, Any]", tree.unflatten(structure, plain))
    return function(*args, **kwargs)
