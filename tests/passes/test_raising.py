"""Raising of composites: what is raised, and what must stay (other uses, fuel, targets)."""

# Small lambdas that are traced: their operands and results are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.discovery import get_backend
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.ir.program import Program, verify
from gptrs.ir.rewrite import Fuel
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from gptrs.passes.raising import raise_composites
from tests.cases.programs import record
from tests.support.idioms import (
    CONTEXT,
    SQRT,
    Claims,
    Q,
    Row,
    arrays_for,
    cubic,
    layer_norm_defined,
    layer_norm_of_powers,
    layer_norm_of_sums,
    ops,
    softmax,
    traced,
)
from tests.support.product_idioms import DYNAMIC, causal, masked_by


def softmax_without_maximum(x):
    e = ptir.exp(x)
    return e / e.sum(-1, keepdims=True)


def softmax_of_another_maximum(x):
    e = ptir.exp(x - x.max(0, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_of_the_other_sums(x):
    e = ptir.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1)  # of a square matrix: the sums of the rows divide the columns


def normalised(count, eps=1e-5, axis=-1):
    def norm(x):
        c = x - x.sum(axis, keepdims=True) / count
        return c * ptir.rsqrt((c * c).sum(axis, keepdims=True) / count + eps)

    return norm


def with_a_mask_from_outside(q, k, v, mask):
    return ptir.softmax(q @ k.mT + mask) @ v


def with_a_finite_fill_per_row(q, k, v, length):
    j = ptir.iota(shape=(1, 1, 1, k.shape[2]), axis=3)
    scores = q @ k.mT * 0.5
    return ptir.softmax(ptir.select(j < length[:, None, None, None], scores, -1e9)) @ v


def rotated_back(x, cos, sin):
    return x * cos + ptir.concat((x[..., 4:], -x[..., :4]), axis=-1) * sin


def rotated_by_thirds(x, cos, sin):
    return x * cos + ptir.concat((-x[..., 2:], x[..., :2]), axis=-1) * sin


def up_to_two_places(q, k, v, at, end):
    i, j = (ptir.arange(6) + at)[:, None], ptir.arange(6)[None]
    return ptir.softmax(ptir.where((j <= i) & (j < end), q @ k.mT, -math.inf)) @ v


SHORT = "f32[2,4,6,8] f32[2,4,3,8] f32[2,4,3,8]"
STAYS: tuple[tuple[str, str, Callable[..., Any], str], ...] = (
    ("large numbers overflow", "softmax", softmax_without_maximum, "f32[3,5]"),
    ("the maximum of columns", "softmax", softmax_of_another_maximum, "f32[5,5]"),
    ("sums at another place", "softmax", softmax_of_the_other_sums, "f32[5,5]"),
    ("√½ is 0.7071", "gelu", lambda x: 0.5 * x * (1 + ptir.erf(x * 0.7)), "f32[3]"),
    ("two operands", "silu", lambda x, y: x * ptir.sigmoid(y), "f32[3] f32[3]"),
    ("the sign", "sigmoid", lambda x: 1 / (1 + ptir.exp(x)), "f32[3]"),
    ("a factor too many", "gelu", lambda x: x * (1 + ptir.erf(x / math.sqrt(2))), "f32[3]"),
    ("NaN", "relu", lambda x: ptir.select(x > 0, x, 0), "f32[3]"),
    ("another count", "layer_norm", normalised(7), "f32[3,8]"),
    ("the first axis", "layer_norm", normalised(8, axis=0), "f32[8,8]"),
    ("an own key is not seen", "attention", masked_by(lambda i, j: j < i), f"{Q} {Q} {Q}"),
    ("later keys are seen", "attention", masked_by(lambda i, j: j <= i + 1), f"{Q} {Q} {Q}"),
    ("one more, symbolic", "attention", masked_by(lambda i, j: j <= i + 1), DYNAMIC),
    ("every second", "attention", masked_by(lambda i, j: (j - i) % 2 == 0), f"{Q} {Q} {Q}"),
    ("hidden keys count", "attention", masked_by(lambda i, j: j <= i, -10.0), f"{Q} {Q} {Q}"),
    ("nobody is seen", "attention", masked_by(lambda i, j: j <= i, -1e9), SHORT),
    ("nobody may be seen", "attention", with_a_finite_fill_per_row, f"{Q} {Q} {Q} si32[2]"),
    ("the other sign", "rotary", rotated_back, "f32[5,8] f32[5,8] f32[5,8]"),
    ("unequal halves", "rotary", rotated_by_thirds, "f32[5,6] f32[5,6] f32[5,6]"),
    ("two places", "attention", up_to_two_places, f"{Q} {Q} {Q} si32[] si32[]"),
    ("any mask", "attention", with_a_mask_from_outside, f"{Q} {Q} {Q} f32[6,6]"),
    (
        "the queries are weighted",
        "attention",
        lambda q, k, v: ptir.softmax(q @ k.mT, axis=-2) @ v,
        f"{Q} {Q} {Q}",
    ),
)


@pytest.mark.parametrize(
    ("why", "op", "function", "types"), STAYS, ids=[f"{op}: {why}" for why, op, *_ in STAYS]
)
def test_what_means_something_else_stays(
    why: str, op: str, function: Callable[..., Any], types: str
) -> None:
    program = record(function, *types.split())
    assert op not in ops(raise_composites(program, CONTEXT)), why


def test_a_query_that_sees_no_key_gives_0() -> None:
    row = Row("attention", masked_by(lambda i, j: j <= i), SHORT)
    program = traced(row)
    after = raise_composites(program, CONTEXT)
    assert "attention" in ops(after)
    arrays = arrays_for(row)
    (before,) = ReferencePlan(program).run(arrays, {})
    (raised,) = ReferencePlan(after).run(arrays, {})
    assert np.isnan(before[:, :, :3]).all()
    assert not raised[:, :, :3].any()
    np.testing.assert_allclose(raised[:, :, 3:], before[:, :, 3:], rtol=3e-6, atol=3e-6)


def test_what_no_kernel_is_for_stays_as_it_is() -> None:
    program = record(lambda x: softmax(x), "f32[3,5]")
    assert raise_composites(program, Context(ReferenceBackend())) is program
    assert raise_composites(program, Context(Claims(frozenset(["gelu"])))) is program


def test_a_composite_in_another_need_not_have_a_kernel() -> None:
    program = record(causal, Q, Q, Q)
    after = raise_composites(program, Context(Claims(frozenset(["attention"]))))
    assert ops(after) == ["attention"]
    assert "softmax" in ops(raise_composites(program, Context(Claims(frozenset(["softmax"])))))


def test_a_composite_that_an_override_picks_stays() -> None:
    program = record(layer_norm_defined, "f32[3,8]", "f32[8]", "f32[8]")

    def choose(instruction: Any) -> Program | None:
        return program if instruction.op.name == "mean" else None

    assert raise_composites(program, Context(Claims(), choose=choose)) is program


def test_values_that_others_need_are_not_computed_twice() -> None:
    def all_of_it(x):
        e = ptir.exp(x - x.max(-1, keepdims=True))
        total = e.sum(-1, keepdims=True)
        return e / total, e, total

    program = record(all_of_it, "f32[3,5]")
    assert raise_composites(program, CONTEXT) is program

    def weights_too(q, k, v):
        weights = softmax(q @ k.mT * 0.5)
        return weights @ v, weights

    found = ops(raise_composites(record(weights_too, Q, Q, Q), CONTEXT))
    assert "softmax" in found
    assert "attention" not in found

    def mean_too(x):
        m = x.mean(-1, keepdims=True)
        return (x - m) / ptir.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5), m

    after = raise_composites(record(mean_too, "f32[3,8]"), CONTEXT)
    assert ops(after).count("layer_norm") == 1
    assert ops(after).count("reduce_sum") == 1


def test_every_raise_spends_fuel() -> None:
    program = record(lambda x: softmax(softmax(x)) * ptir.erf(x), "f32[3,5]")
    for left in range(4):
        fuel = Fuel(left)
        after = raise_composites(program, Context(Claims(), fuel))
        assert ops(after).count("softmax") == min(left, 2)
        assert fuel.log == ["raise softmax"] * min(left, 2)
        verify(after)


def test_spellings_in_each_other() -> None:
    def block(x, w):
        y = layer_norm_of_sums(x, w, w)
        return softmax(y / (1 + ptir.exp(-y)))

    after = raise_composites(record(block, "f32[3,8]", "f32[8]"), CONTEXT)
    assert ops(after) == ["layer_norm", "silu", "softmax"]


def test_a_program_without_spellings_stays_the_same_one() -> None:
    def deep(x, w, b):
        for _ in range(100):
            x = ptir.linear(ptir.gelu(ptir.layer_norm(x, b, b)), w, b) + x
        return x

    program = record(deep, "f32[3,8]", "f32[8,8]", "f32[8]")
    assert raise_composites(program, CONTEXT) is program


FAER: tuple[tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]], ...] = (
    ("gpt_rs.faer.softmax.f32.v1", lambda x: softmax(x), ((4, 6),)),
    ("gpt_rs.faer.layer_norm.f32.v1", layer_norm_of_powers, ((4, 8), (8,), (8,))),
    (
        "gpt_rs.faer.rms_norm.f32.v1",
        lambda x, w: w * (x * ptir.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6)),
        ((4, 8), (8,)),
    ),
    ("gpt_rs.faer.attention.f32.v1", causal, ((2, 4, 6, 8),) * 3),
    (
        "gpt_rs.faer.matmul.f32.v1",
        lambda x, w: 0.5 * (x @ w) * (1 + ptir.tanh(SQRT * cubic(x @ w))),
        ((4, 8), (8, 8)),
    ),
)


@pytest.mark.parametrize(("target", "function", "shapes"), FAER, ids=[name for name, *_ in FAER])
def test_a_spelling_runs_in_the_kernel(
    target: str, function: Callable[..., Any], shapes: Sequence[tuple[int, ...]]
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    jitted = ptir.jit(backend="faer")(function)
    (step,) = jitted.explain(*arrays).report.steps
    assert (step.kind, step.name) == ("call", target)
    with ptir.backend("reference"):
        expected = ptir.jit(function)(*arrays)
    np.testing.assert_allclose(jitted(*arrays), expected, rtol=1e-5, atol=1e-5)


def test_the_pipeline_raises() -> None:
    program = record(softmax, "f32[3,5]")
    assert ops(lower(program, Context(get_backend("faer")))) == ["custom_call"]
    assert "custom_call" not in ops(lower(program, Context(ReferenceBackend())))
