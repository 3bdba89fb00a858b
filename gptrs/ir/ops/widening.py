"""Mixed precision of composites: narrow floats are computed in f32 and rounded once at the end."""

from __future__ import annotations

from gptrs.ir.ops.elementwise import cast
from gptrs.ir.tensor import Tensor


def widen(x: Tensor) -> Tensor:
    """``x`` in the dtype of its arithmetic (`DType.compute`)."""
    return x if x.dtype.compute is x.dtype else cast(x, dtype=x.dtype.compute)


def narrow(y: Tensor, x: Tensor) -> Tensor:
    """``y`` in the dtype of ``x``."""
    return y if y.dtype is x.dtype else cast(y, dtype=x.dtype)
