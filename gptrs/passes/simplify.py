"""Algebraic simplification: the rewrite rules of `gptrs.passes.rules`, applied to a fixed point."""

from __future__ import annotations

from gptrs.ir.program import Program
from gptrs.ir.rewrite import apply_rules
from gptrs.passes.base import Context
from gptrs.passes.rules import EXACT_RULES, RULES
from gptrs.passes.user_rules import user_rules


def simplify(program: Program, context: Context) -> Program:
    """Apply the rules of users, then `RULES`, until none matches; in a precise context only those
    that do not change rounding."""
    rules = EXACT_RULES if context.precise else RULES
    own = tuple(rule for rule in user_rules() if not (context.precise and rule.rounds))
    return apply_rules(program, (*own, *rules) if own else rules, context.fuel)
