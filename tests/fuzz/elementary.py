"""Strategies for operands and attributes of arithmetic ops, most of them valid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from gptrs.ir.dims import DimLike, Shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.elementwise import ANY, BITS, FLOATING, NUMERIC, ORDERED, REAL
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, DType, Kind, Type
from tests.fuzz.builder import Builder

Draw: TypeAlias = Callable[[Builder], Any]
"""Writes one call of an op and returns its result, or a tuple of them."""

_UNARY: dict[str, tuple[Kind, ...]] = {
    **dict.fromkeys(("neg",), NUMERIC),
    **dict.fromkeys(("abs", "sign"), REAL),
    **dict.fromkeys(("exp", "log", "tanh", "sqrt", "rsqrt", "reciprocal", "sin", "cos"), FLOATING),
    **dict.fromkeys(("is_finite", "is_nan", "is_inf"), FLOATING),
    **dict.fromkeys(("log1p", "log2", "log10", "expm1", "exp2", "tan", "sinh", "cosh"), FLOATING),
    **dict.fromkeys(("asin", "acos", "atan", "asinh", "acosh", "atanh"), FLOATING),
    **dict.fromkeys(("real", "imag", "conj"), ("complex",)),
    **dict.fromkeys(("trunc", "cbrt"), ("float",)),
    **dict.fromkeys(("erf", "floor", "ceil", "round"), ("float",)),
    "logical_not": ("bool",),
    "bit_not": BITS,
    "stop_gradient": ANY,
}
_BINARY: dict[str, tuple[Kind, ...]] = {
    **dict.fromkeys(("add", "sub", "mul"), NUMERIC),
    **dict.fromkeys(("floor_divide", "atan2", "hypot", "nextafter"), ("float",)),
    **dict.fromkeys(("maximum", "minimum"), REAL),
    **dict.fromkeys(("logical_and", "logical_or"), ("bool",)),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor", "gcd"), BITS),
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"), ORDERED),
    **dict.fromkeys(("equal", "not_equal"), ANY),
}
_DIVIDING: dict[str, tuple[Kind, ...]] = {"div": NUMERIC, "remainder": REAL}
_SHIFTING = ("shift_left", "shift_right")


def _unary(name: str, kinds: tuple[Kind, ...]) -> Draw:
    return lambda b: OPS[name](b.value(*kinds))


def _beside(b: Builder, x: Tensor) -> Any:
    """A second operand: a tensor of the same shape, one that broadcasts, or a number."""
    match b.integer(0, 3):
        case 0:
            return b.of(x.type)
        case 1:
            return b.number(x.dtype)
        case 2:
            return b.of(x.type.with_shape(_smaller(b, x.shape)))
        case _:
            return b.value(x.dtype.kind, where=lambda v: v.dtype is x.dtype)


def _smaller(b: Builder, shape: Shape) -> Shape:
    """A shape that broadcasts to ``shape``."""
    kept = shape[b.integer(0, len(shape)) :]
    return tuple(1 if b.chance(3) else extent for extent in kept)


def _binary(name: str, kinds: tuple[Kind, ...]) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*kinds)
        y = _beside(b, x)
        return OPS[name](y, x) if b.chance(4) else OPS[name](x, y)

    return draw


def _dividing(name: str, kinds: tuple[Kind, ...]) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*kinds)
        if not x.dtype.is_integer or b.chance(15):
            return OPS[name](x, _beside(b, x))
        if b.chance(2):
            return OPS[name](x, b.pick((2, 3, 1, 7)))
        return OPS[name](x, b.of(x.type.with_shape(_smaller(b, x.shape)), "nonzero"))

    return draw


def _pow(b: Builder) -> Tensor:
    x = b.value(*NUMERIC)
    if not x.dtype.is_integer:
        return OPS["pow"](x, _beside(b, x))
    return OPS["pow"](x, b.pick((2, 1, 3, 0)) if b.chance(2) else b.of(x.type, "0..3"))


def _shifting(name: str) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*BITS)
        count = b.pick((1, 0, 3, x.dtype.bits - 1, x.dtype.bits))
        high = min(9, x.dtype.limits[1])
        return OPS[name](x, b.of(x.type, f"0..{high}") if b.chance(3) else min(count, high))

    return draw


def _complex(b: Builder) -> Tensor:
    x = b.value("float", where=lambda v: v.dtype.bits >= 32)
    y = _beside(b, x)
    return OPS["complex"](y, x) if b.chance(4) else OPS["complex"](x, y)


def _select(b: Builder) -> Tensor:
    x = b.value()
    y = b.number(x.dtype) if b.chance(4) else b.of(x.type)
    pred = b.of(Type(_smaller(b, x.shape) if b.chance(3) else x.shape, DTYPES["i1"]))
    return OPS["select"](pred, y, x) if b.chance(2) else OPS["select"](pred, x, y)


def _clamp(b: Builder) -> Tensor:
    x = b.value(*REAL)
    bounds = [b.number(x.dtype) if b.chance(2) else b.of(x.type) for _ in range(2)]
    return OPS["clamp"](x, *bounds)


def _cast(b: Builder) -> Tensor:
    return OPS["cast"](b.value(), dtype=b.dtype() if b.chance(2) else b.pick([*DTYPES.values()]))


def _with_known_sign(x: Tensor) -> Tensor:
    """1 for NaN, as the sign of one that is computed is nobody's promise."""
    return OPS["select"](OPS["is_nan"](x), 1, x)


def _signbit(b: Builder) -> Tensor:
    return OPS["signbit"](_with_known_sign(b.value("float")))


def _copysign(b: Builder) -> Tensor:
    x = b.value("float")
    y = _beside(b, x)
    return OPS["copysign"](x, _with_known_sign(y) if isinstance(y, Tensor) else y)


def _bitcast(b: Builder) -> Tensor:
    """Of integers, as the sign of a NaN that is computed is nobody's promise."""
    x = b.value("int", "uint")
    same = [d for d in DTYPES.values() if d.bits == x.dtype.bits and not d.is_complex]
    return OPS["bitcast"](x, dtype=b.pick(same))


def _constant(b: Builder) -> Tensor:
    shape = tuple(b.pick((1, 2, 3, 0, 5)) for _ in range(b.integer(0, 2)))
    type = Type(shape, b.dtype())
    return OPS["constant"](value=b.array(type, b.pick((b.plot.values, ""))))


def _full(b: Builder) -> Tensor:
    dtype = b.dtype()
    return OPS["full"](shape=b.shape(), value=b.number(dtype), dtype=dtype)


def _iota(b: Builder) -> Tensor:
    shape = b.shape(1)
    dtype = b.dtype("int", "uint", "float")
    return OPS["iota"](shape=shape, dtype=dtype, axis=b.integer(0, len(shape) - 1))


def _axes(b: Builder, x: Tensor) -> Any:
    return None if b.chance(4) else b.some(range(x.ndim))


def _wider(b: Builder, x: Tensor) -> dict[str, DType]:
    """Dtypes to accumulate in and to return, of the kind of ``x``; mostly none."""
    kinds: tuple[Kind, ...] = ("int", "uint") if x.dtype.is_integer else ("float",)
    names = [n for n in ("accum_dtype", "out_dtype") if b.chance(8)]
    return {} if x.dtype.is_complex else {n: b.dtype(*kinds) for n in names}


def _total(name: str) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*NUMERIC, least=1)
        keep = b.chance(3)
        return OPS[name](x, axes=_axes(b, x), keepdims=keep, **_wider(b, x))

    return draw


def _extreme(name: str, kinds: tuple[Kind, ...]) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*kinds, least=1)
        return OPS[name](x, axes=_axes(b, x), keepdims=b.chance(3))

    return draw


def _position(name: str) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*REAL, least=1)
        return OPS[name](x, axis=b.integer(0, x.ndim - 1), keepdims=b.chance(3))

    return draw


def _cumulative(name: str, kinds: tuple[Kind, ...]) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*kinds, least=1)
        return OPS[name](x, axis=b.integer(-x.ndim, x.ndim - 1))

    return draw


def _dot_general(b: Builder) -> Tensor:
    x = b.value(*NUMERIC, least=1, most=4)
    axes = b.permuted(x.ndim)
    contracted = b.integer(1, min(2, x.ndim))
    batch = b.integer(0, min(2, x.ndim - contracted))
    contract_lhs, batch_lhs = axes[:contracted], axes[contracted : contracted + batch]
    shared = [x.shape[axis] for axis in (*batch_lhs, *contract_lhs)]
    extents: list[DimLike] = [*shared, *b.shape(0, 2)]
    order = b.permuted(len(extents))
    y = b.of(x.type.with_shape(extents[n] for n in order))
    places = [order.index(n) for n in range(len(shared))]
    return OPS["dot_general"](
        x,
        y,
        batch_lhs=batch_lhs,
        batch_rhs=tuple(places[:batch]),
        contract_lhs=contract_lhs,
        contract_rhs=tuple(places[batch:]),
        **_wider(b, x),
    )


COMPUTING: dict[str, Draw] = {
    **{name: _unary(name, kinds) for name, kinds in _UNARY.items()},
    **{name: _binary(name, kinds) for name, kinds in _BINARY.items()},
    **{name: _dividing(name, kinds) for name, kinds in _DIVIDING.items()},
    **{name: _shifting(name) for name in _SHIFTING},
    **{name: _total(name) for name in ("reduce_sum", "reduce_prod")},
    **{name: _extreme(name, REAL) for name in ("reduce_max", "reduce_min")},
    **{name: _extreme(name, ("bool",)) for name in ("reduce_any", "reduce_all")},
    **{name: _position(name) for name in ("argmax", "argmin")},
    "pow": _pow,
    "complex": _complex,
    "select": _select,
    "clamp": _clamp,
    "cast": _cast,
    "bitcast": _bitcast,
    "signbit": _signbit,
    "copysign": _copysign,
    "constant": _constant,
    "full": _full,
    "iota": _iota,
    **{name: _cumulative(name, NUMERIC) for name in ("cumsum", "cumprod")},
    **{name: _cumulative(name, REAL) for name in ("cummax", "cummin")},
    "dot_general": _dot_general,
}
