"""pow on vectors of f32 and on scalars: exp(y · log |x|) in f64, and the sign of x for odd y.

As in `gptrs.kernels.vector_math`, free of branches and of tables. The product has an error of at
most 2⁻⁴⁵ where the result is finite, so that the result is rounded once but for very few operands:
0.51 ulp, checked by tests. Ends are those of IEEE 754: 1 for y = 0 and for x = 1 whatever the other
is, NaN for x < 0 and y that is no integer.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F64, Builder, like
from gptrs.kernels.vector_math64 import bits, exp, log

_WHOLE = 2.0**52
"""From here on f64 has no fractions; and f32, also converted, no odd numbers."""


def power(f: Builder, x: Any, y: Any) -> Any:
    """x to the power y."""
    narrow = x.type
    wide = ir.VectorType(F64, narrow.count) if isinstance(narrow, ir.VectorType) else F64
    x, y = f.fpext(x, wide), f.fpext(y, wide)
    one, zero, size = like(x, 1.0), like(x, 0.0), f.magnitude(x)
    result = exp(f, f.fmul(y, log(f, size)))
    result = f.select(f.fcmp_ordered("==", size, one), one, result)
    whole, odd = _integer(f, y)
    negative = f.icmp_signed("<", bits(f, x), like(bits(f, x), 0))
    result = f.select(f.and_(negative, odd), f.fneg(result), result)
    finite = f.fcmp_ordered(">", x, like(x, -math.inf))
    below = f.and_(f.fcmp_ordered("<", x, zero), finite)
    result = f.select(f.and_(below, f.not_(whole)), like(x, math.nan), result)
    always = f.or_(f.fcmp_ordered("==", x, one), f.fcmp_ordered("==", y, zero))
    return f.fptrunc(f.select(always, one, result), narrow)


def _integer(f: Builder, y: Any) -> tuple[Any, Any]:
    """Whether y is an integer, and whether an odd one."""
    size, offset = f.magnitude(y), like(y, _WHOLE)
    shifted = f.fadd(size, offset)  # rounds to an integer, whose lowest bit is then the last one
    large = f.fcmp_ordered(">=", size, offset)
    whole = f.or_(large, f.fcmp_ordered("==", f.fsub(shifted, offset), size))
    pattern = bits(f, shifted)
    last = f.icmp_signed("!=", f.and_(pattern, like(pattern, 1)), like(pattern, 0))
    return whole, f.and_(f.and_(last, whole), f.not_(large))
