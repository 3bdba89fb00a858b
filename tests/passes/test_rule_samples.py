"""Every rewrite rule on its samples: it fires, and its replacement computes the same."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import pytest

from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.errors import VerifyError
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.ops.elementwise import add, div, mul
from gptrs.ir.ops.reduce import cumsum
from gptrs.ir.ops.shape import reshape, transpose
from gptrs.ir.program import Program, verify
from gptrs.ir.rewrite import Fuel, Rule, Sample, apply_rules, rewrite
from gptrs.ir.tensor import Tensor
from gptrs.passes.base import Context
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.legalize import legalize
from gptrs.passes.rule_samples import Drawn, check_rule, difference, draws, filled_in
from gptrs.passes.rules import EXACT_RULES, RULES
from tests.cases import each_case
from tests.cases.sample import Case, all_same_bits, inputs, several
from tests.support.marks import slow_unless

CONTEXT = Context(ReferenceBackend())
SAMPLES = [
    pytest.param(rule, sample, id=f"{rule.name}-{i}", marks=slow_unless(i == 0))
    for rule in RULES
    for i, sample in enumerate(rule.samples)
]


def applied(program: Program, *rules: Rule) -> tuple[Program, Fuel]:
    fuel = Fuel()
    return eliminate_dead_code(apply_rules(program, rules, fuel), CONTEXT), fuel


def usual(rule: Rule, sample: Sample) -> Drawn:
    """The first way to fill the sample in that its ops take."""
    return next(d for how in draws(rule, sample) if (d := filled_in(rule, sample, how)))


@pytest.mark.parametrize(("rule", "sample"), SAMPLES)
def test_a_rule_computes_the_same(rule: Rule, sample: Sample) -> None:
    check(rule, sample)


def check(rule: Rule, sample: Sample) -> None:
    """Run the pattern and its replacement on many arrays."""
    tried = 0
    for how in draws(rule, sample):
        drawn = filled_in(rule, sample, how)
        if drawn is None:
            continue
        after, fuel = applied(drawn.program, rule)
        if not tried:
            assert set(fuel.log) == {rule.name}
        if not fuel.log:
            continue
        tried += 1
        verify(after)
        (expected,) = ReferencePlan(drawn.program).run(drawn.arrays, drawn.sizes)
        (found,) = ReferencePlan(after).run(drawn.arrays, drawn.sizes)
        assert difference(rule, found, expected) == "", (how, str(drawn.program), str(after))
    assert tried


def forget_a_sign(x: Tensor) -> Tensor:
    """Not so for −0."""
    return x


def round_twice(x: Tensor, c: float) -> Tensor:
    """Not so in the last place."""
    return mul(x, 1 / c)


def keep_a_sum(x: Tensor) -> Tensor:
    """Not so where elements are many."""
    return x


def read_by_rows(x: Tensor, p: tuple[int, int]) -> Tensor:
    """Not so but for a row or a column."""
    return reshape(x, shape=(x.shape[1], x.shape[0]))


WRONG = [
    rewrite(lambda x: add(x, 0.0), samples=[{"x": "F[*]"}])(forget_a_sign),
    rewrite(lambda x, c: div(x, c), samples=[{"x": "F[*]", "c": 3.0}])(round_twice),
    rewrite(lambda x: cumsum(x, axis=0), samples=[{"x": "T[n]"}])(keep_a_sum),
    rewrite(lambda x, p: transpose(x, perm=p), samples=[{"x": "T[m,n]", "p": (1, 0)}])(
        read_by_rows
    ),
]


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.name)
def test_a_wrong_rule_is_found(rule: Rule) -> None:
    with pytest.raises(AssertionError):
        check(rule, rule.samples[0])


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.name)
def test_users_see_that_a_rule_is_wrong(rule: Rule) -> None:
    with pytest.raises(VerifyError, match=f"rule {rule.name} computes something else: "):
        check_rule(rule)


def test_users_see_that_a_rule_never_applies() -> None:
    @rewrite(lambda x: add(x, 0.0), samples=[{"x": "F[*]"}])
    def hesitate(x: Tensor) -> Tensor | None:
        """Not now."""
        return None

    with pytest.raises(VerifyError, match="rule hesitate never applies to its sample"):
        check_rule(hesitate)


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "sample"), SAMPLES)
def test_a_rule_makes_a_program_smaller_or_says_why_not(rule: Rule, sample: Sample) -> None:
    before = usual(rule, sample).program
    after, _ = applied(before, rule)
    assert str(after) != str(before)
    assert rule.larger or len(after.body) <= len(before.body)


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "sample"), SAMPLES)
def test_all_rules_together_settle_on_it(rule: Rule, sample: Sample) -> None:
    before = usual(rule, sample).program
    after, fuel = applied(before, *RULES)
    assert fuel.log
    assert rule.larger or len(after.body) <= len(before.body)
    again, fuel = applied(after, *RULES)
    assert fuel.log == []
    assert again is after


@each_case
def test_rules_settle_on_the_table_of_ops_and_change_no_bit(case: Case) -> None:
    for sample in case.samples:
        made = inputs(sample, case.dtypes[0])
        recorder = Recorder(case.op)
        params = tuple(recorder.input(t, f"x{i}") for i, t in enumerate(made.types))
        with interpreter(recorder):
            result = OPS[case.op](*made.operands(params), **made.sample.attrs)
        whole = recorder.finish(several(result))
        for program in (whole, legalize(whole, CONTEXT)):
            after, _ = applied(program, *RULES)
            assert applied(after, *RULES)[1].log == []
            exact, _ = applied(program, *EXACT_RULES)
            verify(exact)
            assert all_same_bits(
                ReferencePlan(exact).run(made.arrays, {}),
                ReferencePlan(program).run(made.arrays, {}),
            )
