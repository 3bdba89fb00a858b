"""Passes preserve meaning; the runner and `verify` find passes that do not."""

# The parameters of a lambda have no types, and dtypes are given by name.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gptrs import events, ptir
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.errors import VerifyError
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.primitives import Primitive, primitive
from gptrs.ir.program import Instruction, Param, Program, Value, verify
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type
from gptrs.passes.base import Context, Hook, Pass, PassRan, Repeat, Stage, run_passes
from gptrs.passes.cse import eliminate_common_subexpressions
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.legalize import legalize
from gptrs.passes.pipeline import PIPELINE, lower
from tests.cases import each_case
from tests.cases.programs import assert_round_trip, record
from tests.cases.sample import inputs, is_symbolic, several

CONTEXT = Context(ReferenceBackend())


class Claims:
    """A target with kernels for some composites."""

    passes = ()

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked: list[str] = []

    def claims(self, instruction: Instruction) -> bool:
        self.asked.append(instruction.op.name)
        return instruction.op.name in self.names


def ops(program: Program) -> list[str]:
    return [instruction.op.name for instruction in program.body]


def run(program: Program, *arrays: Array) -> list[Any]:
    return [result.tolist() for result in ReferencePlan(program).run(arrays, {})]


def merged(function: Callable[..., Any], *types: str) -> list[str]:
    program = eliminate_common_subexpressions(record(function, *types), CONTEXT)
    verify(program)
    return ops(eliminate_dead_code(program, CONTEXT))


def test_what_is_the_same_is_computed_once() -> None:
    assert merged(lambda x: ptir.exp(x) + ptir.exp(x), "f32[3]") == ["exp", "add"]
    deep = lambda x: ptir.exp(-x) * ptir.exp(-x) + ptir.exp(-x)
    assert merged(deep, "f32[3]") == ["neg", "exp", "mul", "add"]
    nan = lambda x: (x * math.nan, x * math.nan)
    assert merged(nan, "f32[3]") == ["mul"]
    array = np.ones(3, np.float32)
    constants = lambda: (ptir.constant(value=array), ptir.constant(value=array.copy()))
    assert merged(constants) == ["constant"]
    several = lambda x, y: (ptir.concat((x, y)), ptir.concat([x, y]))
    assert merged(several, "f32[2]", "f32[2]") == ["concat"]
    assert merged(lambda x: (ptir.softmax(x), ptir.softmax(x, axis=-1)), "f32[3]") == ["softmax"]


def test_what_only_looks_the_same_is_not_merged() -> None:
    for function in (
        lambda x: (x * 1, x * 1.0),
        lambda x: (x * 0.0, x * -0.0),
        lambda x: (ptir.exp(x), ptir.log(x)),
        lambda x: (x - 1.0, 1.0 - x),
        lambda x: (ptir.reduce_sum(x, axes=0), ptir.reduce_sum(x, axes=0, keepdims=True)),
        lambda x: (ptir.cast(x, dtype="f16"), ptir.cast(x, dtype="bf16")),
        lambda x: (ptir.concat((x, x)), ptir.concat((x,))),
    ):
        assert len(merged(function, "f32[3]")) == 2
    flags = lambda x: (ptir.select(x, ptir.tensor([1, 2]), 1), ptir.equal(x, True))
    assert merged(flags, "i1[2]") == ["constant", "select", "equal"]
    zeros = lambda: tuple(ptir.constant(value=np.array(z, np.float32)) for z in (0.0, -0.0))
    assert merged(zeros) == ["constant", "constant"]
    dtypes = lambda: tuple(ptir.constant(value=np.zeros(2, d)) for d in (np.int32, np.float32))
    assert merged(dtypes) == ["constant", "constant"]


def test_one_and_true_are_two_literals() -> None:
    recorder = Recorder("f")
    x = recorder.input(Type.parse("i1[2]"), "x")
    y = recorder.input(Type.parse("si32[2]"), "y")
    with interpreter(recorder):
        results = [ptir.equal(x, True), ptir.equal(y, 1), ptir.equal(x, True)]
    program = eliminate_common_subexpressions(recorder.finish(results), CONTEXT)
    assert len(program.body) == 2
    assert program.results[0] is program.results[2]


def test_what_nobody_reads_goes() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        ptir.exp(ptir.log(y))
        kept = -x
        _ = kept * y
        return kept

    program = record(function, "f32[3]", "f32[3]")
    after = eliminate_dead_code(program, CONTEXT)
    assert ops(after) == ["neg"]
    assert len(after.params) == 2  # what comes in stays
    assert ops(eliminate_dead_code(record(lambda x: x, "f32[3]"), CONTEXT)) == []


def nested(x: Tensor, w: Tensor) -> Tensor:
    return ptir.gelu_quick(ptir.layer_norm(x, w)) + ptir.mean(x)


def test_composites_are_replaced_to_any_depth() -> None:
    program = record(nested, "f32[2,3]", "f32[3]")
    after = legalize(program, CONTEXT)
    verify(after)
    assert ops(program) == ["layer_norm", "gelu_quick", "mean", "broadcast_to", "add"]
    assert not any(isinstance(i.op, Composite) for i in after.body)
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    assert run(after, x, x[0]) == run(program, x, x[0])


def test_a_target_claims_what_it_has_a_kernel_for() -> None:
    program = record(nested, "f32[2,3]", "f32[3]")
    inner = Claims("sigmoid")
    after = legalize(program, Context(inner))
    assert ops(after).count("sigmoid") == 1  # in gelu_quick, which is not claimed
    assert "gelu_quick" not in ops(after)
    outer = Claims("layer_norm", "gelu_quick")
    after = legalize(program, Context(outer))
    assert ops(after)[:2] == ["layer_norm", "gelu_quick"]
    assert "sigmoid" not in outer.asked
    assert set(inner.asked) <= {name for name, op in OPS.items() if isinstance(op, Composite)}


def test_inlined_instructions_carry_the_users_line() -> None:
    program = record(nested, "f32[2,3]", "f32[3]")
    lines = {i.where.line for i in legalize(program, CONTEXT).body if i.where}
    assert lines == {nested.__code__.co_firstlineno + 1}
    assert all(i.where for i in legalize(program, CONTEXT).body)


@each_case
def test_a_second_time_the_pipeline_changes_nothing(case: Any) -> None:
    for sample in case.samples[:6]:
        made = inputs(sample, case.dtypes[0], symbolic=is_symbolic(sample))
        recorder = Recorder(case.op)
        params = tuple(recorder.input(t, f"x{i}") for i, t in enumerate(made.types))
        with interpreter(recorder):
            result = OPS[case.op](*made.operands(params), **made.sample.attrs)
        once = lower(recorder.finish(several(result)), CONTEXT)
        assert str(lower(once, CONTEXT)) == str(once)


def passes_of(stage: Stage) -> tuple[Pass, ...]:
    if isinstance(stage, Repeat):
        return stage.passes
    return () if isinstance(stage, Hook) else (stage,)


def test_the_runner_reports_every_pass() -> None:
    program = record(nested, "f32[2,3]", "f32[3]")
    seen: list[object] = []
    with events.listen(seen.append):
        after = lower(program, CONTEXT)
    ran = [event for event in seen if isinstance(event, PassRan)]
    names = {each.__name__ for stage in PIPELINE for each in passes_of(stage)}
    assert {event.name for event in ran} == names
    assert ran[0].before is program
    assert ran[-1].after is after
    for earlier, later in pairwise(ran):
        assert earlier.after is later.before
    assert all(event.seconds >= 0 for event in ran)


def drop_the_first(program: Program, context: Context) -> Program:
    return program.with_body(program.body[1:], program.results)


def return_the_parameter(program: Program, context: Context) -> Program:
    return program.with_body(program.body, [program.params[0]])


def return_nothing(program: Program, context: Context) -> Program:
    return program.with_body(program.body, [])


@pytest.mark.parametrize("broken", [drop_the_first, return_the_parameter, return_nothing])
def test_a_broken_pass_is_named(broken: Pass) -> None:
    program = record(lambda x: ptir.exp(x).sum(), "f32[3]")
    with pytest.raises(VerifyError, match=f"pass {broken.__name__}: f"):
        run_passes(program, [eliminate_dead_code, broken], CONTEXT)
    run_passes(program, [eliminate_dead_code, broken], CONTEXT, check=False)


F32 = Type.parse("f32[2]")


def program_of(
    *body: Instruction, params: tuple[Param, ...], results: tuple[Value, ...]
) -> Program:
    return Program("f", params, body, results)


def test_verify_finds_what_is_not_well_formed() -> None:
    x, y, z = Param(F32, "x"), Value(F32, "y"), Value(F32, "z")
    exp, add = OPS["exp"], OPS["add"]
    first = Instruction(exp, (x,), {}, (y,))
    good = program_of(first, Instruction(add, (y, 1.0), {}, (z,)), params=(x,), results=(z, y, x))
    verify(good)
    wide = Value(Type.parse("f64[2]"))
    wrong: list[tuple[str, Program]] = [
        (
            "not defined before it",
            program_of(Instruction(add, (y, x), {}, (z,)), first, params=(x,), results=(z,)),
        ),
        (
            "not defined before it",
            program_of(Instruction(exp, (y,), {}, (y,)), params=(x,), results=(y,)),
        ),
        (
            "not defined before it",
            program_of(
                Instruction(OPS["concat"], ((x, z),), {"axis": 0}, (y,)), params=(x,), results=(y,)
            ),
        ),
        ("returns a value that is not defined", program_of(first, params=(x,), results=(z,))),
        ("defined twice", program_of(first, first, params=(x,), results=(y,))),
        (
            "defined twice",
            program_of(first, Instruction(exp, (y,), {}, (x,)), params=(x,), results=(y,)),
        ),
        ("defined twice", program_of(params=(x, x), results=(x,))),
        ("two parameters have one name", program_of(params=(x, Param(F32, "x")), results=(x,))),
        (
            "its type rule says",
            program_of(Instruction(exp, (x,), {}, (wide,)), params=(x,), results=(wide,)),
        ),
        (
            "its type rule says",
            program_of(Instruction(exp, (x,), {}, (y, z)), params=(x,), results=(y,)),
        ),
        (
            "its operands do not fit",
            program_of(Instruction(add, (x, True), {}, (y,)), params=(x,), results=(y,)),
        ),
        (
            "its operands do not fit",
            program_of(
                Instruction(OPS["transpose"], (x,), {"perm": (1, 0)}, (y,)),
                params=(x,),
                results=(y,),
            ),
        ),
    ]
    for words, program in wrong:
        with pytest.raises(VerifyError, match=f"^f.*{words}"):
            verify(program)


@pytest.fixture
def twice() -> Iterator[Primitive[Any, Tensor]]:
    """An op with a region: its body applied two times."""

    def apply_twice(x: Tensor, *, body: Program) -> Type:
        return body.results[0].type

    op = primitive(apply_twice)

    @op.numpy
    def _(x: Array, *, body: Program) -> Array:
        for _ in range(2):
            (x,) = ReferencePlan(body).run((x,), {})
        return x

    yield op
    del OPS[op.name]


def test_a_region_is_printed_read_verified_and_run(twice: Primitive[Any, Tensor]) -> None:
    inner = record(lambda x: ptir.relu(x) * 2.0, "f32[?S]", name="inner")
    outer = record(lambda x: twice(x, body=inner) + twice(-x, body=inner), "f32[?S]")
    text = str(outer)
    assert '    def region0(x0: "f32[?S]"):\n        v0 = ptir.relu(x0)' in text
    assert "ptir.apply_twice(x0, body=region0)" in text
    assert "body=region1" in text
    read = assert_round_trip(outer)
    x = np.array([1, -2, 3], np.float32)
    for program in (outer, read, lower(outer, CONTEXT)):
        (result,) = ReferencePlan(program).run((x,), {"S": 3})
        assert result.tolist() == [4, 8, 12]


def test_regions_nest(twice: Primitive[Any, Tensor]) -> None:
    inner = record(lambda x: x + 1.0, "f32[2]")
    middle = record(lambda x: twice(x, body=inner), "f32[2]")
    outer = assert_round_trip(record(lambda x: twice(x, body=middle), "f32[2]"))
    assert run(outer, np.zeros(2, np.float32)) == [[4, 4]]


def test_a_bad_region_is_found(twice: Primitive[Any, Tensor]) -> None:
    inner = record(lambda x: ptir.exp(x), "f32[2]", name="inner")
    outer = record(lambda x: twice(x, body=inner), "f32[2]")
    (instruction,) = outer.body
    broken = replace(instruction, attrs={"body": inner.with_body([], inner.results)})
    with pytest.raises(VerifyError, match="inner returns a value that is not defined"):
        verify(outer.with_body([broken], outer.results))


def test_the_fixture_leaves_no_op_behind() -> None:
    assert "apply_twice" not in OPS
