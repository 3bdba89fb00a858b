"""Every row of the op table: type rule, reference, torch, jit, eager, text and passes agree."""

# torch is only partly typed, and dtypes are given by name.
# pyright: reportUnknownMemberType=false, reportArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.ir.composites import Composite
from gptrs.ir.dims import size_at
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Program, verify
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, as_dtype
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.cases import CASES, is_first
from tests.cases.programs import retrace
from tests.cases.sample import (
    SIZES,
    Case,
    Inputs,
    Sample,
    all_same_bits,
    inputs,
    is_symbolic,
    narrowed,
    several,
    wide,
)
from tests.support.lazy_torch import torch
from tests.support.marks import slow_unless

# Without the rules that round: those have tests of their own.
EXACT = Context(ReferenceBackend(), precise=True)
exactly = ptir.jit(precise=True)


Dtypes = Callable[[Case], Iterable[str]]


def rows(dtypes: Dtypes, quick: Callable[[Case], bool]) -> pytest.MarkDecorator:
    """Each row at these dtypes: for ``quick`` rows quick at the first."""
    params = [
        pytest.param(c, d, id=f"{c.op}-{d}", marks=slow_unless(quick(c) and d == c.dtypes[0]))
        for c in CASES
        for d in dtypes(c)
    ]
    return pytest.mark.parametrize(("case", "dtype"), params)


def few(case: Case) -> Iterable[str]:
    """Where the dtype changes little, two of them are enough."""
    return dict.fromkeys((case.dtypes[0], case.dtypes[-1]))


every_row = rows(lambda case: case.dtypes, is_first)
few_rows = rows(few, is_first)


def call(case: Case, made: Inputs, arrays: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The results of the op on ``arrays``, by whatever interpreter is current."""
    return several(OPS[case.op](*made.operands(arrays), **made.sample.attrs))


def eager(case: Case, made: Inputs) -> tuple[Array, ...]:
    return arrays_of(call(case, made, tuple(map(Tensor, made.arrays))))


def arrays_of(results: tuple[Tensor, ...]) -> tuple[Array, ...]:
    return tuple(result.numpy() for result in results)


def trace(case: Case, made: Inputs) -> Program:
    recorder = Recorder(case.op)
    params = tuple(recorder.input(t, f"x{i}") for i, t in enumerate(made.types))
    with interpreter(recorder):
        return recorder.finish(call(case, made, params))


def constants(sample: Sample) -> list[Any]:
    return [value for value in sample.attrs.values() if isinstance(value, np.ndarray)]


def run(program: Program, arrays: tuple[Array, ...], sizes: Mapping[str, int]) -> tuple[Array, ...]:
    return ReferencePlan(program).run(arrays, sizes)


def test_every_op_has_a_row_and_every_row_an_op() -> None:
    assert {case.op for case in CASES} == set(OPS)


def test_every_row_says_why() -> None:
    for case in CASES:
        assert bool(case.ulps) == bool(case.why), case.op
        assert any(map(is_symbolic, case.samples)) != bool(case.fixed), case.op


@rows(lambda case: case.dtypes, lambda case: True)
def test_types_are_what_the_rule_says(case: Case, dtype: str) -> None:
    for sample in case.samples:
        made = inputs(sample, dtype)
        traced = trace(case, made).results
        results = call(case, made, tuple(map(Tensor, made.arrays)))
        for result, expected in zip(results, traced, strict=True):
            assert result.type == Type.of(result.numpy()) == expected.type, sample


@every_row
def test_reference_agrees_with_torch(case: Case, dtype: str) -> None:
    torch.set_num_threads(1)
    for sample in case.samples:
        made = inputs(sample, dtype)
        found = call(case, made, tuple(map(Tensor, made.arrays)))
        tensors = tuple(torch.from_numpy(wide(array)) for array in made.arrays)
        results = several(case.torch(*made.operands(tensors), **made.sample.attrs))
        for result, tensor in zip(found, results, strict=True):
            expected = narrowed(tensor.resolve_conj().numpy(), result.dtype)
            wrong = case.differences(result.numpy(), expected)
            assert not wrong, f"{sample}: {wrong}"


@pytest.mark.usefixtures("reference")
@few_rows
def test_jit_agrees_with_eager_and_neither_shares_memory(case: Case, dtype: str) -> None:
    for sample in case.samples:
        made = inputs(sample, dtype)
        given: list[Array] = [*made.arrays, *map(np.asarray, constants(sample))]
        before = [array.tobytes() for array in given]
        function = exactly(lambda *arrays: call(case, made, arrays))  # noqa: B023 - called here
        compiled = arrays_of(function(*made.arrays))
        with ptir.eager():
            run_eagerly = arrays_of(function(*made.arrays))
        assert all_same_bits(compiled, run_eagerly), sample
        for array, result in product(given, (*compiled, *run_eagerly)):
            assert not np.may_share_memory(result, array), sample
        assert [array.tobytes() for array in given] == before, sample


@pytest.mark.slow
@few_rows
def test_text_gives_the_program_again(case: Case, dtype: str) -> None:
    for sample in case.samples:
        for symbolic in {False, is_symbolic(sample)}:
            program = trace(case, inputs(sample, dtype, symbolic=symbolic))
            text = str(program)
            assert str(ptir.parse(text)) == text
            assert str(retrace(text)) == text
            lowered = str(lower(program, EXACT))
            assert str(ptir.parse(lowered)) == lowered


@every_row
def test_passes_do_not_change_a_bit(case: Case, dtype: str) -> None:
    for sample in case.samples:
        made = inputs(sample, dtype)
        program = trace(case, made)
        lowered = lower(program, EXACT)
        assert not any(isinstance(i.op, Composite) for i in lowered.body)
        expected = eager(case, made)
        assert all_same_bits(run(program, made.arrays, {}), expected), sample
        assert all_same_bits(run(lowered, made.arrays, {}), expected), sample


@few_rows
def test_a_symbolic_program_serves_every_size(case: Case, dtype: str) -> None:
    for sample in filter(is_symbolic, case.samples):
        made = inputs(sample, dtype, symbolic=True)
        program = trace(case, made)
        verify(program)
        lowered = lower(program, EXACT)
        for sizes in ({"S": 1}, SIZES, {"S": 5}):
            concrete = inputs(sample, dtype, sizes)
            expected = eager(case, concrete)
            for array, result in zip(expected, program.results, strict=True):
                assert array.shape == tuple(size_at(n, sizes) for n in result.type.shape)
            assert all_same_bits(run(program, concrete.arrays, sizes), expected), (sample, sizes)
            assert all_same_bits(run(lowered, concrete.arrays, sizes), expected), (sample, sizes)


@pytest.mark.parametrize("target", ["si4", "ui4", "si8", "ui8", "si32", "ui32", "si64", "ui64"])
@pytest.mark.parametrize("source", ["f64", "f32", "f16", "bf16", "fp8_e5m2"])
def test_cast_to_integers_truncates_and_saturates(source: str, target: str) -> None:
    low, high = as_dtype(target).limits
    ends = [float(v) for v in (low, high, low - 1, high + 1, low / 2, high / 2)]
    values = [*ends, 0.0, -0.0, 0.99, -0.99, 2.5, -2.5, 1e30, -1e30, math.inf, -math.inf, math.nan]
    given = ptir.cast(ptir.tensor(np.array(values)), dtype=source)
    found = ptir.cast(given, dtype=target).numpy().astype(object)
    for value, integer in zip(given.numpy().astype(float), found, strict=True):
        whole = 0 if math.isnan(value) else int(max(min(value, 2.0**70), -(2.0**70)))
        assert int(integer) == min(max(whole, low), high), value


def test_narrow_floats_are_rounded_once() -> None:
    one, tiny = (ptir.tensor(np.array([v]), dtype="bf16") for v in (1.0, 2.0**-9))
    assert (one + tiny).numpy()[0] == 1  # each sum is rounded,
    terms = ptir.concat((one, *[tiny] * 8))
    assert ptir.reduce_sum(terms).item() == 1 + 2.0**-6  # but not the steps of a reduction
    biased = ptir.linear(terms, ptir.broadcast_to(one, shape=(1, 9)), tiny)
    assert biased.item() == 1 + 2.0**-6


def test_f64_is_rounded_once_to_bf16() -> None:
    tie = 1 + 2**-8  # half way between 1 and the next bf16, and even is 1
    values = np.array([tie, tie + 2**-40, -tie - 2**-40, tie - 2**-40, np.inf, np.nan, 1e300])
    rounded = ptir.cast(ptir.tensor(values), dtype="bf16").numpy().astype(np.float64)
    above = 1 + 2**-7
    np.testing.assert_array_equal(rounded, [1, above, -above, 1, np.inf, np.nan, np.inf])


def test_bits_of_a_product_do_not_depend_on_where_elements_lie() -> None:
    random = np.random.default_rng(0)
    row, x = (ptir.tensor(random.standard_normal(n, np.float32)) for n in ((1, 8), 8))

    def product(rows: Tensor) -> Array:
        return ptir.dot_general(rows, x, contract_lhs=(1,), contract_rhs=(0,)).numpy()

    expanded = product(ptir.broadcast_to(row, shape=(3, 8)))
    np.testing.assert_array_equal(expanded, product(ptir.tile(row, reps=(3, 1))))
