"""Rows of the elementwise ops."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gptrs.ir.types import DTYPES, DType
from tests.cases.sample import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    LIBM,
    NUMERIC,
    REAL,
    Case,
    Sample,
    sample,
)
from tests.support.lazy_torch import torch, torch_op


def _roots(x: torch.Tensor, power: float) -> torch.Tensor:
    """The power of each element; torch takes √x for one power of all."""
    return torch.pow(x, torch.full_like(x, power))


def tensors(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn`` where torch takes tensors only: numbers become tensors of the other's dtype."""

    def call(*operands: Any, **attrs: Any) -> Any:
        dtype = next(o.dtype for o in operands if isinstance(o, torch.Tensor))
        made = (
            o if isinstance(o, torch.Tensor) else torch.tensor(o, dtype=dtype) for o in operands
        )
        return fn(*made, **attrs)

    return call


def _gcd(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """torch's overflows at the least integer."""
    x, y = torch.broadcast_tensors(x, y)
    found = [
        math.gcd(*pair) for pair in zip(x.flatten().tolist(), y.flatten().tolist(), strict=True)
    ]
    wrapped = [n - 2**64 if n >= 2**63 else n for n in found]
    return torch.tensor(wrapped, dtype=x.dtype).reshape(x.shape)


def unary(values: str) -> tuple[Sample, ...]:
    shapes = ("S,7", "17", "", "0,3", "1,S,1")
    return tuple(sample(f"T[{shape}] {values}") for shape in shapes)


def binary(first: str, second: str, *literals: tuple[Any, Any]) -> tuple[Sample, ...]:
    """Pairs of shapes, with broadcasting, and literals on either side."""
    pairs = [
        ("S,7", "S,7"),
        ("17", "17"),
        ("", ""),
        ("S,1", "7"),
        ("2,1,3", "5,1"),
        ("1", "0"),
        ("0,3", "1,3"),
        ("", "S,2"),
    ]
    made = [sample(f"T[{a}] {first}", f"T[{b}] {second}") for a, b in pairs]
    return (*made, *(sample(*pair) for pair in literals))


def row(
    op: str,
    torch: Callable[..., Any],
    samples: tuple[Sample, ...],
    dtypes: tuple[str, ...] = ("f32",),
    ulps: int = 0,
) -> Case:
    return Case(op, samples, torch, dtypes, ulps, why=LIBM if ulps else "")


def _sign(x: torch.Tensor) -> torch.Tensor:
    """torch gives 0 for NaN, PTIR gives NaN."""
    return torch.where(torch.isnan(x), x, torch.sign(x))


def _div(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.dtype != torch.int64:
        return x / y
    # The least 64-bit integer by -1 traps in torch; in PTIR it wraps, as the negation does.
    quotient = torch.div(x, torch.where(y == -1, 1, y), rounding_mode="floor")
    return torch.where(y == -1, -x, quotient)


def _remainder(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.dtype != torch.int64:
        return torch.remainder(x, y)
    return torch.where(y == -1, 0, torch.remainder(x, torch.where(y == -1, 1, y)))


def _clamp(x: torch.Tensor, lo: Any, hi: Any) -> torch.Tensor:
    return torch.minimum(torch.maximum(x, lo), hi)


def _cast(x: torch.Tensor, *, dtype: str) -> torch.Tensor:
    target = DTYPES[dtype]
    if target.is_bool:
        return x != 0
    if target.is_integer and x.is_floating_point():
        # Exact up to 32 bits; 64-bit integers have a test of their own.
        low, high = target.limits
        return x.double().nan_to_num(0.0, math.inf, -math.inf).clamp(low, high).trunc().long()
    if target.is_integer or target.bits > 16:
        return x.to(getattr(torch, target.numpy.name, torch.int64) if target.bits > 4 else x.dtype)
    name = {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2"}
    if dtype == "fp8_e4m3":
        # Without infinities, what is too large becomes NaN; torch saturates at 448.
        x = torch.where(x.double().abs() > 464, math.nan, x)
    return x.to(getattr(torch, name.get(dtype, target.numpy.name))).float()


def _bit_patterns(name: str) -> Case:
    """A row of the bits of elements of the dtype ``name`` as those of others."""
    source = DTYPES[name]
    same = [d for d in DTYPES.values() if d.bits == source.bits and not d.is_complex]
    values = "" if source.compute is not source else "any"  # torch's narrow NaNs have other bits

    def bitcast(x: torch.Tensor, *, dtype: str) -> torch.Tensor:
        bits = x.to(_of_torch(source)).view(_of_torch(DTYPES[dtype]))
        return bits.float() if DTYPES[dtype].is_float and source.bits < 32 else bits

    samples = tuple(
        sample(f"{name}[{shape}] {values}", dtype=target.name)
        for target in same
        for shape in ("S,17", "", "0,2")
    )
    return Case("bitcast", samples, bitcast)


def _of_torch(dtype: DType) -> torch.dtype:
    return getattr(torch, dtype.numpy.name)


_ANY = ("si8", "ui8", "si32", "si64", "si4", "f32", "f64", "f16", "bf16", "fp8_e5m2", "i1")

_BIT_WIDTHS = ("f32", "si32", "bf16", "f16", "ui16", "f64", "si64", "fp8_e4m3", "si8")

UNARY = (
    row("neg", torch_op("neg"), unary("any"), NUMERIC),
    row("abs", torch_op("abs"), unary("any"), REAL),
    row("exp", torch_op("exp"), unary("any"), (*FLOATS, *COMPLEX), 4),
    row("log", torch_op("log"), unary("any"), (*FLOATS, *COMPLEX), 4),
    row("tanh", torch_op("tanh"), unary("any"), (*FLOATS, *COMPLEX), 4),
    row("erf", torch_op("erf"), unary("any"), FLOATS, 4),
    row("sqrt", torch_op("sqrt"), unary("any"), (*FLOATS, *COMPLEX), 4),
    row("rsqrt", torch_op("rsqrt"), unary("any"), (*FLOATS, *COMPLEX), 4),
    row("reciprocal", torch_op("reciprocal"), unary("any"), (*FLOATS, *COMPLEX), 4),
    row("sin", torch_op("sin"), unary("any"), (*FLOATS, *COMPLEX), 4),
    row("cos", torch_op("cos"), unary("any"), (*FLOATS, *COMPLEX), 4),
    row("floor", torch_op("floor"), unary("any"), FLOATS),
    row("ceil", torch_op("ceil"), unary("any"), FLOATS),
    row("round", torch_op("round"), unary("any"), FLOATS),
    row("sign", _sign, unary("any"), REAL),
    row("is_finite", torch_op("isfinite"), unary("any"), (*FLOATS, *COMPLEX)),
    row("logical_not", torch_op("logical_not"), unary("any"), ("i1",)),
    row("bit_not", torch_op("bitwise_not"), unary("any"), (*INTEGERS, "ui64")),
    row("stop_gradient", lambda x: x, unary("any"), (*NUMERIC, "i1")),
    Case(
        "cast",
        tuple(
            sample(f"T[{shape}] any", dtype=dtype)
            for dtype in ("f32", "f64", "bf16", "f16", "fp8_e4m3", "fp8_e5m2")
            for shape in ("S,17", "", "0,2")
        )
        + tuple(
            sample("T[S,17] any", dtype=dtype)
            for dtype in ("i1", "si4", "ui4", "si8", "ui8", "si16", "si32", "ui32")
        )
        + (sample("T[17] -300..300", dtype="si8"), sample("T[17] -300..300", dtype="ui4")),
        _cast,
        _ANY,
    ),
    *map(_bit_patterns, _BIT_WIDTHS),
)

_INTS = (("T[S,3] any", 2), (3, "T[5] any"), ("T[] any", 1), (0, "T[0] any"))
_BELOW = (("T[S,5] any", 3), (2, "T[5] any"), ("T[] any", 1))
_POWERS = (("T[S,5] any", 3), (2, "T[5] 0..7"), ("T[] any", 1))
_DIVIDED = (("T[S,5] any", 3), (5, "T[5] nonzero"), ("T[] any", 1))
REALS = (("T[S,5] any", 0.1), (-2.5, "T[5] any"), (math.inf, "T[5] any"), ("T[] any", -0.0))
COMPLEXES = (("T[S,5]", 2 - 1j), (0.5, "T[5]"), ("T[]", 3))

_ADD = binary("any", "any", *_INTS)
_COMPLEX = binary("", "nonzero", *COMPLEXES)
_ARITHMETIC = (*REAL, "ui64")


def _logical(op: str, torch: Callable[..., Any]) -> Case:
    return row(op, tensors(torch), binary("", "", ("i1[S,5]", True), (False, "i1[3]")), ("i1",))


def _bits(op: str, torch: Callable[..., Any]) -> Case:
    return row(op, torch, binary("any", "any", *_INTS), (*INTEGERS, "ui64"))


def _compare(op: str, torch: Callable[..., Any], dtypes: tuple[str, ...]) -> tuple[Case, ...]:
    torch = tensors(torch)
    return (
        row(op, torch, binary("any", "any", *_INTS), dtypes),
        row(op, torch, binary("", "", ("i1[S,5]", True)), ("i1",)),
        row(op, torch, (sample("T[S,7] any", 0.5), sample(math.nan, "T[3] any")), FLOATS),
    )


BINARY = (
    row("add", torch_op("add"), _ADD, _ARITHMETIC),
    row("add", torch_op("add"), tuple(sample(*pair) for pair in REALS), FLOATS),
    row("add", torch_op("add"), _COMPLEX, COMPLEX),
    row("sub", tensors(torch_op("sub")), _ADD, _ARITHMETIC),
    row("sub", tensors(torch_op("sub")), tuple(sample(*pair) for pair in REALS), FLOATS),
    row("sub", tensors(torch_op("sub")), _COMPLEX, COMPLEX),
    row("mul", torch_op("mul"), _ADD, _ARITHMETIC),
    row("mul", torch_op("mul"), tuple(sample(*pair) for pair in REALS), FLOATS),
    row("mul", torch_op("mul"), _COMPLEX, COMPLEX, 4),
    row("div", tensors(_div), binary("any", "nonzero", *_DIVIDED), REAL),
    row("div", tensors(_div), binary("any", "any", *REALS), FLOATS),
    row("div", tensors(_div), _COMPLEX, COMPLEX, 4),
    row(
        "floor_divide",
        tensors(torch_op("floor_divide")),
        binary("any", "any", *REALS),
        FLOATS,
    ),
    row("remainder", tensors(_remainder), binary("any", "nonzero", *_DIVIDED), INTEGERS),
    # torch gives NaN where the quotient is beyond its range: the largest by the least.
    row("remainder", tensors(_remainder), binary("special", "special"), FLOATS),
    row("remainder", tensors(_remainder), (sample("T[S,9]", 0.7), sample(-5, "T[9]")), FLOATS),
    row("pow", tensors(torch_op("pow")), binary("any", "0..3", *_POWERS), INTEGERS),
    row("pow", tensors(torch_op("pow")), binary("any", "any", *_BELOW, *REALS), FLOATS, 4),
    row("pow", _roots, (sample("T[S,9] special", 0.5), sample("T[S,1] special", 0.5)), FLOATS, 4),
    row("pow", tensors(torch_op("pow")), _COMPLEX, COMPLEX, 16),
    row("maximum", tensors(torch_op("maximum")), binary("any", "any", *_BELOW), REAL),
    row("minimum", tensors(torch_op("minimum")), binary("any", "any", *_BELOW), REAL),
    row(
        "minimum",
        tensors(torch_op("minimum")),
        tuple(sample(*pair) for pair in REALS),
        FLOATS,
    ),
    _logical("logical_and", torch_op("logical_and")),
    _logical("logical_or", torch_op("logical_or")),
    _bits("bit_and", torch_op("bitwise_and")),
    _bits("bit_or", torch_op("bitwise_or")),
    _bits("bit_xor", torch_op("bitwise_xor")),
    row("gcd", tensors(_gcd), binary("any", "any", (6, "T[9] any")), INTEGERS),
    row("shift_left", lambda x, y: x << y, binary("any", "0..7", *_POWERS), (*INTEGERS, "ui64")),
    row("shift_right", lambda x, y: x >> y, binary("any", "0..7", *_POWERS), INTEGERS),
    row("shift_left", lambda x, y: x << y, (sample("T[S,9] any", "T[9] 0..50"),), ("si8", "si32")),
    row("shift_right", lambda x, y: x >> y, (sample("T[S,9] any", "T[9] 0..50"),), ("si8", "ui16")),
    *_compare("less", torch_op("lt"), REAL),
    *_compare("less_equal", torch_op("le"), REAL),
    *_compare("greater", torch_op("gt"), REAL),
    *_compare("greater_equal", torch_op("ge"), REAL),
    *_compare("equal", torch_op("eq"), (*_ARITHMETIC, *COMPLEX)),
    *_compare("not_equal", torch_op("ne"), (*_ARITHMETIC, *COMPLEX)),
)

CHOOSE = (
    row(
        "select",
        torch_op("where"),
        (
            sample("i1[S,7]", "T[S,7] any", "T[S,7] any"),
            sample("i1[S,1]", "T[7] any", "T[2,1,1] any"),
            sample("i1[]", "T[S] any", "T[] any"),
            sample("i1[4]", "T[0,1] any", 1),
            sample("i1[S,4]", 0, "T[4] any"),
        ),
        (*NUMERIC, "ui64"),
    ),
    row(
        "select",
        torch_op("where"),
        (sample("i1[S]", "i1[S]", True), sample("i1[3]", False, "i1[]")),
    ),
    row("select", torch_op("where"), (sample("i1[S,5]", -math.inf, "T[5]"),), FLOATS),
    row(
        "clamp",
        tensors(_clamp),
        (
            sample("T[S,7] any", "T[S,7] any", "T[S,7] any"),
            sample("T[S,7] any", 1, 3),
            sample("T[17] any", "T[] any", 3),
            sample("T[] any", 0, "T[2,1]"),
            sample("T[0,3] any", 2, 1),
        ),
        REAL,
    ),
    row("clamp", tensors(_clamp), (sample("T[S,7] any", -0.5, math.inf),), FLOATS),
)

ELEMENTWISE = (*UNARY, *BINARY, *CHOOSE)
