"""Element types (dtypes), tensor types, and the broadcasting rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, cast

import ml_dtypes
import numpy as np

from gptrs.errors import DTypeError, ParseError, PositionError, ShapeError
from gptrs.ir.dims import (
    Dim,
    DimLike,
    Shape,
    parse_dim,
    product,
    same,
    same_shape,
    surely_greater,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Kind = Literal["bool", "int", "uint", "float", "complex"]
KIND_RANK: dict[Kind, int] = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}


class DType:
    """An element type: its PTIR name, its NumPy dtype, its kind and its number of bits."""

    __slots__ = ("_hash", "bits", "kind", "name", "numpy")

    def __init__(self, name: str, numpy: Any, kind: Kind, bits: int) -> None:
        self.name = name
        self.numpy: np.dtype[Any] = np.dtype(numpy)
        self.kind: Kind = kind
        self.bits = bits
        self._hash = hash(self.numpy)

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        """Equal to itself, and to what NumPy, torch or a name calls the same dtype."""
        if isinstance(other, DType):
            return self is other
        if not isinstance(other, np.dtype | type | str) and not _is_of_torch(other):
            return False
        try:
            return as_dtype(other) is self  # pyright: ignore[reportUnknownArgumentType]
        except DTypeError:
            return False

    def __hash__(self) -> int:
        return self._hash

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype: NumPy takes an object with this attribute as a dtype."""
        return self.numpy

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def compute(self) -> DType:
        """The dtype of arithmetic on this one: narrow floats are widened to f32."""
        return f32 if self.is_float and self.bits < 32 else self

    @property
    def limits(self) -> tuple[int, int]:
        """The least and greatest value of an integer type."""
        if self.kind == "uint":
            return 0, 2**self.bits - 1
        return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1


i1 = DType("i1", np.bool_, "bool", 1)
si4 = DType("si4", ml_dtypes.int4, "int", 4)
ui4 = DType("ui4", ml_dtypes.uint4, "uint", 4)
si8 = DType("si8", np.int8, "int", 8)
ui8 = DType("ui8", np.uint8, "uint", 8)
si16 = DType("si16", np.int16, "int", 16)
ui16 = DType("ui16", np.uint16, "uint", 16)
si32 = DType("si32", np.int32, "int", 32)
ui32 = DType("ui32", np.uint32, "uint", 32)
si64 = DType("si64", np.int64, "int", 64)
ui64 = DType("ui64", np.uint64, "uint", 64)
fp8_e4m3 = DType("fp8_e4m3", ml_dtypes.float8_e4m3fn, "float", 8)
fp8_e5m2 = DType("fp8_e5m2", ml_dtypes.float8_e5m2, "float", 8)
bf16 = DType("bf16", ml_dtypes.bfloat16, "float", 16)
f16 = DType("f16", np.float16, "float", 16)
f32 = DType("f32", np.float32, "float", 32)
f64 = DType("f64", np.float64, "float", 64)
cf32 = DType("cf32", np.complex64, "complex", 64)
cf64 = DType("cf64", np.complex128, "complex", 128)

DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        *(i1, si4, ui4, si8, ui8, si16, ui16, si32, ui32, si64, ui64),
        *(fp8_e4m3, fp8_e5m2, bf16, f16, f32, f64, cf32, cf64),
    )
}
_BY_NUMPY: dict[np.dtype[Any], DType] = {d.numpy: d for d in DTYPES.values()}
_BY_NAME: dict[str, DType] = {d.numpy.name: d for d in DTYPES.values()} | DTYPES


def common_dtype(dtypes: Sequence[DType]) -> DType:
    """The dtype to which all can be cast with the least loss: of those of the highest kind the most
    frequent, then the widest."""
    rank = max(KIND_RANK[dtype.kind] for dtype in dtypes)
    kept = [dtype for dtype in dtypes if KIND_RANK[dtype.kind] == rank]
    return max(kept, key=lambda dtype: (kept.count(dtype), dtype.bits))


def _is_of_torch(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def as_dtype(value: object) -> DType:
    """A `DType` from itself, its name (``"f32"``, ``"float32"``), a NumPy or a torch dtype."""
    if isinstance(value, DType):
        return value
    if isinstance(value, np.dtype):
        known = _BY_NUMPY.get(cast("np.dtype[Any]", value))
    elif isinstance(value, str):
        known = _BY_NAME.get(value)
    elif _is_of_torch(value):
        known = _BY_NAME.get(str(value).removeprefix("torch."))
    else:
        try:
            known = _BY_NUMPY.get(np.dtype(cast("Any", value)))
        except TypeError:
            known = None
    if known is None:
        raise DTypeError(f"{value!r} is no element type", fix=f"use one of {', '.join(DTYPES)}")
    return known


class Type:
    """The type of a value: its element type and its shape, whose extents may be symbolic."""

    __slots__ = ("_hash", "dtype", "shape")

    def __init__(self, shape: Iterable[DimLike], dtype: DType) -> None:
        self.shape: Shape = tuple(shape)
        self.dtype = dtype
        self._hash = hash((self.shape, dtype.name))

    @classmethod
    def of(cls, array: Array) -> Type:
        """The type of a NumPy array."""
        return cls(array.shape, as_dtype(array.dtype))

    @classmethod
    def parse(cls, text: str) -> Type:
        """Read a type as it is printed: ``f32[2,?S]``."""
        name, bracket, rest = text.partition("[")
        if not bracket or not rest.endswith("]") or name not in DTYPES:
            raise ParseError(f"{text!r} is not a type", fix="write it like f32[2,?S]")
        shape = [parse_dim(part.strip()) for part in rest[:-1].split(",")] if rest != "]" else []
        if any(surely_greater(0, extent) for extent in shape):
            raise ParseError(f"{text!r} has a negative extent")
        return cls(shape, DTYPES[name])

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> DimLike:
        """The number of elements."""
        return product(self.shape)

    def with_shape(self, shape: Iterable[DimLike]) -> Type:
        return Type(shape, self.dtype)

    def with_dtype(self, dtype: DType) -> Type:
        return Type(self.shape, dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Type):
            return NotImplemented
        return self.dtype is other.dtype and same_shape(self.shape, other.shape)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(dim_text, self.shape))}]"

    __repr__ = __str__


def dim_text(value: DimLike) -> str:
    """A dimension as types print it: symbols carry a question mark."""
    if not isinstance(value, Dim):
        return str(value)
    return re.sub(r"\b[A-Za-z_]\w*", r"?\g<0>", str(value)).replace(" ", "")


def shape_text(shape: Shape) -> str:
    """A shape as messages print it: ``[2,?S]``."""
    return f"[{','.join(map(dim_text, shape))}]"


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that all of ``shapes`` broadcast to, aligned at the right.

    A dimension fits another when both are the same or one is the integer 1. A symbol never counts
    as 1. Raises `ShapeError` naming the axis.
    """
    rank = max(map(len, shapes), default=0)
    result: list[DimLike] = []
    for axis in range(-rank, 0):
        extent: DimLike = 1
        for shape in shapes:
            if -axis > len(shape):
                continue
            other = shape[axis]
            if same(extent, other) or same(other, 1):
                continue
            if not same(extent, 1):
                texts = " and ".join(map(shape_text, shapes))
                raise ShapeError(
                    f"shapes {texts} do not broadcast: axis {axis} is {dim_text(extent)} in one"
                    f" and {dim_text(other)} in another",
                    fix="reshape one of them, or add an axis of 1 with x[..., None]",
                )
            extent = other
        result.append(extent)
    return tuple(result)


def normal_axis(axis: int, rank: int) -> int:
    """``axis`` counted from the front. Raises `PositionError` when it is out of range."""
    if not -rank <= axis < rank:
        span = f"between {-rank} and {rank - 1}" if rank else "none: the operand has rank 0"
        raise PositionError(f"axis {axis} is out of range, expected one {span}")
    return axis % rank


def normal_axes(axes: int | Iterable[int] | None, rank: int) -> tuple[int, ...]:
    """``axes`` (one, several, None for all) counted from the front, each at most once, sorted."""
    if axes is None:
        return tuple(range(rank))
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    normal = sorted(normal_axis(axis, rank) for axis in given)
    if len(set(normal)) != len(normal):
        raise ShapeError(f"axes {given} name an axis twice")
    return tuple(normal)
