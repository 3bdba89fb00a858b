"""Rewrite rules by family. `RULES` are all of them, in the order in which they are tried.

| module | rules on |
|---|---|
| `layout` | reshape, transpose, broadcast_to |
| `slices` | slice, dynamic_slice, dynamic_update_slice |
| `concat_pad` | concat, pad, tile |
| `casts` | cast |
| `arithmetic` | identities of neg, abs, add, sub, mul, div, rounding ops; exact |
| `strength_reduction` | constants that combine, division by constants, shifts |
| `powers` | reciprocal, sqrt, rsqrt, pow |
| `select` | select, clamp, maximum, minimum |
| `logic` | comparisons, logical and bitwise ops |
| `reductions` | merging reductions, removing axes of extent 1 and transposes |
| `scaled_reductions` | reductions of broadcast, scaled or negated operands |
| `dot_general` | transposes and reshapes of the operands of a contraction |
| `scale_folding` | scales and biases around a contraction |
| `batch_norm_folding` | batch_norm into the weights of the convolution before it |
| `windows` | patches of one element |
| `dot_pattern`, `numbers`, `shapes` | shared by rules: a pattern, arithmetic of a dtype, shapes |

Each rule is a pattern and a replacement written with ops (`gptrs.ir.rewrite`), with samples on
which it is tested. `EXACT_RULES` are those that change no bit. `gptrs patterns` lists all rules
with the first line of their docstrings.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import cast

from gptrs.ir.rewrite import Rule
from gptrs.passes.rules import (
    arithmetic,
    batch_norm_folding,
    casts,
    concat_pad,
    dot_general,
    layout,
    logic,
    powers,
    reductions,
    scale_folding,
    scaled_reductions,
    select,
    slices,
    strength_reduction,
    windows,
)


def _rules_of(module: ModuleType) -> Iterator[Rule]:
    """The rules declared in a module, single ones and families."""
    for value in vars(module).values():
        if isinstance(value, Rule):
            yield value
        elif isinstance(value, tuple):
            parts = cast("tuple[object, ...]", value)
            yield from (part for part in parts if isinstance(part, Rule))


_FAMILIES = (
    *(layout, slices, concat_pad, casts),
    *(arithmetic, strength_reduction, powers, select, logic),
    *(reductions, scaled_reductions, dot_general, scale_folding, batch_norm_folding, windows),
)

RULES: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in _rules_of(family))
EXACT_RULES: tuple[Rule, ...] = tuple(rule for rule in RULES if not rule.rounds)
"""The rules that change no bit of a result."""
