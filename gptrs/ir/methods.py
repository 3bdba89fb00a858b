"""Methods that NumPy's arrays and torch's tensors have, as calls to the functions of ``ptir``.

A method takes what the function of its name takes: ``axis`` or ``dim``, ``keepdims`` or
``keepdim``. Where the two libraries mean different things by one name, the docstring says which
one it is: `max`, `sort` and `nonzero` are NumPy's, `split` is torch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gptrs.ir.dims import DimLike
from gptrs.ir.function_methods import FunctionMethods, Result, method_of

Axes = int | tuple[int, ...] | None
Axis = int | None

METHODS: dict[str, str] = {
    **{name: name for name in ("abs", "all", "any", "argmax", "argmin", "argsort", "clip", "conj")},
    **{name: name for name in ("cumprod", "cumsum", "diagonal", "dot", "flatten", "max", "mean")},
    **{name: name for name in ("min", "nonzero", "prod", "ravel", "round", "sort", "squeeze")},
    **{name: name for name in ("std", "sum", "swapaxes", "tile", "trace", "var")},
    "clamp": "clip",
    "unsqueeze": "expand_dims",
}
"""The function of ``ptir`` that a method calls."""


class Methods(FunctionMethods[Result]):
    """The methods of the table, which give a ``Result``."""

    __slots__ = ()

    if TYPE_CHECKING:  # the loop below makes them

        def abs(self) -> Result:
            """|x|."""
            ...

        def all(
            self,
            axis: Axes = None,
            keepdims: bool = False,
            *,
            where: Any = None,
            dim: Axes = None,
            keepdim: bool = False,
        ) -> Result:
            """Whether all elements over ``axis`` differ from 0."""
            ...

        def any(
            self,
            axis: Axes = None,
            keepdims: bool = False,
            *,
            where: Any = None,
            dim: Axes = None,
            keepdim: bool = False,
        ) -> Result:
            """Whether any element over ``axis`` differs from 0."""
            ...

        def argmax(
            self,
            axis: Axis = None,
            keepdims: bool = False,
            *,
            dim: Axis = None,
            keepdim: bool = False,
        ) -> Result:
            """The position of the greatest element along ``axis``, or among all."""
            ...

        def argmin(
            self,
            axis: Axis = None,
            keepdims: bool = False,
            *,
            dim: Axis = None,
            keepdim: bool = False,
        ) -> Result:
            """The position of the least element along ``axis``, or among all."""
            ...

        def argsort(
            self,
            axis: int = -1,
            kind: str | bool | None = None,
            *,
            descending: bool = False,
            stable: bool | None = True,
            dim: int = -1,
        ) -> Result:
            """The positions that sort the elements along ``axis``."""
            ...

        def clip(self, min: Any = None, max: Any = None) -> Result:
            """min(max(x, min), max)."""
            ...

        def clamp(self, min: Any = None, max: Any = None) -> Result:
            """torch's name of `clip`."""
            ...

        def conj(self) -> Result:
            """The complex conjugate."""
            ...

        def cumprod(self, axis: Axis = None, dtype: object = None, *, dim: Axis = None) -> Result:
            """The product of the elements up to and including each along ``axis``."""
            ...

        def cumsum(self, axis: Axis = None, dtype: object = None, *, dim: Axis = None) -> Result:
            """The sum of the elements up to and including each along ``axis``."""
            ...

        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Result:
            """The elements x[..., i, i + offset] of two axes, along a new last axis."""
            ...

        def dot(self, y: Any) -> Result:
            """The product with ``y`` as `numpy.dot` forms it."""
            ...

        def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Result:
            """The axes from ``start_dim`` to ``end_dim`` as one."""
            ...

        def max(
            self,
            axis: Axes = None,
            keepdims: bool = False,
            *,
            initial: Any = None,
            where: Any = None,
            dim: Axes = None,
            keepdim: bool = False,
        ) -> Result:
            """The greatest element over ``axis``, without its position, which is `argmax`."""
            ...

        def mean(
            self,
            axis: Axes = None,
            dtype: object = None,
            keepdims: bool = False,
            *,
            where: Any = None,
            dim: Axes = None,
            keepdim: bool = False,
        ) -> Result:
            """The mean over ``axis``; integers as f32."""
            ...

        def min(
            self,
            axis: Axes = None,
            keepdims: bool = False,
            *,
            initial: Any = None,
            where: Any = None,
            dim: Axes = None,
            keepdim: bool = False,
        ) -> Result:
            """The least element over ``axis``, without its position, which is `argmin`."""
            ...

        def nonzero(
            self, *, size: DimLike | None = None, fill_value: int = 0, as_tuple: bool = True
        ) -> tuple[Result, ...]:
            """The positions of the elements that differ from 0, a row for each axis, as in NumPy.
            In a traced function ``size`` says how many."""
            ...

        def prod(
            self,
            axis: Axes = None,
            dtype: object = None,
            keepdims: bool = False,
            *,
            initial: Any = None,
            where: Any = None,
            dim: Axes = None,
            keepdim: bool = False,
        ) -> Result:
            """The product over ``axis``; of integers si64 or ui64."""
            ...

        def ravel(self, order: str = "C") -> Result:
            """All elements in one row; with "F" the first axis is the fastest."""
            ...

        def round(self, decimals: int = 0) -> Result:
            """The nearest number of so many decimals, halves to the even one."""
            ...

        def sort(
            self,
            axis: int = -1,
            kind: str | bool | None = None,
            *,
            descending: bool = False,
            stable: bool | None = True,
            dim: int = -1,
        ) -> Result:
            """The elements in order along ``axis``; this Tensor stays as it is."""
            ...

        def squeeze(self, axis: Axes = None, *, dim: Axes = None) -> Result:
            """Without the axes of extent 1: all of them, or the ones named."""
            ...

        def std(
            self,
            axis: Axes = None,
            *,
            correction: float = 0,
            keepdims: bool = False,
            ddof: float | None = None,
            where: Any = None,
            mean: Any = None,
            dtype: object = None,
            unbiased: bool | None = None,
            dim: Axes = None,
            keepdim: bool = False,
        ) -> Result:
            """The square root of `var`."""
            ...

        def sum(
            self,
            axis: Axes = None,
            dtype: object = None,
            keepdims: bool = False,
            *,
            initial: Any = None,
            where: Any = None,
            dim: Axes = None,
            keepdim: bool = False,
        ) -> Result:
            """The sum over ``axis``; of integers si64 or ui64."""
            ...

        def swapaxes(self, axis1: int, axis2: int) -> Result:
            """Two axes exchanged."""
            ...

        def tile(self, repetitions: int | Sequence[int]) -> Result:
            """This repeated as a whole, so often along each axis: torch's ``repeat``."""
            ...

        def trace(
            self, offset: int = 0, axis1: int = 0, axis2: int = 1, *, dtype: object = None
        ) -> Result:
            """The sum of the `diagonal`."""
            ...

        def unsqueeze(self, axis: int = 0, *, dim: int = 0) -> Result:
            """With an axis of extent 1 put in at ``axis``."""
            ...

        def var(
            self,
            axis: Axes = None,
            *,
            correction: float = 0,
            keepdims: bool = False,
            ddof: float | None = None,
            where: Any = None,
            mean: Any = None,
            dtype: object = None,
            unbiased: bool | None = None,
            dim: Axes = None,
            keepdim: bool = False,
        ) -> Result:
            """Σ|x − mean x|² / (n − correction) over ``axis``; the correction is 0 as in NumPy,
            while torch's is 1."""
            ...


for _name, _function in METHODS.items():
    setattr(Methods, _name, method_of(_name, _function))


def spread(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Positional or tuple arguments: ``f(1, 2)`` and ``f((1, 2))`` are the same."""
    if len(values) == 1 and isinstance(values[0], tuple | list):
        return tuple(values[0])  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return values
