"""Scalar code of the ops of `gptrs.ir.ops.complex_numbers`: see `gptrs.backends.faer.scalars`."""

from __future__ import annotations

from gptrs.backends.faer.scalar_text import Rule, Scalars
from gptrs.ir.ops import complex_numbers
from gptrs.ir.program import Operation
from gptrs.ir.types import f64


def _of_parts(s: Scalars) -> str:
    kind = "complex128" if s.dtype is f64 else "complex64"
    return f"{kind}(complex({s.operands[0]}, {s.operands[1]}))"


def _conj(s: Scalars) -> str:
    (x,) = s.operands
    return s.wrapped(f"complex({x}.real, -{x}.imag)")


COMPLEX_RULES: dict[Operation, Rule] = {
    complex_numbers.real: lambda s: f"{s.operands[0]}.real",
    complex_numbers.imag: lambda s: f"{s.operands[0]}.imag",
    complex_numbers.conj: _conj,
    complex_numbers.complex_: _of_parts,
}
"""By op: its text for one element; exact."""
