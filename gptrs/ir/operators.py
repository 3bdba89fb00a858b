"""Operators of tensors, and of the holes in rewrite patterns, as calls to ops.

`Operators` is the base of `Tensor` and of the pattern nodes: it looks ops up in `OPS`, so the same
expression computes, traces or builds a pattern, depending on the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gptrs.errors import ShapeError
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.methods import Methods, Result, spread
from gptrs.ir.types import normal_axis


class Operators(Methods[Result]):
    """Arithmetic, comparison, indexing and shape methods: calls to `OPS` that give a `Result`."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves array + tensor to the tensor
    __array_priority__ = 1000

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[DimLike, ...]: ...
        @property
        def dtype(self) -> Any: ...
        @property
        def ndim(self) -> int: ...

    def __add__(self, other: Any) -> Result:
        return FUNCTIONS["add"](self, other)

    def __radd__(self, other: Any) -> Result:
        return FUNCTIONS["add"](other, self)

    def __sub__(self, other: Any) -> Result:
        return OPS["sub"](self, other)

    def __rsub__(self, other: Any) -> Result:
        return OPS["sub"](other, self)

    def __mul__(self, other: Any) -> Result:
        return FUNCTIONS["multiply"](self, other)

    def __rmul__(self, other: Any) -> Result:
        return FUNCTIONS["multiply"](other, self)

    def __truediv__(self, other: Any) -> Result:
        return FUNCTIONS["divide"](self, other)

    def __rtruediv__(self, other: Any) -> Result:
        return FUNCTIONS["divide"](other, self)

    def __floordiv__(self, other: Any) -> Result:
        return FUNCTIONS["floor_divide"](self, other)

    def __rfloordiv__(self, other: Any) -> Result:
        return FUNCTIONS["floor_divide"](other, self)

    def __mod__(self, other: Any) -> Result:
        return OPS["remainder"](self, other)

    def __rmod__(self, other: Any) -> Result:
        return OPS["remainder"](other, self)

    def __pow__(self, other: Any) -> Result:
        return OPS["pow"](self, other)

    def __rpow__(self, other: Any) -> Result:
        return OPS["pow"](other, self)

    def __matmul__(self, other: Any) -> Result:
        return OPS["matmul"](self, other)

    def __rmatmul__(self, other: Any) -> Result:
        return OPS["matmul"](other, self)

    def __neg__(self) -> Result:
        return OPS["neg"](self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Result:
        return FUNCTIONS["abs"](self)

    def __and__(self, other: Any) -> Result:
        return FUNCTIONS["bitwise_and"](self, other)

    def __rand__(self, other: Any) -> Result:
        return FUNCTIONS["bitwise_and"](other, self)

    def __or__(self, other: Any) -> Result:
        return FUNCTIONS["bitwise_or"](self, other)

    def __ror__(self, other: Any) -> Result:
        return FUNCTIONS["bitwise_or"](other, self)

    def __xor__(self, other: Any) -> Result:
        return FUNCTIONS["bitwise_xor"](self, other)

    __rxor__ = __xor__

    def __invert__(self) -> Result:
        return FUNCTIONS["bitwise_invert"](self)

    def __lshift__(self, other: Any) -> Result:
        return OPS["shift_left"](self, other)

    def __rlshift__(self, other: Any) -> Result:
        return OPS["shift_left"](other, self)

    def __rrshift__(self, other: Any) -> Result:
        return OPS["shift_right"](other, self)

    def __rshift__(self, other: Any) -> Result:
        return OPS["shift_right"](self, other)

    def __lt__(self, other: Any) -> Result:
        return OPS["less"](self, other)

    def __le__(self, other: Any) -> Result:
        return OPS["less_equal"](self, other)

    def __gt__(self, other: Any) -> Result:
        return OPS["greater"](self, other)

    def __ge__(self, other: Any) -> Result:
        return OPS["greater_equal"](self, other)

    def __eq__(self, other: object) -> Result:  # pyright: ignore[reportIncompatibleMethodOverride]
        return OPS["equal"](self, other)

    def __ne__(self, other: object) -> Result:  # pyright: ignore[reportIncompatibleMethodOverride]
        return OPS["not_equal"](self, other)

    __hash__ = object.__hash__

    def __getitem__(self, key: Any) -> Result:
        return FUNCTIONS["getitem"](self, key)

    @property
    def at(self) -> Any:
        """``x.at[key].set(v)``, ``.add(v)``, ... : ``x`` with other elements at ``key``."""
        return FUNCTIONS["at"](self)

    @property
    def T(self) -> Result:  # noqa: N802 - NumPy's and torch's name
        """All axes in reverse order, as in NumPy; of a matrix its transpose."""
        return OPS["transpose"](self, perm=tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Result:  # noqa: N802 - the standard's name
        """The last two axes exchanged: the transpose of each matrix."""
        if self.ndim < 2:
            raise ShapeError(f".mT needs at least 2 axes, this has {self.ndim}")
        return self.transpose(-2, -1)

    def reshape(self, *shape: DimLike | Sequence[DimLike]) -> Result:
        """The same elements in another shape; one dimension may be -1."""
        return OPS["reshape"](self, shape=spread(shape))

    def permute(self, *axes: int | Sequence[int]) -> Result:
        """All axes in another order: axis ``i`` of the result is axis ``axes[i]``."""
        return OPS["transpose"](self, perm=spread(axes))

    def transpose(self, *axes: int | Sequence[int]) -> Result:
        """Two axes exchanged, as in torch; or all axes in another order, as in NumPy."""
        order = spread(axes) or tuple(reversed(range(self.ndim)))
        if len(axes) < 2:
            return OPS["transpose"](self, perm=order)
        if len(order) == 2 and self.ndim != 2:
            a, b = (normal_axis(int(axis), self.ndim) for axis in order)
            order = list(range(self.ndim))
            order[a], order[b] = b, a
        elif len(order) == 2 and {int(axis) % 2 for axis in order} == {0, 1}:
            order = (1, 0)  # exchanges the two axes of a matrix, in either order of arguments
        return OPS["transpose"](self, perm=tuple(order))

    def split(self, size: int | Sequence[int], axis: int = 0) -> list[Result]:
        """Pieces along ``axis``: of ``size`` each (the last may be smaller), or of given sizes."""
        at = normal_axis(axis, self.ndim)
        extent = self.shape[at]
        if isinstance(size, int):
            if isinstance(extent, Dim) or size < 1:
                raise ShapeError(f"split: cannot cut extent {extent} into pieces of {size}")
            sizes: Sequence[int] = [min(size, extent - i) for i in range(0, extent, size)]
        else:
            sizes = size
        if isinstance(extent, Dim) or sum(sizes) != extent or min(sizes, default=0) < 0:
            raise ShapeError(f"split: sizes {list(sizes)} do not add up to extent {extent}")
        pieces: list[Result] = []
        first = 0
        for part in sizes:
            keys = [slice(None)] * at + [slice(first, first + part)]
            pieces.append(self[tuple(keys)])
            first += part
        return pieces

    def astype(self, dtype: object) -> Result:
        """The elements converted to ``dtype``, as `cast` does it."""
        return OPS["cast"](self, dtype=dtype)
