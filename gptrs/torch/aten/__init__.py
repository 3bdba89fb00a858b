"""ATen's operators in PTIR, by family; the table is `gptrs.torch.aten.table`."""

from gptrs.torch.aten import (
    activations,
    creation,
    elementwise,
    indexing,
    linear_algebra,
    matrices,
    normalization,
    polynomials,
    recurrent,
    reductions,
    segments,
    shapes,
    sorting,
    window_gradients,
    windows,
)
from gptrs.torch.aten.table import TABLE, Meaning, Operands, UnsupportedError

__all__ = [
    "TABLE",
    "Meaning",
    "Operands",
    "UnsupportedError",
    "activations",
    "creation",
    "elementwise",
    "indexing",
    "linear_algebra",
    "matrices",
    "normalization",
    "polynomials",
    "recurrent",
    "reductions",
    "segments",
    "shapes",
    "sorting",
    "window_gradients",
    "windows",
]
