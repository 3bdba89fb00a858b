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
_EXP_OF_DOUBLE = tuple(2.0 ** (power + 1) * c for power, c in enumerate(_EXP))
# (log(1 + f) − f + f²/2) / f³ for √½ ≤ 1 + f ≤ √2, error of log 5.8e-9
_LOG = (
    *(0.33333331, -0.2500082, 0.20001242, -0.16623409, 0.1420158),
    *(-0.1315961, 0.12762213, -0.07636428),
)
# (tanh x − x) / x³ in x² for |x| ≤ 0.55, error of tanh 3.7e-8
_TANH = (-0.33332947, 0.13320729, -0.05267201, 0.016437879)
# log(erfc x) / x + 1 for 0 < x ≤ 3.95, error of erf 4.3e-9
_LOG_ERFC = (
    *(-0.12837917, -0.63661957, -0.1027763, 0.019147823, 0.00016950417),
    *(-0.0016756761, 0.00063736306, -0.00011886115, 9.387934e-06),
)

_ONE_EXPONENT, _MANTISSA = 127, 23


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
    return f.bitcast(f.shl(biased, like(n, _MANTISSA)), kind)


def exp_tail(f: Builder, r: Any) -> Any:
    """eʳ − 1 for |r| ≤ ln 2 / 2."""
    return f.multiply_add(f.fmul(r, r), polynomial(f, r, _EXP), r)


def reduced(f: Builder, x: Any) -> tuple[Any, Any]:
    """n and eʳ − 1, where eˣ = 2ⁿ·eʳ: n = ⌊x / ln 2⌉."""
    rounder = like(x, ROUNDER)
    shifted, r = _shifted(f, x, rounder)
    return f.sub(bits(f, shifted), bits(f, rounder)), exp_tail(f, r)


def _shifted(f: Builder, x: Any, rounder: Any) -> tuple[Any, Any]:
    """``rounder`` + n, with n in its low bits, and r."""
    shifted = f.multiply_add(x, like(x, math.log2(math.e)), rounder)
    whole = f.fsub(shifted, rounder)
    r = f.multiply_add(whole, like(x, -LN2_HIGH), x)
    return shifted, f.multiply_add(whole, like(x, -LN2_LOW), r)


def _parts(f: Builder, x: Any, rounder: Any) -> tuple[Any, Any]:
    """2ⁿ⁺ᵏ and eʳ − 1, for a ``rounder`` of `_rounder` (k)."""
    shifted, r = _shifted(f, x, rounder)
    return _power(f, shifted), exp_tail(f, r)


def _rounder(x: Any, more: int = 0) -> Any:
    """What leaves the exponent of 2ⁿ⁺ᵏ as floats have it in the low bits, k being ``more``."""
    return like(x, ROUNDER + _ONE_EXPONENT + more)


def _power(f: Builder, shifted: Any) -> Any:
    """The power of two whose exponent is in the low bits; the others are shifted out."""
    pattern = bits(f, shifted)
    return f.bitcast(f.shl(pattern, like(pattern, _MANTISSA)), shifted.type)


def _at_most(f: Builder, x: Any, bound: float, beyond: float | None = None) -> Any:
    """x up to ``bound``, else that or ``beyond``; NaN stays."""
    above = f.fcmp_ordered(">", x, like(x, bound))
    return f.select(above, like(x, bound if beyond is None else beyond), x)


def _at_least(f: Builder, x: Any, bound: float) -> Any:
    """x, or ``bound`` where that is more; NaN stays."""
    return f.select(f.fcmp_ordered("<", x, like(x, bound)), like(x, bound), x)


def exp(f: Builder, x: Any) -> Any:
    """eˣ = 2ⁿ·(eʳ − 1) + 2ⁿ."""
    x = _at_least(f, _at_most(f, x, 89.0), -104.0)  # beyond, the result is inf or 0
    # In two factors, so that neither leaves the range of exponents; only the last product rounds.
    pattern = bits(f, x)
    below = f.icmp_signed("<", pattern, like(pattern, 0))
    rounder = f.select(below, _rounder(x, 64), _rounder(x, -64))
    power, tail = _parts(f, x, rounder)
    apart = f.select(below, like(x, 2.0**-64), like(x, 2.0**64))
    return f.fmul(f.multiply_add(power, tail, power), apart)


def exp_below(f: Builder, x: Any) -> Any:
    """eˣ for x ≤ 0, where it is 0 below −87.7: 126.5 ln 2."""
    power, tail = _parts(f, _at_least(f, x, -88.1), _rounder(x))
    return f.multiply_add(power, tail, power)


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
    low = f.fmul(e, like(x, LN2_LOW))
    tail = f.multiply_add(f.fmul(r, r), polynomial(f, r, (-0.5, *_LOG)), low)
    result = f.multiply_add(e, like(x, LN2_HIGH), f.fadd(r, tail))
    infinite = f.fcmp_ordered("==", x, like(x, math.inf))
    result = f.select(infinite, x, result)
    result = f.select(f.fcmp_ordered("==", x, like(x, 0.0)), like(x, -math.inf), result)
    return f.select(f.fcmp_unordered("<", x, like(x, 0.0)), like(x, math.nan), result)


def _nearly_reduced(f: Builder, x: Any, factor: float) -> tuple[Any, Any]:
    """2ⁿ and r, where exp(x·factor) = 2ⁿ·exp(r·factor), where an error of r that is small beside x
    has no weight."""
    rounder = _rounder(x)
    shifted = f.multiply_add(x, like(x, factor * math.log2(math.e)), rounder)
    whole = f.fsub(shifted, rounder)
    return _power(f, shifted), f.multiply_add(whole, like(x, -math.log(2.0) / factor), x)


def tanh(f: Builder, x: Any) -> Any:
    """tanh x: a polynomial up to |x| = 0.55, then 1 − 1 / ((exp 2|x| + 1) / 2)."""
    size = f.magnitude(x)
    square = f.fmul(x, x)
    near = f.multiply_add(f.fmul(size, square), polynomial(f, square, _TANH), size)
    power, r = _nearly_reduced(f, _at_most(f, size, 9.1), 2.0)  # tanh 9.1 is 1 in f32
    # (exp 2r − 1) / 2 by the coefficients of exp
    tail = f.multiply_add(f.fmul(r, r), polynomial(f, r, _EXP_OF_DOUBLE), r)
    half, one = like(x, 0.5), like(x, 1.0)
    far = f.fdiv(one, f.multiply_add(power, tail, f.multiply_add(power, half, half)))
    far = f.fsub(one, far)
    return f.copy_sign(f.select(f.fcmp_ordered("<", size, like(x, 0.55)), near, far), x)


def erf(f: Builder, x: Any) -> Any:
    """erf x = 1 − exp(log erfc |x|), which is (1 − 2ⁿ) − 2ⁿ·(eʳ − 1)."""
    size = _at_most(f, f.magnitude(x), 3.95)  # from 3.92 on, erf x is 1 in f32
    # log erfc |x|, from −|x| on, and its rounding error
    product = f.fmul(size, polynomial(f, size, _LOG_ERFC))
    logarithm = f.fsub(product, size)
    low = f.fsub(product, f.fadd(logarithm, size))
    power, r = _nearly_reduced(f, logarithm, 1.0)
    tail = f.fadd(f.multiply_add(f.fmul(r, r), polynomial(f, r, _EXP), low), r)
    result = f.multiply_add(power, f.fneg(tail), f.fsub(like(x, 1.0), power))
    return f.copy_sign(result, x)


def sigmoid(f: Builder, x: Any) -> Any:
    """1 / (1 + exp(−x)), as ½ / (½ + ½·exp(−x))."""
    # The bounds are those of the result: 1 from some 17 up, and 0 where exp(−x) is infinite.
    x = _at_least(f, _at_most(f, f.fneg(x), 88.73, 89.6), -40.0)
    power, tail = _parts(f, x, _rounder(x, -1))
    half = like(x, 0.5)
    return f.fdiv(half, f.multiply_add(power, tail, f.fadd(power, half)))


def _gated(f: Builder, x: Any, gate: Any) -> Any:
    """x·sigmoid(−gate), to a share of the size of x."""
    # From 88.37 on 2ⁿ is infinite: so is its product with eʳ − 1 where that is positive.
    gate = _at_least(f, _at_most(f, gate, 88.37, 88.9), -87.3)
    power, tail = _parts(f, gate, _rounder(x))
    return f.fdiv(x, f.multiply_add(power, tail, f.fadd(power, like(x, 1.0))))


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
