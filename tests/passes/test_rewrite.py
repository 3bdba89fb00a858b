"""The matcher and driver of rewrite rules: holes, fuel, and patterns that are refused."""

# The parameters of a lambda have no types, and dtypes are given by name.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, VerifyError
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.rewrite import Fuel, Rule, rewrite
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type
from gptrs.ir.use_def import UseDef
from gptrs.passes.rules import RULES
from tests.cases.programs import record
from tests.support.rule_samples import apply, assert_same_results

ONE = np.ones((1,), np.float32)


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
    with pytest.raises(ArgumentError, match=r"rule <lambda> takes x, .*\n.*of the pattern are: y"):
        rewrite(lambda y: ptir.neg(y), samples=[{"y": "f32[3]"}])(lambda x: x)
    with pytest.raises(ValueError, match="no sample"):
        rewrite(lambda x: -x, samples=[])(lambda x: x)


def test_an_absent_operand_matches_only_absent_ones() -> None:
    @rewrite(lambda x, w: ptir.linear(x, w), samples=[{"x": "f32[2,3]", "w": "f32[4,3]"}])
    def spell_out(x: Tensor, w: Tensor) -> Tensor:
        """Without a bias."""
        return x @ w.T

    plain = record(lambda x, w: ptir.linear(x, w), "f32[2,3]", "f32[4,3]")
    biased = record(lambda x, w, b: ptir.linear(x, w, b), "f32[2,3]", "f32[4,3]", "f32[4]")
    assert [i.op.name for i in apply(plain, spell_out).body] == ["transpose", "matmul"]
    assert apply(biased, spell_out) is biased


def test_an_attribute_that_is_left_out_is_the_default() -> None:
    plain = record(lambda x: ptir.reduce_sum(x, axes=()), "si64[2]")
    narrow = record(lambda x: ptir.reduce_sum(x, axes=(), out_dtype="si8"), "si64[2]")
    assert apply(plain, *RULES).body == ()
    assert apply(narrow, *RULES) is narrow


def test_an_optional_hole_takes_values_and_absent_operands_but_no_numbers() -> None:
    found: list[object] = []

    @rewrite(
        lambda x, w, b: ptir.layer_norm(x, w, b),
        samples=[{"x": "f32[2,3]", "w": "f32[3]", "b": None}],
    )
    def look(x: Tensor, w: Tensor | None, b: Tensor | None) -> None:
        """Changes nothing."""
        found.append((w is None, b is None))

    record_and_apply = lambda function: apply(
        record(function, "f32[2,3]", "f32[3]", "f32[3]"), look
    )
    record_and_apply(lambda x, w, b: ptir.layer_norm(x, w, b))
    record_and_apply(lambda x, w, b: ptir.layer_norm(x, w))
    record_and_apply(lambda x, w, b: ptir.layer_norm(x))
    assert found == [(False, False), (False, True), (True, True)]


def test_the_annotation_of_a_hole_says_what_it_matches() -> None:
    kinds: list[str] = []

    def noting(name: str, build: Any) -> Rule:
        build.__name__ = name
        return rewrite(lambda c, x: ptir.mul(c, x), samples=[{"c": 2, "x": "f32[3]"}])(build)

    def number(c: float, x: Tensor) -> None:
        """A number."""
        kinds.append(f"number {c}")

    def whole(c: int, x: Tensor) -> None:
        """An integer."""
        kinds.append(f"integer {c}")

    def value(c: Tensor, x: Tensor) -> None:
        """Two values."""
        kinds.append("values")

    rules = [noting(f.__name__, f) for f in (number, whole, value)]
    for function in (
        lambda x: x * 2,
        lambda x: x * 2.5,
        lambda x: x * x,
        lambda x: x * np.array([3], np.float32),
        lambda x: x * ptir.full(shape=(3,), value=4.5, dtype="f32"),
        lambda x: x * np.array([1, 2, 3], np.float32),
    ):
        kinds.append("|")
        apply(record(function, "f32[3]"), *rules)
    assert " ".join(kinds).split(" | ") == [
        "| number 2 integer 2",
        "number 2.5",
        "values",
        "number 3.0 values",
        "number 4.5 values",
        "values",
    ]


def test_a_rule_may_ask_what_is_stored() -> None:
    asked: list[bool] = []

    @rewrite(lambda x, y: ptir.mul(x, y), samples=[{"x": "f32[3]", "y": "f32[3]"}])
    def ask(x: Tensor, y: Tensor, facts: UseDef) -> None:
        """Changes nothing."""
        asked.append(facts.is_stable(y))

    recorder = Recorder("f")
    x = recorder.input(Type.parse("f32[3]"), "x")
    w = recorder.input(Type.parse("f32[3]"), "w", role="parameter")
    with interpreter(recorder):
        derived = ptir.exp(w) + ONE
        results = [x * w, x * derived, x * (derived - x), x * (x + 1.0), x * ptir.tensor(ONE)]
    apply(recorder.finish(results), ask)
    assert asked == [True, True, False, False, True]
