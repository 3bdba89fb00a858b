"""Idioms of composites: each is recognised, and the composite computes the same."""

# Small lambdas that are traced: their operands and results are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs.backends.reference import ReferencePlan
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import verify
from gptrs.passes.base import Context
from gptrs.passes.legalize import inlined
from gptrs.passes.raisable import RAISABLE
from gptrs.passes.raising import raise_composites
from tests.cases import CASES
from tests.cases.sample import all_same_bits, inputs, several
from tests.support import idioms, product_idioms
from tests.support.idioms import CONTEXT, NAMES, PLAIN, Claims, Row, arrays_for, label, ops, traced
from tests.support.product_idioms import ATTENTION, CONVOLUTION

FOUND = (*PLAIN, *ATTENTION, *CONVOLUTION)
MOVING = frozenset(["reshape", "broadcast_to", "transpose"])


@pytest.mark.parametrize("row", FOUND, ids=label)
def test_a_spelling_is_found(row: Row) -> None:
    program = traced(row)
    after = raise_composites(program, CONTEXT)
    verify(after)
    assert ops(after).count(row.op) == 1, str(after)
    assert set(ops(after)) - {row.op} <= row.left | MOVING, str(after)
    (found,) = [i for i in after.body if i.op.name == row.op]
    for name, value in row.attrs.items():
        same = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
        assert found.attrs[name] == same, name
    assert found.where is not None
    assert found.where.file in (idioms.__file__, product_idioms.__file__)
    arrays = arrays_for(row)
    before = ReferencePlan(program).run(arrays, row.sizes)
    raised = ReferencePlan(after).run(arrays, row.sizes)
    for a, b in zip(before, raised, strict=True):
        # The spelling rounds at other places; a narrow result may be off by one unit.
        tolerance = {"float32": 3e-6, "float16": 1e-3, "bfloat16": 8e-3}[b.dtype.name]
        wide = a.astype(np.float32), b.astype(np.float32)
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)
        assert np.isfinite(wide[0]).all()


@pytest.mark.parametrize("row", FOUND, ids=label)
def test_rounding_stays_where_that_is_asked_for(row: Row) -> None:
    program = traced(row)
    after = raise_composites(program, Context(Claims(), precise=True))
    assert row.op in ops(after) or not row.exact, str(after)
    arrays = arrays_for(row)
    before = ReferencePlan(program).run(arrays, row.sizes)
    assert all_same_bits(before, ReferencePlan(after).run(arrays, row.sizes))


@pytest.mark.parametrize("row", FOUND, ids=label)
def test_what_is_raised_stays(row: Row) -> None:
    program = traced(row)
    after = raise_composites(program, CONTEXT)
    assert raise_composites(after, CONTEXT) is after


def test_every_raisable_composite_is_found_somewhere() -> None:
    assert {row.op for row in FOUND} == NAMES
    assert all(raisable.doc for raisable in RAISABLE)


@pytest.mark.parametrize("case", [c for c in CASES if c.op in NAMES], ids=lambda case: case.op)
def test_a_definition_is_found_again(case: Any) -> None:
    found: list[bool] = []
    for sample in case.samples:
        made = inputs(sample, "f32")
        recorder = Recorder(case.op)
        params = tuple(recorder.input(t, f"x{i}") for i, t in enumerate(made.types))
        with interpreter(recorder):
            result = OPS[case.op](*made.operands(params), **made.sample.attrs)
        program = inlined(recorder.finish(several(result)), lambda _: False)
        after = raise_composites(program, CONTEXT)
        found.append(case.op in ops(after))
        before = ReferencePlan(program).run(made.arrays, {})
        for a, b in zip(ReferencePlan(after).run(made.arrays, {}), before, strict=True):
            np.testing.assert_allclose(a, b, rtol=3e-6, atol=3e-6)
    assert any(found)
