"""Elementwise operators: arithmetic, comparisons, logic, elementary functions, casts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import Operands, aten, enter_all, ptir

Number = Tensor | float


def _scaled(
    function: Callable[[Any, Any], Tensor], *, is_reversed: bool = False
) -> Callable[..., Tensor]:
    """``function(x, alpha · y)``, of exchanged operands where it is reversed."""

    def call(x: Number, y: Number, alpha: Any = 1) -> Tensor:
        x, y = (y, x) if is_reversed else (x, y)
        return function(x, y if alpha == 1 else y * alpha)

    return call


def _to_bool(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``function`` of what is not 0."""

    def call(*operands: Any) -> Tensor:
        return function(*(x if _is_bool(x) else ptir.not_equal(x, 0) for x in operands))

    return call


def _is_bool(x: Any) -> bool:
    return isinstance(x, bool) or (isinstance(x, Tensor) and x.dtype.is_bool)


def _bitwise(on_bits: Callable[..., Tensor], on_bools: Callable[..., Tensor]) -> Any:
    def call(*operands: Any) -> Tensor:
        return (on_bools if all(map(_is_bool, operands)) else on_bits)(*operands)

    return call


def _of_floats(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """``function``; integers are as they are."""

    def call(x: Tensor) -> Tensor:
        return function(x) if x.dtype.is_float else x

    return call


def _sign(x: Tensor) -> Tensor:
    return x if x.dtype.is_bool else ptir.sgn(x)


def _same(x: Tensor) -> Tensor:
    return x


def _pow(x: Number, y: Number) -> Tensor:
    """Powers. Integers to negative ones are 0, but those of 1 and -1."""
    if isinstance(x, float) or not (isinstance(y, Tensor) and y.dtype.kind == "int"):
        return ptir.pow(x, y)
    is_unit = ptir.logical_or(ptir.equal(x, 1), ptir.equal(x, -1))
    inverse = ptir.where(is_unit, ptir.pow(x, y & 1), 0)
    return ptir.where(y < 0, inverse, ptir.pow(x, ptir.maximum(y, 0)))


def _mul(x: Number, y: Number) -> Tensor:
    return ptir.logical_and(x, y) if _is_bool(x) and _is_bool(y) else ptir.mul(x, y)


def _add(x: Number, y: Number) -> Tensor:
    return ptir.logical_or(x, y) if _is_bool(x) and _is_bool(y) else ptir.add(x, y)


enter_all(
    {
        "add.Tensor add.Scalar": _scaled(_add),
        "sub.Tensor sub.Scalar": _scaled(ptir.sub),
        "rsub.Tensor rsub.Scalar": _scaled(ptir.sub, is_reversed=True),
        "mul.Tensor mul.Scalar": _mul,
        "maximum": _bitwise(ptir.maximum, ptir.logical_or),
        "minimum": _bitwise(ptir.minimum, ptir.logical_and),
        "fmax": ptir.fmax,
        "fmin": ptir.fmin,
        "remainder.Tensor remainder.Scalar remainder.Scalar_Tensor": ptir.remainder,
        "fmod.Tensor fmod.Scalar": ptir.fmod,
        "pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar": _pow,
        "bitwise_and.Tensor bitwise_and.Scalar bitwise_and.Scalar_Tensor": _bitwise(
            ptir.bit_and, ptir.logical_and
        ),
        "bitwise_or.Tensor bitwise_or.Scalar bitwise_or.Scalar_Tensor": _bitwise(
            ptir.bit_or, ptir.logical_or
        ),
        "bitwise_xor.Tensor bitwise_xor.Scalar bitwise_xor.Scalar_Tensor": _bitwise(
            ptir.bit_xor, ptir.not_equal
        ),
        "gcd": ptir.gcd,
        "lcm": ptir.lcm,
        "hypot": ptir.hypot,
        "copysign.Tensor copysign.Scalar": ptir.copysign,
        "nextafter": ptir.nextafter,
        "heaviside": ptir.heaviside,
        "lerp.Scalar lerp.Tensor": ptir.lerp,
        "eq.Tensor eq.Scalar": ptir.equal,
        "ne.Tensor ne.Scalar": ptir.not_equal,
        "lt.Tensor lt.Scalar": ptir.less,
        "le.Tensor le.Scalar": ptir.less_equal,
        "gt.Tensor gt.Scalar": ptir.greater,
        "ge.Tensor ge.Scalar": ptir.greater_equal,
    },
    Operands.PROMOTED,
)
enter_all(
    {
        "bitwise_not": _bitwise(ptir.bit_not, ptir.logical_not),
        "logical_and": _to_bool(ptir.logical_and),
        "logical_or": _to_bool(ptir.logical_or),
        "logical_xor": _to_bool(ptir.not_equal),
        "logical_not": _to_bool(ptir.logical_not),
        "isnan": ptir.isnan,
        "isinf": ptir.isinf,
        "isfinite prims.isfinite": ptir.isfinite,
        "isposinf": ptir.isposinf,
        "isneginf": ptir.isneginf,
        "signbit": ptir.signbit,
        "abs": ptir.abs,
        "neg": ptir.neg,
        "ceil": _of_floats(ptir.ceil),
        "floor": _of_floats(ptir.floor),
        "trunc": _of_floats(ptir.trunc),
        "round": _of_floats(ptir.round),
        "round.decimals": ptir.around,
        "sign sgn": _sign,
        "relu": ptir.relu,
        "square": ptir.square,
        "conj _conj _conj_physical": ptir.conj,
        "alias detach lift_fresh lift_fresh_copy clone": _same,
        "bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar": ptir.left_shift,
        "bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar": ptir.right_shift,
    }
)
enter_all(
    {
        name: getattr(ptir, name)
        for name in (
            *("acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2", "cos", "cosh", "sin"),
            *("sinh", "tan", "tanh", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2"),
            *("sqrt", "rsqrt", "reciprocal", "sigmoid", "erf", "erfc", "erfinv", "lgamma"),
            *("digamma", "logaddexp", "logaddexp2", "igamma", "igammac", "i0", "sinc"),
        )
    },
    Operands.TO_FLOAT,
)


def _spherical_bessel_j0(x: Tensor) -> Tensor:
    """sin x / x, 1 at 0 and 0 at the infinities."""
    found = ptir.sin(x) / ptir.where(x == 0, 1, x)
    return ptir.where(ptir.isinf(x), 0, ptir.where(x == 0, 1, found))


enter_all(
    {
        "div.Tensor div.Scalar": ptir.div,
        "xlogy.Tensor xlogy.Scalar_Self xlogy.Scalar_Other": ptir.xlogy,
        "special_entr": ptir.entr,
        "special_i0e": ptir.i0e,
        "special_modified_bessel_i0": ptir.i0,
        "special_spherical_bessel_j0": _spherical_bessel_j0,
        "special_i1 special_modified_bessel_i1": ptir.modified_bessel_i1,
        "special_i1e": ptir.i1e,
        **{
            f"special_{name}": getattr(ptir, name)
            for name in (
                *("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"),
                *("modified_bessel_k0", "modified_bessel_k1"),
                *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
            )
        },
        "special_erfcx": ptir.erfcx,
        "special_ndtri": ptir.ndtri,
        "special_log_ndtr": ptir.log_ndtr,
        "special_xlog1py special_xlog1py.self_scalar special_xlog1py.other_scalar": ptir.xlog1py,
        "special_zeta special_zeta.self_scalar special_zeta.other_scalar": ptir.zeta,
        "logit": ptir.logit,
    },
    Operands.TO_FLOAT,
)


@aten("div.Tensor_mode", "div.Scalar_mode", operands=Operands.PROMOTED)
def div_mode(x: Number, y: Number, rounding_mode: str | None = None) -> Tensor:
    """Division rounded to integers: down, towards 0, or not at all."""
    if rounding_mode is None:  # of integers, too, a fraction
        return ptir.true_divide(x, y)
    if rounding_mode == "floor":
        return ptir.floor_divide(x, y)
    if any(isinstance(v, Tensor) and not v.dtype.is_integer for v in (x, y)):
        return ptir.trunc(ptir.div(x, y))
    return ptir.floor_divide(x - ptir.fmod(x, y), y)


@aten("floor_divide", "floor_divide.Scalar", operands=Operands.PROMOTED)
def floor_divide(x: Number, y: Number) -> Tensor:
    return ptir.floor_divide(x, y)


@aten("addcmul", operands=Operands.PROMOTED)
def addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    return x + (a * b if value == 1 else a * b * value)


@aten("fill.Scalar", "fill.Tensor")
def fill(x: Tensor, value: Any) -> Tensor:
    return ptir.broadcast_to(ptir.asarray(value, dtype=x.dtype), shape=x.shape)


@aten("where.self", operands=Operands.CHOSEN)
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ptir.where(condition, x, y)


@aten("clamp", "clamp.Tensor", operands=Operands.PROMOTED)
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """``x`` within the bounds; where they cross, the upper one."""
    if min is not None:
        x = ptir.maximum(x, min)
    return x if max is None else ptir.minimum(x, max)


@aten("clamp_min", "clamp_min.Tensor", operands=Operands.PROMOTED)
def clamp_min(x: Tensor, min: Any) -> Tensor:
    return ptir.maximum(x, min)


@aten("clamp_max", "clamp_max.Tensor", operands=Operands.PROMOTED)
def clamp_max(x: Tensor, max: Any) -> Tensor:
    return ptir.minimum(x, max)


@aten("nan_to_num")
def nan_to_num(
    x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    if not x.dtype.is_float:
        return x
    return ptir.nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf)


@aten("polygamma")
def polygamma(n: int, x: Tensor) -> Tensor:
    return ptir.polygamma(n, x)


@aten("mvlgamma")
def mvlgamma(x: Tensor, p: int) -> Tensor:
    return ptir.multigammaln(x, p)


@aten("angle", operands=Operands.TO_FLOAT)
def angle(x: Tensor) -> Tensor:
    return (
        ptir.angle(x)
        if x.dtype.is_complex
        else ptir.where(ptir.isnan(x), x, ptir.where(x < 0, math.pi, 0.0))
    )


@aten("deg2rad", operands=Operands.TO_FLOAT)
def deg2rad(x: Tensor) -> Tensor:
    return x * (math.pi / 180)


@aten("rad2deg", operands=Operands.TO_FLOAT)
def rad2deg(x: Tensor) -> Tensor:
    return x * (180 / math.pi)


@aten("frexp.Tensor")
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    return ptir.frexp(x)


@aten("ldexp.Tensor", operands=Operands.TO_FLOAT)
def ldexp(x: Tensor, other: Tensor) -> Tensor:
    return x * ptir.exp2(other)


@aten("polar")
def polar(magnitude: Tensor, angle: Tensor) -> Tensor:
    return ptir.polar(magnitude, angle)


@aten("_to_copy", "prims.convert_element_type")
def to_copy(x: Tensor, dtype: Any = None, non_blocking: bool = False) -> Tensor:
    """A cast: of complex numbers to real ones, their real parts."""
    if dtype is None or dtype is x.dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex:
        x = ptir.real(x)
    return ptir.not_equal(x, 0) if dtype.is_bool else ptir.cast(x, dtype=dtype)
