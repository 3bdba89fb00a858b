"""Transpose pushdown: what lies between kernels with channels last, with the same results."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir as namespace
from gptrs.backends.reference import ReferenceBackend
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.ops.shape import transpose
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Program, verify
from gptrs.ir.rewrite import Fuel
from gptrs.ir.types import Type, f32
from gptrs.passes.base import Context
from gptrs.passes.cse import eliminate_common_subexpressions
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.simplify import simplify
from gptrs.passes.transpose_pushdown import push_transposes
from tests.cases.sample import several

ptir: Any = namespace  # its functions take more than the ops that the checker knows
RNG = np.random.default_rng(0)


def parameter(name: str, *shape: int) -> Parameter:
    return Parameter(RNG.standard_normal(shape).astype(np.float32), name)


POINT, WIDE = parameter("point", 3, 3, 1, 1), parameter("wide", 3, 3, 3, 3)
BIAS = parameter("bias", 3, 1, 1)
X = Type((2, 3, 6, 5), f32)


def conv(x: Any) -> Any:
    """A convolution in torch's layout."""
    return ptir.nn.conv2d(x, POINT)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    # Transposes that are left of activations: the first, and one to a result with its channels
    # first.
    "an activation": (lambda x: ptir.relu(conv(x)), 2),
    "a chain": (lambda x: conv(ptir.tanh(ptir.relu(conv(x)) * 2.0) + 1), 2),
    "a residual": (lambda x: conv(ptir.relu(conv(x) + conv(conv(x)))), 2),
    "a border": (
        lambda x: ptir.relu(ptir.pad(conv(x), ((0, 0), (1, 0), (2, 3), (0, 4)))),
        2,
    ),
    "a join": (lambda x: ptir.relu(ptir.concat([conv(x), conv(conv(x))], axis=1)), 2),
    "a mean of planes": (lambda x: ptir.mean(ptir.relu(conv(x)), axis=(2, 3)), 1),
    "planes that stay": (lambda x: conv(x) / ptir.sum(conv(x), axis=(2, 3), keepdims=True), 2),
    "a maximum of channels": (lambda x: ptir.amax(conv(x), axis=1), 1),
    "one row": (lambda x: ptir.sum(conv(x), axis=2), 2),
    "a stored operand": (lambda x: conv(ptir.relu(conv(x) + ptir.reshape(BIAS, (1, 3, 1, 1)))), 2),
    "an operand of a call": (lambda x: conv(conv(x) + x), 4),
    "two uses": (lambda x: (conv(ptir.relu(conv(x))), ptir.relu(conv(x))), 3),
    "no convolution": (lambda x: ptir.relu(ptir.transpose(x, (0, 3, 1, 2))), 1),
    "a condition": (lambda x: conv(ptir.where(conv(x) > 0, conv(x), 0.5)), 2),
}


def traced(function: Callable[[Any], Any]) -> Program:
    recorder = Recorder("f")
    x = recorder.input(X, "x")
    with interpreter(recorder):
        results = several(function(x))
    return recorder.finish(results)


def moved(before: Program, *, precise: bool = False, fuel: Fuel | None = None) -> Program:
    """The program after the pass, which is cleaned up before and after as the pipeline does."""
    context = Context(ReferenceBackend(), precise=precise, fuel=fuel or Fuel())
    clean = eliminate_common_subexpressions(simplify(before, context), context)
    after = push_transposes(clean, context)
    verify(after)
    merged = eliminate_common_subexpressions(simplify(after, context), context)
    return eliminate_dead_code(merged, context)


def of_activations(program: Program) -> int:
    """The number of transposes of what is no weight."""
    return sum(
        instruction.op is transpose and instruction.result.type.shape != (1, 1, 3, 3)
        for instruction in program.body
        if instruction.results[0].type.rank == 4 and 2 in instruction.results[0].type.shape[:1]
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transposes_move_to_where_they_are_undone(name: str) -> None:
    function, left = FUNCTIONS[name]
    after = moved(traced(function))
    assert of_activations(after) == left


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_stay(name: str) -> None:
    function, _ = FUNCTIONS[name]
    x = RNG.standard_normal(X.shape).astype(np.float32)
    jitted = ptir.jit(function)
    with ptir.backend("reference"):
        found = several(jitted(x))
    with ptir.eager():
        wanted = several(jitted(x))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_sums_stay_in_precise_programs() -> None:
    function, _ = FUNCTIONS["a mean of planes"]
    after = moved(traced(function), precise=True)
    assert of_activations(after) == 2


def test_fuel_stops_it() -> None:
    function, _ = FUNCTIONS["a chain"]
    before = traced(function)
    assert of_activations(moved(before, fuel=Fuel(0))) > 2


def test_activations_are_part_of_the_kernels() -> None:
    """A residual block in torch's layout: convolutions, and a copy at either end."""

    def block(x: Any) -> Any:
        inner = ptir.relu(ptir.nn.conv2d(x, WIDE, padding=1))
        return ptir.relu(ptir.nn.conv2d(inner, WIDE, padding=1) + x)

    x = np.zeros(X.shape, np.float32)
    report = ptir.jit(block).explain(x).report
    assert len(report.steps) <= 4
