"""Layer norm in one pass over its operand: E[x²] − (E[x])²."""

from __future__ import annotations

from gptrs.ir.implementations.registry import implementation
from gptrs.ir.ops.composite import mean
from gptrs.ir.ops.elementwise import maximum, rsqrt
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor


@implementation("layer_norm", name="one_pass")
def one_pass(x: Tensor, weight: Tensor | None, bias: Tensor | None, *, eps: float) -> Tensor:
    """The variance as E[x²] − (E[x])², so that both sums are taken at once.

    The difference cancels: of rows whose mean is c standard deviations it has an error of about
    c² roundings, so it suits rows that are nearly centred (Higham, Accuracy and Stability of
    Numerical Algorithms, 2nd ed., section 1.9).
    """
    wide = widen(x)
    centre = mean(wide, axes=-1, keepdims=True)
    variance = maximum(mean(wide * wide, axes=-1, keepdims=True) - centre * centre, 0.0)
    y = (wide - centre) * rsqrt(variance + eps)
    if weight is not None:
        y = y * widen(weight)
    if bias is not None:
        y = y + widen(bias)
    return narrow(y, x)
