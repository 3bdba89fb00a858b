"""exp, log, tanh, erf and the activations made of them, on vectors of f32 and on scalars.

Every function has as arguments the IR builder and a vector, and returns the vector of results; or a
scalar and its result, by the same operations. All are free of branches and of tables, so that LLVM
can vectorise a loop over scalars, and pass NaN on. The bounds below are checked by tests, in units
in the last place (ulp) against float64, on levels with a fused multiply-add and on those without:

| function | bound |
|---|---|
| exp | 1.02 ulp, 1.1 without fused multiply-add; 0 and inf beyond the range |
| exp_below | the same for −87.3 ≤ x ≤ 0; 0 below −87.7 |
| log | 1 ulp |
| tanh, erf | 1.5 ulp |
| sigmoid | 2.5 ulp where exp(−x) is finite, else 0 |
| silu, gelu, gelu_tanh, gelu_quick | 2⁻²³ times the size of x; NaN at −inf |

exp, log: range reduction to a power of two and a polynomial, without a table. The polynomials are
minimax fits of our own. On 400 Chebyshev points of the interval, a least squares fit of the
weighted error is repeated, each time with the weights multiplied by the error that was left
(Lawson's algorithm), in float64 with function values of 40 digits. Then coefficients are rounded to
f32 from the lowest power up, the higher ones being fitted again each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from gptrs.errors import ArgumentError
from gptrs.kernels.compiler.ir_builder import I32, Builder, Function, KernelText, like
from gptrs.kernels.compiler.isa import Isa

# ln 2 in two parts: the first has 16 bits, so that its product with an exponent is exact.
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.428606765330187e-06
# Added to a small float, it leaves the nearest integer in the low bits: 1.5 · 2²³.
ROUNDER = 12582912.0

# (exp r − 1 − r) / r² for |r| ≤ ln 2 / 2, error of exp 3.1e-9
_EXP = (0.49999994, 0.16666521, 0.041668255, 0.008368662, 0.0013821446)
# (log(1 + f) − f + f²/2) / f³ for √½ ≤ 1 + f ≤ √2, error of log 7.7e-10
_LOG = (
    *(0.33333313, -0.2500001, 0.20002072, -0.16667987, 0.14220354),
    *(-0.12406267, 0.11883646, -0.116699316, 0.06748794),
)
# (tanh x − x) / x³ in x² for |x| ≤ 0.625, error of tanh 4.5e-9
_TANH = (-0.3333328, 0.13331406, -0.053736515, 0.020628167, -0.005692296)
# (erf x − x) / x in x² for |x| ≤ 1, error of erf 1.4e-9
_ERF = (
    *(0.12837917, -0.37612626, 0.11283579, -0.026853347, 0.005187162, -0.0007997853),
    7.806903e-05,
)
# log(erfc x) / x for 1 ≤ x ≤ 3.95, error of erf 3.9e-10
_LOG_ERFC = (
    *(-1.1286938, -0.6349715, -0.10652782, 0.024007618, -0.0037563974),
    *(0.00035034565, -1.3939732e-05),
)

_SIGN, _ONE_EXPONENT = -(1 << 31), 127


def polynomial(f: Builder, x: Any, coefficients: Sequence[float]) -> Any:
    """Σ cᵢ·xⁱ by Horner's scheme."""
    result = like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = f.multiply_add(result, x, like(x, coefficient))
    return result


def bits(f: Builder, x: Any) -> Any:
    """The bits of f32 as i32."""
    vector = isinstance(x.type, ir.VectorType)
    return f.bitcast(x, ir.VectorType(I32, x.type.count) if vector else I32)


def power_of_two(f: Builder, n: Any, kind: Any) -> Any:
    """2ⁿ for integers −126 ≤ n ≤ 127, 0 for −127 and inf for 128."""
    biased = f.add(n, like(n, _ONE_EXPONENT))
    return f.bitcast(f.shl(biased, like(n, 23)), kind)


def _with_sign_of(f: Builder, value: Any, x: Any) -> Any:
    """``value``, which is not negative, with the sign of x (of −0 too)."""
    pattern = bits(f, x)
    sign = f.and_(pattern, like(pattern, _SIGN))
    return f.bitcast(f.or_(bits(f, value), sign), x.type)


def exp_tail(f: Builder, r: Any) -> Any:
    """eʳ − 1 for |r| ≤ ln 2 / 2."""
    return f.multiply_add(f.fmul(r, r), polynomial(f, r, _EXP), r)


def _shifted(f: Builder, x: Any) -> tuple[Any, Any]:
    """1.5 · 2²³ + n, with n in its low bits, and eʳ − 1, where eˣ = 2ⁿ·eʳ: n = ⌊x / ln 2⌉."""
    rounder = like(x, ROUNDER)
    shifted = f.multiply_add(x, like(x, math.log2(math.e)), rounder)
    whole = f.fsub(shifted, rounder)
    r = f.multiply_add(whole, like(x, -LN2_HIGH), x)
    r = f.multiply_add(whole, like(x, -LN2_LOW), r)
    return shifted, exp_tail(f, r)


def reduced(f: Builder, x: Any) -> tuple[Any, Any]:
    """n and eʳ − 1, where eˣ = 2ⁿ·eʳ."""
    shifted, tail = _shifted(f, x)
    return f.sub(bits(f, shifted), bits(f, like(x, ROUNDER))), tail


def _reduced(f: Builder, x: Any) -> tuple[Any, Any]:
    """1.5 · 2²³ + n and eʳ."""
    shifted, tail = _shifted(f, x)
    return shifted, f.fadd(tail, like(x, 1.0))


def exp(f: Builder, x: Any) -> Any:
    """eˣ."""
    # Beyond, the result is inf or 0. NaN compares false and stays.
    high, low = like(x, 89.0), like(x, -104.0)
    x = f.select(f.fcmp_ordered(">", x, high), high, x)
    x = f.select(f.fcmp_ordered("<", x, low), low, x)
    shifted, result = _reduced(f, x)
    n = f.sub(bits(f, shifted), bits(f, like(x, ROUNDER)))
    # In two halves, so that neither leaves the range of exponents; only the last product rounds.
    half = f.ashr(n, like(n, 1))
    result = f.fmul(result, power_of_two(f, half, x.type))
    return f.fmul(result, power_of_two(f, f.sub(n, half), x.type))


def exp_below(f: Builder, x: Any) -> Any:
    """eˣ for x ≤ 0, where it is 0 below −87.7: 126.5 ln 2."""
    low = like(x, -88.1)
    shifted, result = _reduced(f, f.select(f.fcmp_ordered("<", x, low), low, x))
    # The bits above n are shifted out: 2ⁿ, and 0 for n = −127.
    return f.fmul(result, power_of_two(f, bits(f, shifted), x.type))


def _exp_inside(f: Builder, x: Any) -> Any:
    """eˣ where that is a normal number up to 2¹²⁷·⁵; about 2⁻¹²⁶ below, inf above."""
    high, low = like(x, 88.8), like(x, -87.3)
    x = f.select(f.fcmp_ordered(">", x, high), high, x)
    x = f.select(f.fcmp_ordered("<", x, low), low, x)
    shifted, result = _reduced(f, x)
    return f.fmul(result, power_of_two(f, bits(f, shifted), x.type))


def split(f: Builder, x: Any, *, subnormal: bool = True) -> tuple[Any, Any]:
    """e and r of x = 2ᵉ·(1 + r) > 0 with √½ ≤ 1 + r < √2. Without ``subnormal``, x is none."""
    tiny = f.fcmp_ordered("<", x, like(x, 2.0**-126)) if subnormal else None
    pattern = bits(f, x if tiny is None else f.select(tiny, f.fmul(x, like(x, 2.0**23)), x))
    sqrt_half = like(pattern, 0x3F3504F3)
    exponent = f.ashr(f.sub(pattern, sqrt_half), like(pattern, 23))
    m = f.bitcast(f.sub(pattern, f.shl(exponent, like(pattern, 23))), x.type)
    e = f.sitofp(exponent, x.type)
    if tiny is not None:
        e = f.fadd(e, f.select(tiny, like(x, -23.0), like(x, 0.0)))
    return e, f.fsub(m, like(x, 1.0))


def log_tail(f: Builder, r: Any) -> Any:
    """log (1 + r) − (r − r²/2) for √½ ≤ 1 + r < √2."""
    return f.fmul(f.fmul(r, f.fmul(r, r)), polynomial(f, r, _LOG))


def log(f: Builder, x: Any) -> Any:
    """log x = e·ln 2 + log m with x = 2ᵉ·m and √½ ≤ m < √2; −inf at 0, NaN below."""
    e, r = split(f, x)
    square, tail = f.fmul(r, r), log_tail(f, r)
    tail = f.multiply_add(e, like(x, LN2_LOW), tail)
    tail = f.multiply_add(square, like(x, -0.5), tail)
    result = f.multiply_add(e, like(x, LN2_HIGH), f.fadd(r, tail))
    infinite = f.fcmp_ordered("==", x, like(x, math.inf))
    result = f.select(infinite, x, result)
    result = f.select(f.fcmp_ordered("==", x, like(x, 0.0)), like(x, -math.inf), result)
    return f.select(f.fcmp_unordered("<", x, like(x, 0.0)), like(x, math.nan), result)


def tanh(f: Builder, x: Any) -> Any:
    """tanh x: a polynomial up to |x| = 0.625, then 1 − 2 / (exp 2|x| + 1)."""
    size = f.magnitude(x)
    square = f.fmul(x, x)
    near = f.multiply_add(f.fmul(size, square), polynomial(f, square, _TANH), size)
    double = _exp_inside(f, f.fadd(size, size))
    rest = f.fdiv(like(x, 2.0), f.fadd(double, like(x, 1.0)))
    far = f.fsub(like(x, 1.0), rest)
    return _with_sign_of(f, f.select(f.fcmp_ordered("<", size, like(x, 0.625)), near, far), x)


def erf(f: Builder, x: Any) -> Any:
    """erf x: a polynomial up to |x| = 1, then 1 − exp(log erfc |x|)."""
    size = f.magnitude(x)
    near = f.multiply_add(size, polynomial(f, f.fmul(x, x), _ERF), size)
    # From 3.92 on, erf x is 1 in f32.
    bound = like(x, 3.95)
    inside = f.select(f.fcmp_ordered(">", size, bound), bound, size)
    rest = exp_below(f, f.fmul(inside, polynomial(f, inside, _LOG_ERFC)))
    far = f.fsub(like(x, 1.0), rest)
    return _with_sign_of(f, f.select(f.fcmp_ordered("<", size, like(x, 1.0)), near, far), x)


def sigmoid(f: Builder, x: Any) -> Any:
    """1 / (1 + exp(−x))."""
    one = like(x, 1.0)
    return f.fdiv(one, f.fadd(exp(f, f.fneg(x)), one))


def _gated(f: Builder, x: Any, gate: Any) -> Any:
    """x·sigmoid(−gate), to a share of the size of x."""
    return f.fdiv(x, f.fadd(_exp_inside(f, gate), like(x, 1.0)))


def silu(f: Builder, x: Any) -> Any:
    """x·sigmoid(x)."""
    return _gated(f, x, f.fneg(x))


def gelu(f: Builder, x: Any) -> Any:
    """½·x·(1 + erf(x / √2)) (Hendrycks and Gimpel 2016)."""
    half = f.fmul(x, like(x, 0.5))
    return f.multiply_add(half, erf(f, f.fmul(x, like(x, math.sqrt(0.5)))), half)


def gelu_tanh(f: Builder, x: Any) -> Any:
    """½·x·(1 + tanh u) = x·sigmoid(2u) with u = √(2/π)·(x + 0.044715·x³)."""
    scale = -2.0 * math.sqrt(2.0 / math.pi)
    inner = f.multiply_add(f.fmul(x, x), like(x, 0.044715 * scale), like(x, scale))
    return _gated(f, x, f.fmul(x, inner))


def gelu_quick(f: Builder, x: Any) -> Any:
    """x·sigmoid(1.702·x)."""
    return _gated(f, x, f.fmul(x, like(x, -1.702)))


def relu(f: Builder, x: Any) -> Any:
    """max(x, 0): +0 for −0."""
    zero = like(x, 0.0)
    return f.select(f.fcmp_ordered("<=", x, zero), zero, x)


def relu6(f: Builder, x: Any) -> Any:
    """min(max(x, 0), 6)."""
    positive, six = relu(f, x), like(x, 6.0)
    return f.select(f.fcmp_ordered(">", positive, six), six, positive)


ACTIVATIONS: dict[str, Callable[[Builder, Any], Any]] = {
    "sigmoid": sigmoid,
    "silu": silu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "gelu_quick": gelu_quick,
    "relu": relu,
    "relu6": relu6,
    "tanh": tanh,
}
"""The activations of the epilogues of products and convolutions."""

FUNCTIONS: dict[str, Callable[[Builder, Any], Any]] = {
    **ACTIVATIONS,
    "exp": exp,
    "log": log,
    "erf": erf,
}


def elementwise_kernel(isa: Isa, function: str) -> KernelText:
    """The kernel that applies one of `FUNCTIONS`. Its extent is the number of elements.

    Arguments: pointers source and destination (f32; they may be the same). Which elements share a
    vector changes no bit. Raises `ArgumentError` for an unknown function.
    """
    if function not in FUNCTIONS:
        raise ArgumentError(
            f"no elementwise kernel for {function!r}", fix=f"use one of {', '.join(FUNCTIONS)}"
        )
    module = ir.Module(f"elementwise {function} {isa.name}")
    name = f"elementwise_{function}"
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    arguments = f.argument_block(address, ("source", "destination"), ())
    lanes = ir.Constant(first.type, isa.lanes)
    full = f.sub(last, f.srem(f.sub(last, first), lanes))
    with f.loop(first, full, lanes) as loop:
        value = f.read(f.at(arguments["source"], loop.index))
        f.write(FUNCTIONS[function](f, value), f.at(arguments["destination"], loop.index))
    with f.if_then(f.icmp_signed("<", full, last)):
        mask = f.mask(f.sub(last, full))
        value = f.read(f.at(arguments["source"], full), mask=mask)
        result = FUNCTIONS[function](f, value)
        f.write(result, f.at(arguments["destination"], full), mask)
    f.ret_void()
    return KernelText(str(module), name)
