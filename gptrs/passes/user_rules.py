"""Rewrite rules that users add to the pipeline.

`gptrs.passes.simplify` applies them before the rules of this package. Programs that were lowered
with other rules are lowered anew (`gptrs.ir.registry.revision`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gptrs.errors import ArgumentError
from gptrs.ir.registry import changed
from gptrs.ir.rewrite import Rule, Sample, Traits, new_rule
from gptrs.locks import new_lock

_lock = new_lock()
_rules: Mapping[str, Rule] = {}


def user_rules() -> tuple[Rule, ...]:
    """The rules that users added, in their order."""
    return tuple(_rules.values())


def rewrite(
    pattern: Callable[..., Any],
    *,
    samples: Sequence[Sample] = (),
    rounds: bool = False,
    ulps: int = 0,
    magnitude: float = 0.0,
    finite: bool = False,
    alone: bool = False,
) -> Callable[[Callable[..., Any]], Rule]:
    """Add a rule to the pipeline: what ``pattern``, a function over ops, computes is replaced by
    what the decorated function computes.

    The parameters of the pattern are holes. The decorated function takes some of them, by name, and
    returns None where the rule does not apply. Its annotations say what a hole matches: ``Tensor``
    a value, ``float`` or ``int`` a number, nothing anything. ``samples`` give each hole a type as
    text (``{"x": "F[*]"}``: floats, any shape) or a value; `check_rule` proves the rule on them.
    ``rounds`` keeps it from precise programs: results may differ by ``ulps`` units in the last
    place, below ``magnitude`` in those of ``magnitude``; with ``finite`` it may treat NaN and
    infinities otherwise; with ``alone`` it applies where nothing else reads what is inside the
    pattern.

    A rule that is declared again at the same place replaces itself. Raises `ArgumentError` for a
    name that another rule has, and for parameters that are no holes of the pattern.
    """
    said = Traits(rounds=rounds, ulps=ulps, magnitude=magnitude, finite=finite, alone=alone)

    def decorate(build: Callable[..., Any]) -> Rule:
        rule = new_rule(build.__name__, pattern, build, build, samples, said)
        add_rule(rule)
        return rule

    return decorate


def add_rule(rule: Rule) -> None:
    """Have the pipeline apply ``rule``. Raises `ArgumentError` for a name that is taken."""
    global _rules
    with _lock:
        known = _rules.get(rule.name)
        if known is not None and _place(known) != _place(rule):
            raise ArgumentError(
                f"there is a rule {rule.name!r} already, which {known.build.__module__} declares",
                fix="choose another name",
            )
        _rules = {**_rules, rule.name: rule}
        changed()


def remove_rule(rule: Rule) -> None:
    """Have the pipeline apply ``rule`` no longer. Raises `ArgumentError` where it does not."""
    global _rules
    with _lock:
        if _rules.get(rule.name) is not rule:
            raise ArgumentError(f"rule {rule.name} is not in the pipeline")
        _rules = {name: other for name, other in _rules.items() if other is not rule}
        changed()


def _place(rule: Rule) -> tuple[str, str]:
    """Where a rule is declared."""
    return rule.build.__module__, rule.build.__qualname__
