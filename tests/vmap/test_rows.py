"""Every row of the op table in a batch: the results are those of a Python loop over examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gptrs.ir.batching as rules
from gptrs import ptir
from gptrs.backends.reference import ReferencePlan
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import verify
from gptrs.ir.sample_arrays import same_bits
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from tests.cases import CASES, is_first
from tests.cases.sample import SIZES, Case, Inputs, inputs, several
from tests.support.marks import slow_unless

COUNT = 3

assert rules  # importing it gives every op its rule

MAPPABLE = [case for case in CASES if OPS[case.op].operand_names]
each_row = pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.op, marks=slow_unless(is_first(case))) for case in MAPPABLE],
)


def test_every_op_has_a_rule() -> None:
    missing = [
        name
        for name, op in OPS.items()
        if op.operand_names
        and not (op.elementwise or isinstance(op, Composite) or op.batching_rule)
    ]
    assert not missing, "give it one beside its declaration: see `Op.batching`"


def examples(case: Case, sample: Any) -> list[Inputs]:
    """The sample with other numbers for each example."""
    return [inputs(sample, case.dtypes[0], {**SIZES, "example": n}) for n in range(COUNT)]


def chosen(count: int) -> Iterator[tuple[bool, ...]]:
    """All operands mapped, and each of them alone."""
    yield (True,) * count
    if count > 1:
        for alone in range(count):
            yield tuple(n == alone for n in range(count))


def op_of(case: Case, made: Inputs) -> Any:
    def call(*arrays: Any) -> Any:
        return OPS[case.op](*made.operands(arrays), **made.sample.attrs)

    return call


@each_row
def test_a_batch_agrees_with_a_loop_over_its_examples(case: Case) -> None:
    for sample in case.samples:
        made = examples(case, sample)
        op = op_of(case, made[0])
        for mapped in chosen(len(made[0].arrays)):
            if not mapped:
                continue
            columns = list(zip(*[m.arrays for m in made], strict=True))
            given = [np.stack(c) if own else c[0] for c, own in zip(columns, mapped, strict=True)]
            each = [
                [c[n] if own else c[0] for c, own in zip(columns, mapped, strict=True)]
                for n in range(COUNT)
            ]
            singly = [several(op(*map(Tensor, arrays))) for arrays in each]
            axes = tuple(0 if own else None for own in mapped)
            batched = ptir.vmap(op, in_axes=axes)
            found = several(batched(*given))
            traced = _traced(batched, given)
            for place, result in enumerate(found):
                expected = np.stack([one[place].numpy() for one in singly])
                assert result.dtype == singly[0][place].dtype
                assert result.numpy().shape == expected.shape, (sample, mapped)
                wrong = case.differences(result.numpy(), expected)
                assert not wrong, (sample, mapped, wrong)
                assert same_bits(traced[place], result.numpy())


def _traced(function: Any, arrays: list[Array]) -> tuple[Array, ...]:
    """The results by way of a program."""
    recorder = Recorder("batched")
    params = [recorder.input(Tensor(x).type, f"x{n}") for n, x in enumerate(arrays)]
    with interpreter(recorder):
        program = recorder.finish(several(function(*params)))
    verify(program)
    return ReferencePlan(program).run(arrays, {})
