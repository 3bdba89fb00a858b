"""Algebraic simplification: the rewrite rules of `gptrs.passes.rules`, applied to a fixed point."""

from __future__ import annotations

from gptrs.ir.program import Program
from gptrs.ir.rewrite import apply_rules
from gptrs.passes.base import Context
from gptrs.passes.rules import EXACT_RULES, RULES


def simplify(program: Program, context: Context) -> Program:
    """Apply `RULES` until none matches; in a precise context only those that do not change
    rounding."""
    return apply_rules(program, EXACT_RULES if context.precise else RULES, context.fuel)
