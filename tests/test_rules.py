"""Every rewrite rule fires on its samples, changes no bit, and stays away where it must."""

# The parameters of a lambda have no types, and dtypes are given by name.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.errors import VerifyError
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.op import Op
from gptrs.ir.program import Program, verify
from gptrs.ir.rewrite import Fuel, Rule, Sample, apply_rules, rewrite
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, Array, DType, Type
from gptrs.passes.base import Context
from gptrs.passes.dead import eliminate_dead
from gptrs.passes.simplify import RULES
from tests.cases.programs import record
from tests.cases.sample import draw, same_bits

CONTEXT = Context(ReferenceBackend())
BY_NAME = {rule.name: rule for rule in RULES}


def arrays_for(program: Program) -> tuple[Array, ...]:
    rng = np.random.default_rng(zlib.crc32(str(program).encode()))
    return tuple(draw(param.type, "any", rng) for param in program.params)


def apply(program: Program, *rules: Rule, fuel: Fuel | None = None) -> Program:
    return eliminate_dead(apply_rules(program, rules, fuel), CONTEXT)


def assert_same_results(before: Program, after: Program) -> None:
    verify(after)
    arrays = arrays_for(before)
    for a, b in zip(
        ReferencePlan(before).run(arrays, {}), ReferencePlan(after).run(arrays, {}), strict=True
    ):
        assert same_bits(a, b)


def trace_sample(rule: Rule, sample: Sample) -> Program:
    """The rule's pattern as a program: types become parameters, the rest is as it is."""
    recorder = Recorder(rule.name)
    holes = {
        name: recorder.input(Type.parse(value), name) if isinstance(value, str) else value
        for name, value in sample.items()
    }
    with interpreter(recorder):
        return recorder.finish([rule.source(**holes)])


@pytest.mark.parametrize(
    ("rule", "sample"),
    [pytest.param(r, s, id=f"{r.name}-{i}") for r in RULES for i, s in enumerate(r.samples)],
)
def test_a_rule_on_its_sample(rule: Rule, sample: Sample) -> None:
    before = trace_sample(rule, sample)
    fuel = Fuel()
    after = apply(before, rule, fuel=fuel)
    assert set(fuel.log) == {rule.name}
    assert str(after) != str(before)
    assert len(after.body) < len(before.body)
    assert_same_results(before, after)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_what_it_does(rule: Rule) -> None:
    assert rule.samples
    assert rule.doc.endswith(".")


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
    ("drop_full_slice", lambda x: ptir.slice(x, starts=(0, 0), sizes=(2, 3)), "f32[2,3]"),
]


@pytest.mark.parametrize(("name", "function", "types"), FIRES)
def test_a_rule_fires(name: str, function: Callable[..., Any], types: str) -> None:
    assert name in fired(function, *types.split())


STAYS: list[tuple[str, Callable[..., Any], str]] = [
    ("x + 0.0 makes +0 of -0", lambda x: x + 0.0, "f32[9]"),
    ("x + 0 too", lambda x: x + 0, "f32[9]"),
    ("x - -0.0 too", lambda x: x - (-0.0), "f32[9]"),
    ("0 - x", lambda x: 0 - x, "si32[9]"),
    ("1 / x", lambda x: 1.0 / x, "f32[9]"),
    ("x * True has no type for numbers", lambda x: x & True, "i1[9]"),
    ("x * -1", lambda x: x * -1.0, "f32[9]"),
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
    ("a number for the value", lambda x: 1.0 * ptir.constant(value=ONE) + x, "f32[1]"),
    ("a number divided", lambda x: 1.0 / ptir.constant(value=ONE) + x, "f32[1]"),
    (
        "a number of integers",
        lambda x: (0 + ptir.constant(value=np.zeros(1, np.int32))) * x,
        "si32[1]",
    ),
]


@pytest.mark.parametrize(("why", "function", "types"), STAYS)
def test_no_rule_fires(why: str, function: Callable[..., Any], types: str) -> None:
    assert fired(function, *types.split()) == [], why


def test_fuel_counts_rewrites() -> None:
    program = record(lambda x: ptir.neg(-(x * 1.0 - 0.0)), "f32[3]")
    lengths: list[int] = []
    for left in range(5):
        fuel = Fuel(left)
        lengths.append(len(apply(program, *RULES, fuel=fuel).body))
        assert len(fuel.log) == min(left, 3)
    assert lengths == [4, 3, 2, 0, 0]
    assert str(apply(program, *RULES, fuel=Fuel(0))) == str(program)


def test_the_log_names_the_last_rule() -> None:
    fuel = Fuel(2)
    apply(record(lambda x: (x * 1.0 - 0.0) / 1.0, "f32[3]"), *RULES, fuel=fuel)
    assert fuel.log == ["multiply_by_one", "subtract_zero"]


def test_a_hole_that_occurs_twice_matches_one_value() -> None:
    same = lambda m, x: ptir.select(m, x, x)
    assert fired(same, "i1[3]", "f32[3]") == ["select_same"]
    assert fired(lambda m, x, y: ptir.select(m, x, y), "i1[3]", "f32[3]", "f32[3]") == []


def test_rules_may_go_round_in_circles_only_so_long() -> None:
    @rewrite(lambda x, y: ptir.add(x, y), samples=[{"x": "f32[3]", "y": "f32[3]"}])
    def swap(x: Tensor, y: Tensor) -> Tensor:
        """Never settles."""
        return ptir.add(y, x)

    program = record(lambda x, y: x + y, "f32[3]", "f32[3]")
    assert_same_results(program, apply(program, swap))


def test_a_rule_that_changes_the_type_is_found() -> None:
    @rewrite(lambda x: ptir.neg(x), samples=[{"x": "f32[3]"}])
    def shrink(x: Tensor) -> Tensor:
        """Wrong."""
        return ptir.cast(x, dtype="f16")

    with pytest.raises(VerifyError, match=r"rule shrink replaces f32\[3\] by f16\[3\]"):
        apply(record(lambda x: -x, "f32[3]"), shrink)


def test_a_rule_needs_samples_and_holes_of_its_pattern() -> None:
    for pattern, samples in ((lambda y: ptir.neg(y), [{"y": "f32[3]"}]), (lambda x: -x, [])):
        with pytest.raises(ValueError, match="not in the pattern, or no sample"):
            rewrite(pattern, samples=samples)(lambda x: x)


def every_value(dtype: DType) -> Array:
    """All values of a dtype of up to 16 bits, many of the wider ones."""
    rng = np.random.default_rng(0)
    if dtype.bits == 4:
        return np.arange(dtype.limits[0], dtype.limits[1] + 1).astype(dtype.numpy)
    if dtype.bits <= 16:
        patterns = np.arange(2**dtype.bits, dtype=np.uint8 if dtype.bits == 8 else np.uint16)
        return patterns.view(dtype.numpy)
    return draw(Type((2000,), dtype), "any", rng)


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
