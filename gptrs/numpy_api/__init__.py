"""The functions of the Python array API standard, of NumPy, JAX and torch, over the ops of PTIR.

PTIR is small and strict; this layer has the names, argument orders and defaults that people know.
A function records the ops that there are; it is no op itself, so a program shows none of it. Each
is declared by `gptrs.numpy_api.function.public`, which enters it in `gptrs.ir.dispatch.FUNCTIONS`:
operators and methods of tensors find it there, ``ptir`` too.

| module | functions |
|---|---|
| `function` | `public`, the decorator; operands as tensors |
| `arithmetic` | operators and element-wise functions whose meaning depends on the dtype |
| `creation` | asarray, arange, zeros, ones, full, eye, linspace, meshgrid, tril, triu |
| `data_types` | astype, can_cast, finfo, iinfo, isdtype, result_type |
| `statistics` | sum, prod, max, min, mean, var, std, all, any, cumulative sums, quantiles |
| `searching` | argmax, argmin, count_nonzero, nonzero, searchsorted, where |
| `sorting` | sort, argsort, unique |
| `manipulation` | concat, stack, reshape, flip, roll, repeat, squeeze, expand_dims, split, pad |
| `indexing` | take, take_along_axis |

Modules are imported on first use of one of their names (`MODULES`), so that a start does not wait
for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULES: dict[str, tuple[str, ...]] = {
    "arithmetic": (
        *("add", "multiply", "divide", "floor_divide", "positive"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"),
        *("logical_and", "logical_or", "logical_xor", "logical_not"),
        *("clip", "where"),
    ),
}
"""The public names of each module, its ``__all__``."""

ALIASES: dict[str, str] = {
    "subtract": "sub",
    "negative": "neg",
    "true_divide": "divide",
    "bitwise_left_shift": "shift_left",
    "bitwise_right_shift": "shift_right",
    "left_shift": "shift_left",
    "right_shift": "shift_right",
    "bitwise_not": "bitwise_invert",
    "invert": "bitwise_invert",
    "isfinite": "is_finite",
    "mod": "remainder",
    "power": "pow",
    "absolute": "abs",
    "float_power": "pow",
    "rint": "round",
}
"""Names of the neighbours for functions and ops that have another name here."""

_PLACES = {name: module for module, names in MODULES.items() for name in names}
NAMES = frozenset({*_PLACES, *ALIASES})


def load(name: str) -> Any:
    """The function or op called ``name``; None where there is none."""
    from gptrs.ir.dispatch import FUNCTIONS, OPS

    name = ALIASES.get(name, name)
    if (module := _PLACES.get(name)) is None:
        return OPS.get(name)
    import_module(f"gptrs.numpy_api.{module}")
    return FUNCTIONS[name]
