"""Arrays from numbers, shapes and other arrays, by the names of the array API standard.

The default dtypes are those of torch: f32, si64, i1, cf32. ``device`` is there for code that is
written for several libraries: "cpu" is the one device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from gptrs import tree
from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike, Shape, same
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.printing import array as printed_array
from gptrs.ir.promotion import (
    DEFAULT_COMPLEX,
    DEFAULT_FLOAT,
    DEFAULT_INTEGER,
    DEFAULTS,
    NUMBERS,
    kind_of,
)
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import Array, DType, as_dtype
from gptrs.numpy_api.function import as_tensor, public, tensor_of

__all__ = [
    "arange",
    "array",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "identity",
    "linspace",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tri",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

Number = bool | int | float | complex
Extents = DimLike | Sequence[DimLike]


def check_device(device: object) -> None:
    """Raise `ArgumentError` unless ``device`` is None or the CPU."""
    if device is not None and str(device) != "cpu":
        raise ArgumentError(f"device is {device!r}, there is the CPU alone", fix="device='cpu'")


def shape_of(shape: Extents) -> Shape:
    """One extent or several as a shape; NumPy integers become Python's."""
    extents = cast("Sequence[Any]", shape if isinstance(shape, tuple | list) else (shape,))
    return tuple(n if isinstance(n, Dim) else n.__index__() for n in extents)


def _dtype(dtype: object, default: DType) -> DType:
    return default if dtype is None else as_dtype(dtype)


@public
def asarray(
    obj: Any, dtype: object = None, *, device: object = None, copy: bool | None = None
) -> Tensor:
    """``obj`` as a Tensor: arrays are shared unless ``copy``, numbers and nested lists of numbers
    and Tensors (which are stacked) get the default dtype of their kind."""
    check_device(device)
    if isinstance(obj, NUMBERS) and not isinstance(obj, np.generic):
        kind = as_dtype(dtype) if dtype is not None else DEFAULTS[kind_of(obj)]
        if isinstance(obj, Dim):
            zero = OPS["full"](shape=(), value=0, dtype=DEFAULT_INTEGER)
            return OPS["add"](zero, obj).astype(kind)
        return Tensor.of_array(np.asarray(_in_kind(obj, kind)).astype(kind.numpy))
    if isinstance(obj, list | tuple):
        tensor = _stacked(cast("Sequence[Any]", obj), dtype)
    else:
        tensor = as_tensor(obj)
        if copy and not tensor.is_traced:
            tensor = Tensor.of_array(tensor.numpy().copy())
    return tensor if dtype is None else tensor.astype(dtype)


@public
def array(data: Any, dtype: object = None, *, copy: bool | None = True, ndmin: int = 0) -> Tensor:
    """`asarray` of a copy, so that later writes into a NumPy array are not seen, with leading axes
    up to ``ndmin``. With a type and its elements, ``array("f32[2]", [1, 2])``, the constant of a
    program's text."""
    if isinstance(data, str):
        return Tensor(printed_array(data, cast("Any", dtype)))
    made = asarray(data, dtype=dtype, copy=copy)
    return made.reshape((*(1,) * (ndmin - made.ndim), *made.shape)) if made.ndim < ndmin else made


def _in_kind(number: Any, dtype: DType) -> Any:
    """A Python number as the literal of ``dtype`` that NumPy makes of it."""
    if isinstance(number, Dim):
        return number
    if dtype.is_bool:
        return bool(number)
    if dtype.is_integer:
        return int(number)
    return float(number) if dtype.is_float and isinstance(number, bool) else number


def _stacked(parts: Sequence[Any], dtype: object) -> Tensor:
    leaves, _ = tree.flatten(list(parts), is_leaf=lambda x: not isinstance(x, list | tuple))
    if not any(isinstance(leaf, Tensor) for leaf in leaves):
        return _of_numbers(parts, leaves, dtype)
    made = [as_tensor(part) for part in parts]
    if len({part.ndim for part in made}) > 1:
        raise ShapeError("asarray: the parts of the list have different ranks")
    return OPS["concat"](tuple(OPS["reshape"](p, shape=(1, *p.shape)) for p in made), axis=0)


def _of_numbers(parts: Sequence[Any], leaves: Sequence[Any], dtype: object) -> Tensor:
    plain = not any(hasattr(leaf, "dtype") for leaf in leaves)
    if dtype is None or not plain:
        made = Tensor(parts)
        return made.astype(DEFAULT_COMPLEX) if plain and made.dtype.is_complex else made
    try:
        return Tensor.of_array(np.asarray(parts, as_dtype(dtype).numpy))
    except (ValueError, OverflowError, TypeError) as error:
        raise ArgumentError(f"the list is no array of {as_dtype(dtype)}: {error}") from None


@public(other_names={"value": "fill_value"})
def full(shape: Extents, fill_value: Any, dtype: object = None, *, device: object = None) -> Tensor:
    """An array of ``shape`` filled with a number, or with a Tensor that broadcasts to it."""
    check_device(device)
    if isinstance(fill_value, NUMBERS) and not isinstance(fill_value, np.generic):
        kind = _dtype(dtype, DEFAULTS[kind_of(fill_value)])
        if not kind.is_complex:
            return OPS["full"](shape=shape_of(shape), value=_in_kind(fill_value, kind), dtype=kind)
    return OPS["broadcast_to"](asarray(fill_value, dtype=dtype), shape=shape_of(shape))


@public
def full_like(
    x: Any,
    fill_value: Any,
    dtype: object = None,
    *,
    device: object = None,
    shape: Extents | None = None,
) -> Tensor:
    """An array of the shape and dtype of ``x``, unless these are given, filled with a number."""
    like = as_tensor(x)
    extents = like.shape if shape is None else shape
    return full(extents, fill_value, dtype=_dtype(dtype, like.dtype), device=device)


@public
def zeros(shape: Extents, dtype: object = None, *, device: object = None) -> Tensor:
    """Zeros."""
    return full(shape, 0, dtype=_dtype(dtype, DEFAULT_FLOAT), device=device)


@public
def ones(shape: Extents, dtype: object = None, *, device: object = None) -> Tensor:
    """Ones."""
    return full(shape, 1, dtype=_dtype(dtype, DEFAULT_FLOAT), device=device)


@public
def scalar_tensor(s: Any, *, dtype: object = None) -> Tensor:
    """A number as a Tensor of rank 0, f32 without a ``dtype``."""
    return tensor_of(s, dtype or DEFAULT_FLOAT)


@public
def empty(shape: Extents, dtype: object = None, *, device: object = None) -> Tensor:
    """Zeros: no memory is left as it was."""
    return zeros(shape, dtype=dtype, device=device)


@public
def zeros_like(
    x: Any, dtype: object = None, *, device: object = None, shape: Extents | None = None
) -> Tensor:
    """Zeros of the shape and dtype of ``x``, unless these are given."""
    return full_like(x, 0, dtype=dtype, device=device, shape=shape)


@public
def ones_like(
    x: Any, dtype: object = None, *, device: object = None, shape: Extents | None = None
) -> Tensor:
    """Ones of the shape and dtype of ``x``, unless these are given."""
    return full_like(x, 1, dtype=dtype, device=device, shape=shape)


@public
def empty_like(
    x: Any, dtype: object = None, *, device: object = None, shape: Extents | None = None
) -> Tensor:
    """Zeros of the shape and dtype of ``x``, unless these are given."""
    return full_like(x, 0, dtype=dtype, device=device, shape=shape)


@public
def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: object = None,
    *,
    device: object = None,
) -> Tensor:
    """start, start + step, ... before ``stop``; with one number the integers before it.

    Floats are computed in f64 and rounded once. Sizes may be symbolic where the step is 1.
    """
    check_device(device)
    if stop is None:
        start, stop = 0, start
    first, last, by = (
        _known(name, n) for name, n in (("start", start), ("stop", stop), ("step", step))
    )
    if not isinstance(by, Dim) and by == 0:
        raise ArgumentError("arange: the step is 0")
    whole = all(isinstance(n, int | Dim) for n in (first, last, by))
    kind = _dtype(dtype, DEFAULT_INTEGER if whole else DEFAULT_FLOAT)
    if isinstance(first, Dim) or isinstance(last, Dim):
        if by != 1:
            raise ArgumentError(f"arange: with a symbolic size the step is 1, found {by}")
        count: DimLike = last - first
    else:
        count = max(0, _count(first, last, by))
    places: Tensor = OPS["iota"](shape=(count,), dtype="si64")
    if whole:
        places = places if by == 1 else places * by
        return (places if same(first, 0) else OPS["add"](places, first)).astype(kind)
    return (places.astype("f64") * float(by) + float(first)).astype(kind)


def _count(first: Any, last: Any, by: Any) -> int:
    if all(isinstance(n, int) for n in (first, last, by)):
        return len(range(first, last, by))
    return int(np.ceil((last - first) / by))


def _known(name: str, number: Any) -> Any:
    """A Python number of a range, whose extent is part of the program."""
    if isinstance(number, Tensor) and number.is_traced:
        raise ArgumentError(
            f"{name} must be known while tracing, found {number.type}",
            fix="make the argument static with static_argnames, or give the axis a name: dynamic=",
        )
    known: Any = number.item() if hasattr(number, "item") else number
    return int(known) if isinstance(known, bool) else known


@public
def linspace(
    start: Any,
    stop: Any,
    num: DimLike = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: object = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Any:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which is left out without
    ``endpoint``; with ``retstep`` the distance, too. Computed in f64 and rounded once, integers
    downwards. Tensors broadcast; the new axis is ``axis``."""
    check_device(device)
    if not isinstance(num, Dim) and num < 0:
        raise ArgumentError(f"linspace: num is {num}, expected an integer of at least 0")
    first, last = as_tensor(start), as_tensor(stop)
    is_complex = first.dtype.is_complex or last.dtype.is_complex
    wide = "cf64" if is_complex else "f64"
    kind = _dtype(dtype, DEFAULTS["complex" if is_complex else "float"])
    low, high = _wide(start, wide), _wide(stop, wide)
    parts = num - 1 if endpoint else num
    shape = (num, *(1,) * max(first.ndim, last.ndim))
    places: Tensor = OPS["iota"](shape=shape, dtype="si64")
    if isinstance(parts, Dim):
        step = (high - low) / OPS["maximum"](asarray(parts, dtype="f64"), 1)
    else:
        step = (high - low) / max(parts, 1)
    values = low + places.astype("f64").astype(wide) * step
    if endpoint and (isinstance(num, Dim) or num > 1):
        is_last = OPS["logical_and"](places == num - 1, places > 0)
        values = OPS["select"](is_last, high, values)
    values = OPS["floor"](values) if kind.is_integer else values
    values = FUNCTIONS["moveaxis"](values.astype(kind), 0, axis) if axis else values.astype(kind)
    return (values, step.astype(kind)) if retstep else values


def _wide(number: Any, dtype: str) -> Tensor:
    if isinstance(number, Tensor) and not number.weak:
        return number.astype(dtype)
    return asarray(number, dtype=dtype)


@public
def tri(
    n_rows: DimLike, n_cols: DimLike | None = None, k: int = 0, *, dtype: object = None
) -> Tensor:
    """Ones at and below the ``k``-th diagonal, zeros above."""
    shape = shape_of((n_rows, n_rows if n_cols is None else n_cols))
    return _below(shape, k).astype(_dtype(dtype, DEFAULT_FLOAT))


def _below(shape: Shape, k: int) -> Tensor:
    """Whether an element lies at or below the ``k``-th diagonal of a matrix."""
    rows: Tensor = OPS["iota"](shape=shape, axis=0, dtype="si64")
    columns: Tensor = OPS["iota"](shape=shape, axis=1, dtype="si64")
    return columns <= _diagonal(rows, k)


_FARTHEST = 2**62
"""No array has a diagonal as far as that from its main one."""


def _diagonal(rows: Tensor, k: int) -> Tensor:
    """The column of the ``k``-th diagonal in each row; of one that no array has, columns that no
    array has, without overflow."""
    return rows + max(-_FARTHEST, min(k, _FARTHEST)) if k else rows


@public
def eye(
    n_rows: DimLike,
    n_cols: DimLike | None = None,
    k: int = 0,
    dtype: object = None,
    *,
    device: object = None,
) -> Tensor:
    """Ones on the ``k``-th diagonal, zeros elsewhere."""
    check_device(device)
    shape = shape_of((n_rows, n_rows if n_cols is None else n_cols))
    rows: Tensor = OPS["iota"](shape=shape, axis=0, dtype="si64")
    columns: Tensor = OPS["iota"](shape=shape, axis=1, dtype="si64")
    return (columns == _diagonal(rows, k)).astype(_dtype(dtype, DEFAULT_FLOAT))


@public
def identity(n: DimLike, dtype: object = None) -> Tensor:
    """The identity matrix of ``n`` rows."""
    return eye(n, dtype=dtype)


def _matrices(x: Any) -> Tensor:
    tensor = as_tensor(x)
    if tensor.ndim < 2:
        raise ShapeError(f"expected matrices in the last two axes, found rank {tensor.ndim}")
    return tensor


def _zero(x: Tensor) -> Any:
    return False if x.dtype.is_bool else 0


@public
def tril(x: Any, k: int = 0) -> Tensor:
    """The elements at and below the ``k``-th diagonal of the matrices in the last two axes, else
    0."""
    x = _matrices(x)
    return OPS["select"](_below(x.shape[-2:], k), x, _zero(x))


@public
def triu(x: Any, k: int = 0) -> Tensor:
    """The elements at and above the ``k``-th diagonal of the matrices in the last two axes, else
    0."""
    x = _matrices(x)
    return OPS["select"](OPS["logical_not"](_below(x.shape[-2:], k - 1)), x, _zero(x))


@public
def from_dlpack(x: Any, /, *, device: object = None, copy: bool | None = None) -> Tensor:
    """The array that ``x`` exports through DLPack."""
    check_device(device)
    array = cast("Array | None", as_array(x) if not hasattr(x, "__dlpack__") else np.from_dlpack(x))
    if array is None:
        raise ArgumentError(f"{type(x).__name__} has no __dlpack__")
    return asarray(array, copy=copy)
