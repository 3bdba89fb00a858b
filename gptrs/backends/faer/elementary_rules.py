"""Scalar code of the ops of `gptrs.ir.ops.elementary`: see `gptrs.backends.faer.scalars`.

Logarithms, exponentials and the like are the functions of `gptrs.kernels.scalar_functions`, over
which loops are vectorised; of complex numbers they are the C library's.
"""

from __future__ import annotations

from gptrs.backends.faer.element_types import loaded, rounded, stored
from gptrs.backends.faer.scalar_text import Rule, Scalars, of_kernels, of_two, to_whole
from gptrs.ir.ops import elementary
from gptrs.ir.program import Operation


def _parts(s: Scalars) -> tuple[str, ...]:
    """The parts of a complex number, or the float itself."""
    (x,) = s.operands
    return (f"{x}.real", f"{x}.imag") if s.dtype.is_complex else (x,)


def _is_nan(s: Scalars) -> str:
    return " or ".join(f"{x} != {x}" for x in _parts(s))


def _is_inf(s: Scalars) -> str:
    infinity = f"{'float64' if s.dtype.name in ('f64', 'cf64') else 'float32'}(math.inf)"
    return " or ".join(f"abs({x}) == {infinity}" for x in _parts(s))


def _signbit(s: Scalars) -> str:
    bits = "double_bits" if s.dtype.bits == 64 else "float_bits"
    return f"{bits}({s.operands[0]}) < 0"


def _copysign(s: Scalars) -> str:
    return f"math.copysign({s.operands[0]}, {s.operands[1]})"


def _nextafter(s: Scalars) -> str:
    """The neighbour of the bits in memory."""
    element = s.element
    assert element is not None
    if element.bits >= 32:
        x, y = s.operands
        of, back = _BITS[element.bits]
        bits = f"next_bits({of}({x}), {x}, {y}, {of}({y}), {element.bits - 1})"
        result = back.format(bits)
    else:
        x, y = (f"({rounded(element, operand)})" for operand in s.operands)
        of_x, of_y = (f"int64({stored(element, operand)})" for operand in s.operands)
        bits = f"next_bits({of_x}, {x}, {y}, {of_y}, {element.bits - 1})"
        result = loaded(element, f"uint{element.bits}({bits})")
    return f"{result} if {x} == {x} and {y} == {y} else {x} + {y}"


def _gcd(s: Scalars) -> str:
    """On magnitudes, which fit 64 bits without a sign."""
    signed = s.dtype.kind == "int"
    sizes = (f"uint64(abs(int64({x})))" if signed else f"uint64({x})" for x in s.operands)
    return s.wrapped(f"greatest_divisor({', '.join(sizes)})")


_BITS = {32: ("float_bits", "bits_float(int32({}))"), 64: ("double_bits", "bits_double({})")}
"""By width: a float's bits, and the float of these."""

_NAMES = (
    *("log1p", "log2", "log10", "expm1", "exp2", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "asinh", "acosh", "atanh", "cbrt"),
)
_OF_KERNELS: dict[Operation, str] = {getattr(elementary, name): name for name in _NAMES}
_OF_TWO: dict[Operation, str] = {elementary.atan2: "atan2", elementary.hypot: "hypot"}

ELEMENTARY_RULES: dict[Operation, Rule] = {
    **{op: of_kernels(name) for op, name in _OF_KERNELS.items()},
    **{op: of_two(name) for op, name in _OF_TWO.items()},
    elementary.trunc: to_whole("trunc"),
    elementary.signbit: _signbit,
    elementary.is_nan: _is_nan,
    elementary.is_inf: _is_inf,
    elementary.copysign: _copysign,
    elementary.nextafter: _nextafter,
    elementary.gcd: _gcd,
}
"""By op: its text for one element."""
APPROXIMATE: frozenset[Operation] = frozenset([*_OF_KERNELS, *_OF_TWO])
"""Ops whose bits may differ from those of their NumPy meanings."""
