"""asin, acos, atan and atan2 on vectors of f32 or f64 and on scalars.

As in `gptrs.kernels.vector_math`: free of branches and of tables, NaN passes.

    asin x = x + x·z·P(z)               z = x²            for |x| ≤ ½
           = π/2 − 2·asin √z            z = (1 − x) / 2   for x > ½
    atan (y / x) = atan q               q = y / x               for y ≤ tan(π/8)·x
                 = π/4 + atan q         q = (y − x) / (y + x)
                 = π/2 + atan q         q = −x / y              for x ≤ tan(π/8)·y

Bounds, checked by tests, in units in the last place of f32 and f64: asin and acos 1, atan
and atan2 2.5. Polynomials and their coefficients: as in `gptrs.kernels.vector_math64`.
"""

from __future__ import annotations

import math

from gptrs.kernels.compiler.ir_builder import like
from gptrs.kernels.compiler.numbers import Number, formula

# By whether they are for f32. (asin x − x) / x³ in x² for x² ≤ ¼, errors of asin 2⁻²⁷·⁶ and
# 2⁻⁵⁸·⁷
_ASIN = {
    True: (0.16666752, 0.074953064, 0.045469772, 0.024180774, 0.042166412),
    False: (
        *(0.1666666666666676, 0.07499999999970809, 0.044642857174700866, 0.030381942699330648),
        *(0.02237221516227435, 0.017351613830232395, 0.013980700831895359, 0.011400918858877987),
        *(0.010762463488980951, 0.0037998058322109467, 0.021415502289853817),
        *(-0.02049568162695186, 0.03225934004186431),
    ),
}
# (atan x − x) / x³ in x² for |x| ≤ tan(π/8), errors of atan 2⁻³⁰·⁴ and 2⁻⁵⁹·⁴
_ATAN = {
    True: (-0.33333316, 0.19998527, -0.14244345, 0.10598728, -0.060887355),
    False: (
        *(-0.3333333333333319, 0.19999999999952184, -0.1428571428005415, 0.11111110776300046),
        *(-0.09090897550813501, 0.07692056516567658, -0.06663061803590398),
        *(0.05847580349777182, -0.05037905322778091, 0.03802881845313923, -0.01786785921185907),
    ),
}
# π in two parts of f32 and of f64.
_PI = {
    True: (3.1415927410125732, -8.742277657347586e-08),
    False: (math.pi, 1.2246467991473532e-16),
}
_ENDS = 2.0**1000, 2.0**-900, 2.0**54
_TAN_PI_8 = math.sqrt(2.0) - 1.0


def _series(z: Number, coefficients: dict[bool, tuple[float, ...]]) -> Number:
    """z·P(z)."""
    return z * z.polynomial(coefficients[z.is_f32])


def _upper(x: Number) -> Number:
    """x with the last half of its bits 0."""
    dropped = (1 << (12 if x.is_f32 else 32)) - 1
    return x.of_bits(x.f.and_(x.bits, like(x.bits, ~dropped)))


def _beyond_half(size: Number) -> tuple[Number, Number, Number]:
    """For 1/2 < ``size``: √z in two parts, and asin √z less these."""
    z = (1.0 - size) * 0.5
    root = z.root()
    high = _upper(root)
    low = (z - high * high) / (root + high)
    low = (root > 0.0).where(low, 0.0)
    return high, low, root * _series(z, _ASIN)


@formula
def asin(x: Number) -> Number:
    """The angle in [−π/2, π/2] whose sine is x; NaN beyond 1."""
    size, pi = abs(x), _PI[x.is_f32]
    near = size + size * _series(size * size, _ASIN)
    high, low, rest = _beyond_half(size)
    # π/2 − 2·(high + low + rest), the greatest first
    far = (pi[0] / 4 - (high + high)) - ((rest + rest) + ((low + low) - pi[1] / 2)) + pi[0] / 4
    return (size <= 0.5).where(near, far).with_sign_of(x)


@formula
def acos(x: Number) -> Number:
    """The angle in [0, π] whose cosine is x; NaN beyond 1."""
    size, pi = abs(x), _PI[x.is_f32]
    part = x * _series(x * x, _ASIN)
    near = pi[0] / 2 - (x - (pi[1] / 2 - part))
    high, low, rest = _beyond_half(size)
    angle = high + (low + rest)
    angle = angle + angle
    far = (x < 0.0).where(pi[0] - (angle - pi[1]), angle)
    return (size <= 0.5).where(near, far)


def _angle(y: Number, x: Number) -> tuple[Number, Number]:
    """atan (y / x) as the sum of two numbers, for y, x ≥ 0; 0 for 0 / 0 and π/4 for ∞ / ∞."""
    pi = _PI[y.is_f32]
    steep = x < y * _TAN_PI_8
    middle = ~steep & (y > x * _TAN_PI_8)
    over = steep.where(-x, middle.where(y - x, y))
    under = steep.where(y, middle.where(y + x, x))
    q = over / under
    q = y.equals(x).where(q.constant(0.0), q)
    turn = steep.where(y.constant(2.0), middle.where(y.constant(1.0), 0.0))
    diagonal = y.equals(x) & (y > 0.0)
    turn = diagonal.where(turn.constant(1.0), turn)
    q = q.multiply_add(_series(q * q, _ATAN), q)
    return turn * (pi[0] / 4), turn.multiply_add(pi[1] / 4, q)


@formula
def atan(x: Number) -> Number:
    """The angle in [−π/2, π/2] whose tangent is x."""
    high, low = _angle(abs(x), x.constant(1.0))
    return (high + low).with_sign_of(x)


@formula
def atan2(y: Number, x: Number) -> Number:
    """The angle in [−π, π] of the point (x, y), as C99 has it for zeros and infinities."""
    rise, run, pi = abs(y), abs(x), _PI[y.is_f32]
    # Both are scaled where their sum may be beyond the range, and where a multiple may be rounded.
    most, least, factor = (2.0**120, 2.0**-90, 2.0**24) if y.is_f32 else _ENDS
    large = (rise > most) | (run > most)
    small = (rise < least) & (run < least)
    scale = large.where(y.constant(1 / factor), small.where(y.constant(factor), 1.0))
    high, low = _angle(rise * scale, run * scale)
    negative = x.constant(1.0).with_sign_of(x) < 0.0
    result = negative.where((pi[0] - high) + (pi[1] - low), high + low)
    return result.with_sign_of(y)
