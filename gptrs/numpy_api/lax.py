"""Functions of ``jax.lax`` that NumPy and torch lack, over the ops: broadcast_in_dim, select_n,
reductions by a function, shifts and counts of bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.dims import Dim, product, same
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import as_dtype, normal_axes, shape_text
from gptrs.numpy_api.creation import full, shape_of
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.integers import bitwise_count
from gptrs.numpy_api.joining import concat
from gptrs.numpy_api.loops import associative_scan
from gptrs.numpy_api.manipulation import broadcast_to, flip
from gptrs.numpy_api.statistics import as_float

__all__ = [
    "broadcast_in_dim",
    "broadcasted_iota",
    "clz",
    "convert_element_type",
    "cumlogsumexp",
    "integer_pow",
    "population_count",
    "reduce",
    "reduce_and",
    "reduce_or",
    "reduce_xor",
    "rev",
    "select_n",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sort_key_val",
]


@public(other_names={"operand": "x"})
def broadcast_in_dim(x: Any, shape: Any, broadcast_dimensions: Sequence[int]) -> Tensor:
    """``x`` repeated in ``shape``: its axis i becomes axis ``broadcast_dimensions[i]``."""
    x, extents = as_tensor(x), shape_of(shape)
    places = [*broadcast_dimensions]
    if len(places) != x.ndim or places != sorted(set(places)) or places[-1:] >= [len(extents)]:
        raise ShapeError(
            f"broadcast_dimensions is {broadcast_dimensions}, expected {x.ndim} rising axes of"
            f" {shape_text(extents)}"
        )
    own = dict(zip(places, x.shape, strict=True))
    return broadcast_to(x.reshape([own.get(i, 1) for i in range(len(extents))]), extents)


@public
def broadcasted_iota(dtype: object, shape: Any, dimension: int) -> Tensor:
    """The position along ``dimension`` in an array of ``shape``."""
    return OPS["iota"](shape=shape_of(shape), dtype=as_dtype(dtype), axis=dimension)


@public(other_names={"operand": "x", "new_dtype": "dtype"})
def convert_element_type(x: Any, dtype: object) -> Tensor:
    """The elements in another dtype, as `cast` converts them."""
    return tensor_of(x, dtype)


@public(other_names={"operand": "x"})
def rev(x: Any, dimensions: Sequence[int]) -> Tensor:
    """``x`` backwards along ``dimensions``."""
    return flip(x, tuple(dimensions))


@public
def select_n(which: Any, *cases: Any) -> Tensor:
    """The elements of ``cases[which]``: of two cases by bools (the second where they hold), of any
    number by integers, of which those out of range count as the nearest."""
    at = as_tensor(which)
    if not cases or (at.dtype.is_bool and len(cases) > 2):
        raise ArgumentError(f"select_n: found {len(cases)} cases for {at.dtype}")
    if len(cases) == 1:
        return as_tensor(cases[0])
    if at.dtype.is_bool:
        return OPS["select"](at, *reversed(cases))

    def among(first: int, last: int) -> Any:
        if last - first == 1:
            return cases[first]
        middle = (first + last) // 2
        return OPS["select"](at < middle, among(first, middle), among(middle, last))

    return among(0, len(cases))


@public
def integer_pow(x: Any, y: int) -> Tensor:
    """x to the power of a Python integer."""
    if not isinstance(y, int) or isinstance(y, bool):
        raise ArgumentError(f"integer_pow: y is {y!r}, expected a Python integer")
    return FUNCTIONS["pow"](as_float(x) if y < 0 else x, y)


@public(other_names={"operand": "x"})
def cumlogsumexp(x: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """log Σ exp(x) of the elements up to and including each along ``axis``, without overflow."""
    return associative_scan(FUNCTIONS["logaddexp"], as_float(x), reverse=reverse, axis=axis)


@public(other_names={"dimension": "axis"})
def sort_key_val(
    keys: Any, values: Any, axis: int = -1, is_stable: bool = True
) -> tuple[Tensor, Tensor]:
    """The keys in order along ``axis``, always stable, and the values in the order of theirs."""
    ordered, order = OPS["sort"](as_tensor(keys), axis=axis)
    return ordered, OPS["gather"](as_tensor(values), order, axis=axis)


_MONOIDS = {
    "add": "sum",
    "mul": "prod",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
"""The reductions of functions that have an op for it."""


def _reduction(computation: Callable[..., Any], x: Tensor) -> str | None:
    for name, reduction in _MONOIDS.items():
        if computation is OPS.get(name) or computation is FUNCTIONS[name]:
            fits = x.dtype.is_bool == (reduction in ("all", "any"))
            return f"reduce_{reduction}" if fits else None
    return None


@public(other_names={"operands": "x", "init_values": "init"})
def reduce(
    x: Any, init: Any, computation: Callable[[Any, Any], Any], dimensions: Sequence[int]
) -> Tensor:
    """The elements along ``dimensions`` and ``init`` combined by an associative ``computation``.

    That of ``ptir.add``, ``maximum`` and the like is one op. Another function is called with halves
    of the array, log₂ n times, so it works element by element.
    """
    x, start = as_tensor(x), as_tensor(init)
    start = start.astype(x.dtype)
    axes = normal_axes(tuple(dimensions), x.ndim)
    op = _reduction(computation, x)
    found = OPS[op](x, axes=axes) if op else _folded(x, axes, computation, start)
    return as_tensor(computation(start, found))


def _folded(
    x: Tensor, axes: Sequence[int], computation: Callable[..., Any], identity: Any
) -> Tensor:
    """The elements along ``axes`` combined, by halving."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    extents = tuple(x.shape[axis] for axis in kept)
    count = product(tuple(x.shape[axis] for axis in axes))
    if isinstance(count, Dim):
        raise ShapeError(f"the extent {count} to reduce is symbolic, expected a number")
    rows = OPS["transpose"](x, perm=(*axes, *kept)).reshape((count, *extents))
    if not count:
        return full(extents, identity, dtype=x.dtype)
    while count > 1:
        half = count // 2
        combined = as_tensor(computation(rows[:half], rows[half : 2 * half]))
        if not same(combined.shape[0], half):
            raise ShapeError(
                f"reduce: computation made shape {shape_text(combined.shape)} of two of shape"
                f" {shape_text(rows[:half].shape)}"
            )
        rows = combined if count % 2 == 0 else concat([combined, rows[2 * half :]])
        count = half + count % 2
    return rows[0]


def _reduced_bits(name: str, x: Any, axes: Any, identity: int) -> Tensor:
    bits = as_tensor(x)
    if not bits.dtype.is_integer and not bits.dtype.is_bool:
        raise DTypeError(f"found dtype {bits.dtype}, expected integers or bools")
    start = bool(identity) if bits.dtype.is_bool else identity
    if bits.dtype.kind == "uint" and identity:
        start = bits.dtype.limits[1]
    places = normal_axes(axes if axes is None else tuple(axes), bits.ndim)
    return _folded(bits, places, FUNCTIONS[f"bitwise_{name}"], start)


@public(op="reduce_all")
def reduce_and(x: Any, axes: Any = None) -> Tensor:
    """The bits set in all elements along ``axes``; of bools whether all hold."""
    x = as_tensor(x)
    return OPS["reduce_all"](x, axes=axes) if x.dtype.is_bool else _reduced_bits("and", x, axes, -1)


@public(op="reduce_any")
def reduce_or(x: Any, axes: Any = None) -> Tensor:
    """The bits set in any element along ``axes``; of bools whether any holds."""
    x = as_tensor(x)
    return OPS["reduce_any"](x, axes=axes) if x.dtype.is_bool else _reduced_bits("or", x, axes, 0)


@public(op="reduce_any")
def reduce_xor(x: Any, axes: Any = None) -> Tensor:
    """The bits set in an odd number of elements along ``axes``; of bools whether as many hold."""
    return _reduced_bits("xor", x, axes, 0)


def _as_kind(x: Any, kind: str) -> Tensor:
    """The bits of integers as integers of kind "ui" or "si"."""
    x = as_tensor(x)
    if not x.dtype.is_integer:
        raise DTypeError(f"found dtype {x.dtype}, expected integers")
    return x.astype(f"{kind}{x.dtype.bits}")


@public(op="shift_right")
def shift_right_logical(x: Any, y: Any) -> Tensor:
    """The bits moved ``y`` places down, with zeros from above, of signed integers too."""
    x = as_tensor(x)
    places = tensor_of(y, f"ui{x.dtype.bits}")
    return OPS["shift_right"](_as_kind(x, "ui"), places).astype(x.dtype)


@public(op="shift_right")
def shift_right_arithmetic(x: Any, y: Any) -> Tensor:
    """The bits moved ``y`` places down, with copies of the highest from above, of unsigned integers
    too."""
    x = as_tensor(x)
    places = tensor_of(y, f"si{x.dtype.bits}")
    return OPS["shift_right"](_as_kind(x, "si"), places).astype(x.dtype)


@public(op="bit_and")
def population_count(x: Any) -> Tensor:
    """How many bits are set, in the dtype of ``x``; those of negative numbers are of their two's
    complement."""
    return bitwise_count(_as_kind(x, "ui")).astype(as_tensor(x).dtype)


@public(op="bit_and")
def clz(x: Any) -> Tensor:
    """How many bits are 0 above the highest one that is set, in the dtype of ``x``."""
    bits, dtype = _as_kind(x, "ui"), as_tensor(x).dtype
    step = 1
    while step < dtype.bits:
        bits = OPS["bit_or"](bits, OPS["shift_right"](bits, step))
        step *= 2
    return dtype.bits - bitwise_count(bits).astype(dtype)
