"""Failure rules of ops (`Fails`) against the errors that the NumPy meaning raises."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.reference import ReferencePlan
from gptrs.errors import ElementError
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Fails, Program
from gptrs.ir.sizes import failing_at_sizes, fails_at, filled
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type
from tests.cases import each_case
from tests.cases.sample import Case, draw, inputs, is_symbolic
from tests.cases.wrong import Wrong
from tests.cases.wrong_shapes import ELEMENTS
from tests.support.rows import trace


def recorded(function: Any, *types: str) -> Program:
    """The program of ``function`` for arguments of these types."""
    recorder = Recorder("f")
    with interpreter(recorder):
        made = function(*(recorder.input(Type.parse(t), f"x{i}") for i, t in enumerate(types)))
    return recorder.finish(made if isinstance(made, tuple) else (made,))


@pytest.mark.parametrize("row", ELEMENTS, ids=lambda row: row.words[0])
def test_what_fails_says_so(row: Wrong) -> None:
    types = [array.partition(" ")[0] for array in row.arrays]
    assert recorded(row.call, *types).fails is Fails.AT_ELEMENTS


@each_case
def test_what_says_never_never_fails(case: Case) -> None:
    """Whatever the elements are: extremes of integers and floats, at sizes from 1 up."""
    kept = {case.dtypes[0], case.dtypes[-1], *{"si32", "ui8"}.intersection(case.dtypes)}
    ran = 0
    for sample in case.samples:
        for dtype in sorted(kept):
            sizes: list[dict[str, int]] = [{"S": n} for n in (1, 2, 9)]
            made = inputs(sample, dtype, symbolic=is_symbolic(sample))
            program = trace(case, made)
            if program.fails is Fails.AT_ELEMENTS:
                continue
            for at in sizes if is_symbolic(sample) else sizes[:1]:
                if any(fails_at(i, at) for i in failing_at_sizes(program)):
                    continue
                rng = np.random.default_rng(0)
                arrays = [draw(filled(p.type, at), "any", rng) for p in program.params]
                ReferencePlan(program).run(arrays, at)
                ran += 1
    assert ran or OPS[case.op].__module__.rpartition(".")[2] not in ("shape", "reduce")


NEVER = [
    (lambda x, y: ptir.concat((x, y)), "f32[?S,3]", "f32[4,3]"),
    (lambda x: ptir.pad(x, low=(1, 0), high=(0, 2), interior=(3, 0)), "si8[?S,3]"),
    (lambda x: ptir.tile(x, reps=(2, 0)), "cf32[?S,3]"),
    (lambda x, y: ptir.rotary(x, y, y), "f32[?B,4,?S,8]", "f32[?S,4]"),
    (lambda x, y: x / y, "f32[?S]", "f32[?S]"),
    (lambda x: (x // 3, x % -2, x**2, x << 1), "si32[?S]"),
    (lambda x: x[1:], "f32[?S + 1]"),
    (lambda x: x[:, -1:], "f32[2,?S]"),
    (lambda x: ptir.argmax(x, axis=0), "f32[?S]"),
]
AT_SIZES = [
    (lambda x: x[2:5], "f32[?S]", 5),
    (lambda x: ptir.dynamic_slice(x, (0,), sizes=(4,)), "f32[?S]", 4),
    (lambda x: ptir.dynamic_update_slice(x, ptir.tile(x[:1], reps=(3,)), (0,)), "f32[?S]", 3),
    (lambda x: ptir.top_k(x, k=2), "f32[?S]", 2),
    (lambda x: ptir.reduce_window(x, reduce="add", window=(3,)), "f32[1,?S,2]", 3),
    (lambda x: ptir.argmax(x, axis=0), "f32[?S - 3]", 4),
    (lambda x: ptir.reduce_max(x), "si32[?S - 2]", 3),
    (lambda x: ptir.cond(x[0] > 0, lambda v: v[3:4], lambda v: v[:1], x), "f32[?S]", 4),
]


@pytest.mark.parametrize("given", NEVER, ids=lambda given: str(given[1]))
def test_these_never_fail(given: Any) -> None:
    function, *types = given
    assert recorded(function, *types).fails is Fails.NEVER


@pytest.mark.parametrize(("function", "type", "least"), AT_SIZES)
def test_sizes_decide(function: Any, type: str, least: int) -> None:
    """`fails_at` knows before a run at which sizes the meaning raises."""
    program = recorded(function, type)
    assert program.fails is Fails.AT_SIZES
    for size in range(least - 1, least + 3):
        sizes = {"S": size}
        said = any(fails_at(i, sizes) for i in failing_at_sizes(program))
        assert said == (size < least)
        x = np.ones([int(n) for n in filled(program.params[0].type, sizes).shape], np.float32)
        if said:
            with pytest.raises(ElementError):
                ReferencePlan(program).run([x.astype(program.params[0].type.dtype.numpy)], sizes)
        else:
            ReferencePlan(program).run([x.astype(program.params[0].type.dtype.numpy)], sizes)


@pytest.mark.parametrize("size", [3, 6])
def test_kernels_do_not_read_beyond_a_slice_that_may_not_fit(size: int) -> None:
    """A product of five rows, of an array that may have fewer."""

    @ptir.jit(dynamic={"x": {0: "S"}}, backend="faer")
    def f(x: Any, w: Any) -> Tensor:
        return x[0:5] @ w

    x, w = np.ones((size, 8), np.float32), np.ones((8, 4), np.float32)
    if size < 5:
        with pytest.raises(ElementError, match="do not fit extent 3"):
            f(x, w)
    else:
        np.testing.assert_array_equal(f(x, w).numpy(), x[:5] @ w)
