"""Strategies for operands and attributes of movement and window ops."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import DimLike, Shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.elementwise import FLOATING, NUMERIC, ORDERED, REAL
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, Type
from tests.fuzz.builder import Builder, UnfitError
from tests.fuzz.elementary import Draw


def _reshape(b: Builder) -> Tensor:
    x = b.value()
    match b.integer(0, 2):
        case 0:
            return OPS["reshape"](x, shape=(-1,))
        case 1 if x.ndim > 1:
            at = b.integer(0, x.ndim - 2)
            joined = (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])
            return OPS["reshape"](x, shape=joined)
        case _:
            at = b.integer(0, x.ndim)
            return OPS["reshape"](x, shape=(*x.shape[:at], b.pick((1, -1, 2)), *x.shape[at + 1 :]))


def _transpose(b: Builder) -> Tensor:
    x = b.value(least=1)
    return OPS["transpose"](x, perm=b.permuted(x.ndim))


def _broadcast_to(b: Builder) -> Tensor:
    x = b.value(most=3)
    wider = (b.extent() if n == 1 and b.chance(2) else n for n in x.shape)
    return OPS["broadcast_to"](x, shape=(*b.shape(0, 1), *wider))


def _slice(b: Builder) -> Tensor:
    x = b.value(least=1)
    starts: list[DimLike] = []
    sizes: list[DimLike] = []
    strides: list[int] = []
    for extent in x.shape:
        count = b.size(extent)
        if not isinstance(extent, int) and not b.chance(3):
            starts, sizes, strides = [*starts, 0], [*sizes, extent], [*strides, 1]
            continue
        start, stride = b.integer(0, count), b.integer(1, 3)
        most = -(-(count - start) // stride)
        starts, strides = [*starts, start], [*strides, stride]
        sizes.append(max(most - b.integer(0, 2), 0))
    return OPS["slice"](x, starts=tuple(starts), sizes=tuple(sizes), strides=tuple(strides))


def _concat(b: Builder) -> Tensor:
    x = b.value(least=1)
    axis = b.integer(0, x.ndim - 1)
    parts = [x]
    for _ in range(b.integer(0, 2)):
        shape = (*x.shape[:axis], b.pick((x.shape[axis], b.extent())), *x.shape[axis + 1 :])
        parts.append(b.of(x.type.with_shape(shape)))
    return OPS["concat"](tuple(parts), axis=axis)


def _pad(b: Builder) -> Tensor:
    x = b.value(least=1)
    low, high, interior = (tuple(b.pick((0, 1, 2)) for _ in x.shape) for _ in range(3))
    value = b.number(x.dtype)
    if not isinstance(value, int | float):
        raise UnfitError
    return OPS["pad"](x, low=low, high=high, interior=interior, value=value)


def _tile(b: Builder) -> Tensor:
    x = b.value(least=1)
    return OPS["tile"](x, reps=tuple(b.pick((1, 2, 3, 0)) for _ in x.shape))


def _take(b: Builder) -> Tensor:
    x = b.value(least=1)
    return OPS["take"](x, b.index(x.shape[0], b.shape(0, 2)))


def _gather(b: Builder) -> Tensor:
    x = b.value(least=1)
    axis = b.integer(0, x.ndim - 1)
    return OPS["gather"](x, _index_in(b, x, axis), axis=axis)


def _index_in(b: Builder, x: Tensor, axis: int) -> Tensor:
    shape = (*x.shape[:axis], b.extent(), *x.shape[axis + 1 :])
    return b.index(x.shape[axis], shape)


def _scatter(name: str) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*(NUMERIC if name == "scatter_add" else REAL), least=1)
        axis = b.integer(0, x.ndim - 1)
        index = _index_in(b, x, axis)
        source = b.of(x.type.with_shape(index.shape))
        how = {} if name == "scatter_add" else {"reduce": b.pick(("add", "max", "min", "replace"))}
        return OPS[name](x, index, source, axis=axis, **how)

    return draw


def _begin(b: Builder, x: Tensor) -> tuple[Any, ...]:
    """Where a box starts: numbers and integers of rank 0, in range or not."""
    scalar = Type((), DTYPES["si32"])
    return tuple(b.of(scalar, "-2..9") if b.chance(2) else b.integer(0, 3) for _ in x.shape)


def _part(b: Builder, x: Tensor) -> Shape:
    """The shape of a box in ``x``."""
    return tuple(n if not isinstance(n, int) or b.chance(2) else b.integer(0, n) for n in x.shape)


def _dynamic_slice(b: Builder) -> Tensor:
    x = b.value(least=1)
    return OPS["dynamic_slice"](x, _begin(b, x), sizes=_part(b, x))


def _dynamic_update_slice(b: Builder) -> Tensor:
    x = b.value(least=1)
    return OPS["dynamic_update_slice"](x, b.of(x.type.with_shape(_part(b, x))), _begin(b, x))


def _sort(b: Builder) -> Any:
    x = b.value(*ORDERED, least=1)
    return OPS["sort"](x, axis=b.integer(-x.ndim, x.ndim - 1), descending=b.chance(2))


def _top_k(b: Builder) -> Any:
    x = b.value(*ORDERED, least=1)
    axis = b.integer(0, x.ndim - 1)
    k = b.integer(0, min(b.size(x.shape[axis]), 5))
    return OPS["top_k"](x, k=k, axis=axis, largest=not b.chance(2))


def _searchsorted(b: Builder) -> Tensor:
    x = b.value(*REAL, "bool", least=1)
    rows, _ = OPS["sort"](x, axis=-1)
    values = b.of(x.type.with_shape((*x.shape[:-1], b.integer(0, 9))))
    return OPS["searchsorted"](rows, values, right=b.chance(2))


def _segment_reduce(b: Builder) -> Tensor:
    reduce = b.pick(("add", "mul", "max", "min", "mean"))
    x = b.value(*(FLOATING if reduce == "mean" else REAL), least=1)
    count = b.integer(1, 5)
    return OPS["segment_reduce"](x, b.index(count, x.shape[:1]), count=count, reduce=reduce)


def _windows(b: Builder, x: Tensor) -> dict[str, Any]:
    spatial = x.ndim - 2
    return {
        "window": tuple(b.integer(1, 3) for _ in range(spatial)),
        "strides": tuple(b.integer(1, 2) for _ in range(spatial)),
        "dilation": tuple(b.integer(1, 2) for _ in range(spatial)),
        "padding": tuple((b.integer(0, 1), b.integer(0, 1)) for _ in range(spatial)),
    }


def _reduce_window(b: Builder) -> Tensor:
    x = b.value(*REAL, least=3, most=4)
    reduce = b.pick(("add", "max", "min", "mul"))
    return OPS["reduce_window"](x, reduce=reduce, **_windows(b, x))


def _extract_patches(b: Builder) -> Tensor:
    x = b.value(least=3, most=4)
    return OPS["extract_patches"](x, **_windows(b, x))


def _random(name: str, first: str, second: str) -> Draw:
    def draw(b: Builder) -> Tensor:
        seed = b.of(Type((), DTYPES[b.pick(("si32", "ui64", "si8"))]), "any")
        ends = {first: b.pick((0.0, -1.0)), second: b.pick((1.0, 2.5))} if b.chance(2) else {}
        return OPS[name](seed, shape=b.shape(), dtype=b.dtype("float"), **ends)

    return draw


def _random_bits(b: Builder) -> Tensor:
    seed = b.of(Type((2,), DTYPES[b.pick(("si32", "ui64", "si8"))]), "any")
    start = b.of(Type((2,), DTYPES["ui64"]), "any") if b.chance(2) else None
    dtype = DTYPES[b.pick(("ui4", "ui8", "ui16", "ui32", "ui64"))]
    return OPS["random_bits"](seed, start, shape=b.shape(), dtype=dtype)


PLACING: dict[str, Draw] = {
    **{name: _scatter(name) for name in ("scatter_add", "scatter_reduce")},
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast_to": _broadcast_to,
    "slice": _slice,
    "concat": _concat,
    "pad": _pad,
    "tile": _tile,
    "take": _take,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "sort": _sort,
    "top_k": _top_k,
    "searchsorted": _searchsorted,
    "segment_reduce": _segment_reduce,
    "reduce_window": _reduce_window,
    "extract_patches": _extract_patches,
    "rng_uniform": _random("rng_uniform", "low", "high"),
    "rng_normal": _random("rng_normal", "mean", "std"),
    "random_bits": _random_bits,
}
