"""The rewrite rules by family. `RULES` are all of them, in the order in which they are tried."""

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
    """The rules that a file declares, alone or as a family."""
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
"""Those that change no bit of a result."""
