"""The vocabulary. Importing this package fills `gptrs.ir.dispatch.OPS`."""

from gptrs.ir.ops import (
    composite,
    contract,
    custom,
    dynamic,
    elementwise,
    index,
    literal,
    reduce,
    shape,
)

__all__ = [
    "composite",
    "contract",
    "custom",
    "dynamic",
    "elementwise",
    "index",
    "literal",
    "reduce",
    "shape",
]
