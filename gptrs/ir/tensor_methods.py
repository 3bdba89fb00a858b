"""Methods of a Tensor that are no function of ``ptir`` by their name: conversions, views, copies.

They are those of NumPy's arrays and torch's tensors. All tensors lie on the CPU in row-major order
and have no gradient, so that `contiguous`, `cpu` and `detach` are the Tensor itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, cast

from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.flat_elements import FlatElements
from gptrs.ir.methods import Result, spread
from gptrs.ir.operators import Operators
from gptrs.ir.types import as_dtype, normal_axis

CONVERSIONS = {
    "bfloat16": "bf16",
    "bool": "i1",
    "byte": "ui8",
    "cdouble": "cf64",
    "cfloat": "cf32",
    "char": "si8",
    "double": "f64",
    "float": "f32",
    "half": "f16",
    "int": "si32",
    "long": "si64",
    "short": "si16",
}
"""torch's names of conversions: ``x.float()``."""


class TensorMethods(Operators[Result]):
    """Methods that copy, convert and select, in the words of NumPy and torch."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def size(self) -> DimLike: ...
        def copy(self) -> Result: ...
        def to_device(self, device: object, /) -> Any: ...

    @property
    def real(self) -> Result:
        """The real part; a real Tensor itself."""
        return FUNCTIONS["real"](self)

    @property
    def imag(self) -> Result:
        """The imaginary part; zeros of a real Tensor."""
        return FUNCTIONS["imag"](self)

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element in memory."""
        return int(self.dtype.numpy.itemsize)

    @property
    def nbytes(self) -> DimLike:
        """The number of bytes of all elements in memory."""
        return self.size * self.itemsize

    @property
    def flat(self) -> FlatElements:
        """The elements in one row: ``x.flat[3]``, ``x.flat[::2] = 0``."""
        return FlatElements(self)

    @property
    def H(self) -> Result:  # noqa: N802 - torch's name
        """The transpose of a matrix, conjugate where it is complex."""
        if self.ndim > 2:
            raise ShapeError(f".H is of a matrix, this has {self.ndim} axes", fix="x.mH")
        return self.mH if self.ndim == 2 else self.conj()

    @property
    def mH(self) -> Result:  # noqa: N802 - torch's name
        """The transpose of each matrix of the last two axes, conjugate where it is complex."""
        return FUNCTIONS["conj"](self.mT)

    def numel(self) -> DimLike:
        """The number of elements, torch's name of ``size``."""
        return self.size

    def nelement(self) -> DimLike:
        """The number of elements, torch's name of ``size``."""
        return self.size

    def dim(self) -> int:
        """The number of axes, torch's name of ``ndim``."""
        return self.ndim

    def ndimension(self) -> int:
        """The number of axes, torch's name of ``ndim``."""
        return self.ndim

    def element_size(self) -> int:
        """The number of bytes of an element, torch's name of ``itemsize``."""
        return self.itemsize

    def is_contiguous(self) -> bool:
        """Whether the elements are in row-major order: they always are."""
        return True

    def clone(self) -> Result:
        """torch's name of ``copy``."""
        return self.copy()

    def contiguous(self) -> Result:
        """This Tensor, whose elements are in row-major order."""
        return cast("Result", self)

    def cpu(self) -> Result:
        """This Tensor, which is on the CPU."""
        return cast("Result", self)

    def detach(self) -> Result:
        """This Tensor, which has no gradient."""
        return cast("Result", self)

    def to(self, *targets: object) -> Result:
        """The elements converted to a dtype, or on a device (`Tensor.to_device`)."""
        result: Any = self
        for target in targets:
            try:
                dtype = as_dtype(target)
            except DTypeError:
                result = result.to_device(target)
            else:
                result = result.astype(dtype)
        return result

    def view(self, *shape: Any, dtype: object = None) -> Result:
        """`reshape`; with a dtype, the bits as elements of it: the last axis grows or shrinks with
        the width."""
        extents = spread(shape)
        if dtype is None and all(hasattr(n, "__index__") for n in extents):
            return self.reshape(*extents)
        return FUNCTIONS["view"](self, *shape, **({} if dtype is None else {"dtype": dtype}))

    def resolve_conj(self) -> Result:
        """This Tensor: conjugates are computed at once."""
        return cast("Result", self)

    def resolve_neg(self) -> Result:
        """This Tensor: negatives are computed at once."""
        return cast("Result", self)

    def cross(self, other: Any, dim: int = -1) -> Result:
        """The cross product of vectors of 3 elements along ``dim``."""
        return FUNCTIONS["cross"](self, other, axis=dim)

    def polygamma(self, n: int) -> Result:
        """The derivative of order ``n`` of digamma."""
        return FUNCTIONS["polygamma"](n, self)

    def is_same_size(self, other: Any) -> bool:
        """Whether both have one shape, as in torch."""
        return self.shape == tuple(other.shape)

    def view_as(self, other: Any) -> Result:
        """The elements in the shape of ``other``."""
        return self.reshape(*other.shape)

    def reshape_as(self, other: Any) -> Result:
        """The elements in the shape of ``other``."""
        return self.reshape(*other.shape)

    def expand_as(self, other: Any) -> Result:
        """Repeated to the shape of ``other``; see `expand`."""
        return self.expand(*other.shape)

    def type_as(self, other: Any) -> Result:
        """The elements converted to the dtype of ``other``."""
        return self.astype(other.dtype)

    def new_zeros(self, *shape: Any, dtype: object = None) -> Result:
        """Zeros of this dtype."""
        return self.new_full(spread(shape), 0, dtype=dtype)

    def new_ones(self, *shape: Any, dtype: object = None) -> Result:
        """Ones of this dtype."""
        return self.new_full(spread(shape), 1, dtype=dtype)

    def new_empty(self, *shape: Any, dtype: object = None) -> Result:
        """An array of this dtype whose elements are not said; they are 0."""
        return self.new_full(spread(shape), 0, dtype=dtype)

    def new_full(self, size: Any, fill_value: Any, *, dtype: object = None) -> Result:
        """``fill_value`` of this dtype in the shape ``size``."""
        return FUNCTIONS["full"](size, fill_value, dtype=dtype or self.dtype)

    def new_tensor(self, data: Any, *, dtype: object = None) -> Result:
        """``data`` as a Tensor of this dtype."""
        return FUNCTIONS["asarray"](data, dtype=dtype or self.dtype)

    def add(self, other: Any, *, alpha: Any = 1) -> Result:
        """This + ``alpha`` · ``other``."""
        return FUNCTIONS["add"](self, other if alpha == 1 else FUNCTIONS["multiply"](other, alpha))

    def sub(self, other: Any, *, alpha: Any = 1) -> Result:
        """This − ``alpha`` · ``other``."""
        return OPS["sub"](self, other if alpha == 1 else FUNCTIONS["multiply"](other, alpha))

    subtract = sub

    def flip(self, *dims: Any) -> Result:
        """The elements in reverse order along ``dims``, or along all axes."""
        return FUNCTIONS["flip"](self, spread(dims) or None)

    def select(self, dim: int, index: int) -> Result:
        """The part at ``index`` along ``dim``, as in torch."""
        return self[(slice(None),) * normal_axis(dim, self.ndim) + (index,)]

    def where(self, condition: Any, other: Any) -> Result:
        """This where ``condition`` holds, else ``other``, as in torch."""
        return FUNCTIONS["where"](condition, self, other)

    def equal(self, other: Any) -> Any:
        """Whether both have one shape and equal elements, as in torch; `eq` compares each."""
        return FUNCTIONS["array_equal"](self, other)

    def expand(self, *shape: Any) -> Result:
        """Repeated along axes of extent 1 and new leading ones, as in torch; -1 keeps an extent."""
        extents = spread(shape)
        if len(extents) < len(self.shape):
            raise ShapeError(
                f"expand: {len(extents)} extents for {len(self.shape)} axes, expected at least as"
                " many"
            )
        old = (1,) * (len(extents) - len(self.shape)) + self.shape
        kept = [
            a if isinstance(b, int) and b == -1 else b for a, b in zip(old, extents, strict=True)
        ]
        return OPS["broadcast_to"](self, shape=tuple(kept))

    def repeat(self, repeats: Any, *more: Any, axis: int | None = None) -> Result:
        """Each element so often along ``axis``, as in NumPy; torch's repeat is `tile`.

        Raises `ArgumentError` for two numbers, which mean different things to the two.
        """
        if more:
            several = (repeats, *more)
            raise ArgumentError(
                f"x.repeat{several} is one thing in NumPy and another in torch",
                fix=f"x.repeat({repeats!r}, axis={more[0]!r}) as in NumPy,"
                f" x.tile({several}) as in torch",
            )
        return FUNCTIONS["repeat"](self, repeats, axis=axis)

    def take(self, indices: Any, axis: int | None = None, mode: str = "raise") -> Result:
        """The parts at ``indices`` along ``axis``; without it, of all elements in one row."""
        return FUNCTIONS["take"](self, indices, axis=axis, mode=mode)

    def masked_fill(self, mask: Any, value: Any) -> Result:
        """``value`` where ``mask`` holds, else the element, in the dtype of this Tensor."""
        return FUNCTIONS["where"](mask, value, self).astype(self.dtype)


class Conversions(Generic[Result]):
    """torch's conversions, by `CONVERSIONS`."""

    __slots__ = ()

    if TYPE_CHECKING:  # the loop below makes them

        def bfloat16(self) -> Result: ...
        def bool(self) -> Result: ...
        def byte(self) -> Result: ...
        def cdouble(self) -> Result: ...
        def cfloat(self) -> Result: ...
        def char(self) -> Result: ...
        def double(self) -> Result: ...
        def float(self) -> Result: ...
        def half(self) -> Result: ...
        def int(self) -> Result: ...
        def long(self) -> Result: ...
        def short(self) -> Result: ...


def _conversion(dtype: str) -> Any:
    def convert(self: Any) -> Any:
        return self.astype(dtype)

    return convert


for _name, _dtype in CONVERSIONS.items():
    _made = _conversion(_dtype)
    _made.__name__, _made.__qualname__ = _name, f"Tensor.{_name}"
    _made.__doc__ = f"The elements converted to {_dtype}."
    setattr(Conversions, _name, _made)
