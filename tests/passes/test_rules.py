"""Rewrite rules: where they fire, where they must not, and their descriptions."""

# The parameters of a lambda have no types, and dtypes are given by name.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.reference import ReferenceBackend
from gptrs.ir.op import Op
from gptrs.ir.rewrite import Fuel, Rule, apply_rules
from gptrs.ir.types import DTYPES, DType
from gptrs.passes.base import Context
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.rules import EXACT_RULES, RULES
from gptrs.passes.simplify import simplify
from tests.cases.programs import record
from tests.cases.sample import same_bits
from tests.support.rule_samples import apply, assert_same_results, every_value

S = ptir.dim("S")
BY_NAME = {rule.name: rule for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_what_it_does(rule: Rule) -> None:
    assert rule.samples
    assert rule.doc.endswith(".")
    assert rule.rounds == bool(rule.ulps)
    assert not rule.rounds or "round" in rule.doc, "what is rounded in another way is said"
    assert not rule.finite or re.search("infinit|NaN|∞", rule.doc), "why they are left out is said"


def test_rules_have_names_of_their_own() -> None:
    assert len(BY_NAME) == len(RULES)


def fired(function: Callable[..., Any], *types: str) -> list[str]:
    """The rules that fire on a program, which must not change its results."""
    before = record(function, *types)
    fuel = Fuel()
    after = apply(before, *RULES, fuel=fuel)
    assert_same_results(before, after)
    return fuel.log


ONE = np.ones((1,), np.float32)
FIRES: list[tuple[str, Callable[..., Any], str]] = [
    # Through a broadcast_to that the pattern does not mention.
    ("cancel_negations", lambda x: -ptir.broadcast_to(-x, shape=(2, 3)), "f32[3]"),
    (
        "swap_negated_select",
        lambda m, x: ptir.select(ptir.logical_not(m), x, 1.0),
        "i1[3,1] f32[3,4]",
    ),
    ("multiply_by_one", lambda x: x * ONE, "f32[2,3]"),
    ("multiply_by_one", lambda x: x * ONE, "f32[]"),
    ("divide_by_one", lambda x: x / ptir.broadcast_to(ONE, shape=(2, 3)), "f32[2,3]"),
    # With the operands of a commutative op the other way round.
    ("multiply_by_one", lambda x: 1.0 * x, "f32[3]"),
    ("multiply_by_one", lambda x: ONE * x, "f32[3]"),
    ("multiply_by_one", lambda x: x * 1, "si8[3]"),
    ("add_integer_zero", lambda x: 0 + x, "si8[3]"),
    ("subtract_zero", lambda x: x - 0.0, "f32[9]"),
    ("drop_identity_cast", lambda x: ptir.cast(x, dtype="bf16"), "bf16[3]"),
    ("multiply_by_one", lambda x: x * ptir.full(shape=(2, 3), value=1, dtype="f32"), "f32[2,3]"),
    ("drop_repeated_maximum", lambda x, y: ptir.maximum(y, ptir.maximum(x, y)), "f32[9] f32[9]"),
    ("fuse_rsqrt", lambda x: 1.0 / ptir.broadcast_to(ptir.sqrt(x), shape=(2, 3)), "f32[3]"),
    ("drop_full_slice", lambda x: ptir.slice(x, starts=(0, 0), sizes=(2, 3)), "f32[2,3]"),
]


@pytest.mark.parametrize(("name", "function", "types"), FIRES)
def test_a_rule_fires(name: str, function: Callable[..., Any], types: str) -> None:
    assert name in fired(function, *types.split())


STAYS: list[tuple[str, Callable[..., Any], str]] = [
    ("x + 0.0 makes +0 of -0", lambda x: x + 0.0, "f32[9]"),
    ("x + 0 too", lambda x: x + 0, "f32[9]"),
    ("x - -0.0 too", lambda x: x - (-0.0), "f32[9]"),
    ("0 - x makes +0 of +0", lambda x: 0.0 - x, "f32[9]"),
    ("x * 0 makes NaN of NaN", lambda x: x * 0.0, "f32[9]"),
    ("x - x too", lambda x: x - x, "f32[9]"),
    ("2 / x", lambda x: 2.0 / x, "f32[9]"),
    ("x + x", lambda x: x + x, "f32[9]"),
    ("floor of a sum", lambda x: ptir.floor(x + 0.5), "f32[9]"),
    ("not less, perhaps NaN", lambda x, y: ~(x < y), "f32[9] f32[9]"),
    ("x = x, perhaps NaN", lambda x: ptir.equal(x, x), "f32[9]"),
    ("the greater, perhaps NaN", lambda x, y: ptir.select(x > y, x, y), "f32[9] f32[9]"),
    ("bounds that cross", lambda x: ptir.maximum(ptir.minimum(x, 1.0), 2.0), "f32[9]"),
    ("√ of bf16 is rounded", lambda x: ptir.reciprocal(ptir.sqrt(x)), "bf16[9]"),
    ("a wrapped position", lambda: ptir.iota(shape=(300,), dtype="ui8").astype("f32"), ""),
    ("an axis that is kept", lambda x: ptir.reduce_max(x, axes=1), "f32[1,3]"),
    ("nothing repeated", lambda x: ptir.broadcast_to(x, shape=(0,)).max(), "f32[1]"),
    ("two axes that stay", lambda x: x.transpose(2, 1, 0).max(axis=1), "f32[2,3,4]"),
    ("a part of each", lambda x, y: ptir.concat((x, y))[1:4], "f32[3] f32[3]"),
    (
        "weights that are computed",
        lambda x, w, m, v: ptir.batch_norm(ptir.conv2d(x, w), m, v),
        "f32[1,4,4,2] f32[2,2,2,3] f32[3] f32[3]",
    ),
    ("biases that are computed", lambda x, b, c: x + b + c, "f32[2,3] f32[3] f32[3]"),
    (
        "rows in another order",
        lambda x, w: ptir.dot_general(
            x.transpose(1, 0, 2), w, contract_lhs=(2,), contract_rhs=(0,)
        ),
        "f32[2,3,4] f32[4,5]",
    ),
    ("with a gap", lambda x: ptir.concat((x[:2], x[3:])), "f32[5]"),
    (
        "another value",
        lambda x: ptir.pad(ptir.pad(x, low=(1,), high=(1,)), low=(1,), high=(1,), value=1.0),
        "f32[5]",
    ),
    ("padding inside", lambda x: ptir.pad(x, low=(1,), high=(1,))[:3], "f32[5]"),
    (
        "rows apart",
        lambda x: x.reshape(6, 4).transpose(1, 0).reshape(4, 2, 3)[:, :, 0],
        "f32[2,3,4]",
    ),
    ("several ones", lambda x: x * np.array([1, 1, 2], np.float32), "f32[3]"),
    ("through f16", lambda x: x.astype("f16").astype("f32"), "f32[9]"),
    ("through bf16", lambda x: x.astype("bf16").astype("f32"), "f16[9]"),
    ("through a narrower integer", lambda x: x.astype("si8").astype("si32"), "si32[9]"),
    ("through the other sign", lambda x: x.astype("ui8").astype("si32"), "si8[9]"),
    ("through f32 with too few bits", lambda x: x.astype("f32").astype("si32"), "si32[9]"),
    ("through fp8 without infinity", lambda x: x.astype("fp8_e4m3").astype("f32"), "f32[9]"),
    ("through i1", lambda x: x.astype("i1").astype("si8"), "si8[9]"),
    ("two axes exchanged", lambda x: ptir.transpose(x, perm=(1, 0)), "f32[2,3]"),
    ("part of it", lambda x: x[1:], "f32[3]"),
    ("every second", lambda x: ptir.slice(x, starts=(0,), sizes=(1,), strides=(2,)), "f32[2]"),
    ("one more", lambda x: ptir.pad(x, low=(0,), high=(1,)), "f32[3]"),
    ("a gap", lambda x: ptir.pad(x, low=(0,), high=(0,), interior=(1,)), "f32[3]"),
    ("twice", lambda x: ptir.tile(x, reps=(2,)), "f32[3]"),
    ("two of them", lambda x: ptir.concat((x, x)), "f32[3]"),
    ("another shape", lambda x: x.reshape(3, 2), "f32[2,3]"),
    ("two values", lambda m, a, b: ptir.select(m, a, b), "i1[3] f32[3] f32[3]"),
    ("two numbers", lambda m, x: ptir.select(m, ptir.select(m, 1.0, x), 2.0), "i1[3] f32[3]"),
    ("numbers", lambda m, x: ptir.select(m, 1.0, ptir.select(m, x, 2.0)), "i1[3] f32[3]"),
]


@pytest.mark.parametrize(("why", "function", "types"), STAYS)
def test_no_rule_fires(why: str, function: Callable[..., Any], types: str) -> None:
    assert fired(function, *types.split()) == [], why


def test_of_symbolic_extents_only_what_is_sure_counts() -> None:
    def names(function: Callable[..., Any], *types: str) -> list[str]:
        fuel = Fuel()
        apply_rules(record(function, *types), RULES, fuel)
        return fuel.log

    repeated = lambda x: ptir.broadcast_to(x, shape=(S,)).max()
    assert "unrepeated_reduce_max" in names(repeated, "f32[1]")
    assert names(lambda x: ptir.broadcast_to(x, shape=(S - 1,)).max(), "f32[1]") == []
    # Whether three elements fit is an error of the run.
    assert names(lambda x: ptir.broadcast_to(x, shape=(S,))[:3], "f32[1]") == []
    assert names(lambda x: ptir.broadcast_to(x, shape=(S + 2,))[:3], "f32[1]") != []
    assert names(lambda x, y: ptir.concat((x, y))[:3], "f32[?S]", "f32[3]") == []
    assert names(lambda x, y: ptir.concat((x, y))[3:5], "f32[3]", "f32[?S]") == []
    assert names(lambda x, y: ptir.concat((x, y))[1:3], "f32[3]", "f32[?S]") == ["slice_one_part"]


def test_a_hole_that_occurs_twice_matches_one_value() -> None:
    same = lambda m, x: ptir.select(m, x, x)
    assert fired(same, "i1[3]", "f32[3]") == ["select_same"]
    assert fired(lambda m, x, y: ptir.select(m, x, y), "i1[3]", "f32[3]", "f32[3]") == []


def simplified(function: Callable[..., Any], *types: str, precise: bool = False) -> list[str]:
    """The ops that are left of a program."""
    context = Context(ReferenceBackend(), precise=precise)
    program = eliminate_dead_code(simplify(record(function, *types), context), context)
    return [instruction.op.name for instruction in program.body]


def test_a_precise_program_is_rounded_as_it_was_written() -> None:
    function = lambda x: (x / 3.0) * 2.0 / 4.0
    assert simplified(function, "f32[3]", precise=True) == ["div", "mul", "mul"]
    assert simplified(function, "f32[3]") == ["mul"]
    assert {rule for rule in RULES if rule.rounds} == set(RULES) - set(EXACT_RULES)


def test_what_others_read_is_not_computed_twice() -> None:
    shared = lambda x: (y := x + 1, y + 2)
    assert simplified(shared, "si32[3]") == ["add", "add"]
    assert simplified(lambda x: (x + 1) + 2, "si32[3]") == ["add"]
    inverse = lambda x, y: (z := ptir.reciprocal(y), x * z)
    assert simplified(inverse, "f32[3]", "f32[3]") == ["reciprocal", "mul"]
    read = lambda m, x, y: (
        n := ptir.broadcast_to(~m, shape=(2, 3)),
        n & ptir.broadcast_to(~x, shape=(2, 3)) & y,
    )
    assert "not_either" not in fired(read, "i1[3]", "i1[3]", "i1[2,3]")


PLAIN = [d for d in DTYPES.values() if not d.is_complex and not d.is_bool]


@pytest.mark.parametrize("narrow", PLAIN, ids=str)
def test_a_cast_that_is_skipped_loses_nothing(narrow: DType) -> None:
    values = ptir.tensor(every_value(narrow))
    cast: Op[Any, Any] = ptir.cast  # pyright: ignore[reportAssignmentType]
    rule = BY_NAME["skip_widening_cast"]
    one = ptir.tensor(np.zeros(1, narrow.numpy))
    skipped = 0
    for wide, last in product(PLAIN, PLAIN):
        if rule.build(x=one, a=wide, b=last) is not None:
            direct = cast(values, dtype=last).numpy()
            detour = cast(cast(values, dtype=wide), dtype=last).numpy()
            assert same_bits(direct, detour), (wide, last)
            skipped += 1
    assert skipped >= len(PLAIN)


def test_a_reciprocal_of_complex_roots_stays() -> None:
    @ptir.jit(backend="reference")
    def function(x: Any) -> Any:
        return ptir.reciprocal(ptir.rsqrt(x))

    x = np.array([1 + 2j, -3j])
    np.testing.assert_allclose(function(x).numpy(), np.sqrt(x))
