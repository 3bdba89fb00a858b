"""Constant folding: subprograms of constants are evaluated once, unless the program grows."""

# The parameters of a lambda have no types, and dtypes are given by name.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.errors import ElementError
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Program, verify
from gptrs.ir.rewrite import Fuel
from gptrs.passes.base import Context
from gptrs.passes.constant_folding import fold_constants
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.legalize import legalize
from tests.cases import each_case
from tests.cases.programs import record
from tests.cases.sample import Case, all_same_bits, inputs, several

CONTEXT = Context(ReferenceBackend())
ROW = np.arange(6, dtype=np.float32)


def folded(program: Program, fuel: Fuel | None = None) -> Program:
    context = Context(ReferenceBackend(), fuel or Fuel())
    after = eliminate_dead_code(fold_constants(program, context), context)
    verify(after)
    return after


def ops(function: Callable[..., Any], *types: str) -> list[str]:
    """The ops that are left, after the results were compared."""
    before = record(function, *types)
    after = folded(before)
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 2, [int(n) for n in p.type.shape]).astype(p.type.dtype.numpy)
        for p in before.params
    ]
    assert all_same_bits(
        ReferencePlan(after).run(arrays, {}), ReferencePlan(before).run(arrays, {})
    )
    return [instruction.op.name for instruction in after.body]


def constant(array: Any = ROW) -> Any:
    return ptir.constant(value=np.asarray(array))


FOLDS: list[tuple[str, Callable[..., Any], str, list[str]]] = [
    ("one op", lambda: ptir.exp(constant()), "", ["constant"]),
    ("several", lambda: ptir.exp(constant() + 1.0).sum() * 2.0, "", ["constant"]),
    ("two constants", lambda: constant() * constant(ROW[::-1].copy()), "", ["constant"]),
    ("a composite", lambda: ptir.softmax(constant()), "", ["constant"]),
    ("two results", lambda: ptir.top_k(constant(), k=2), "", ["constant", "constant"]),
    ("a tuple", lambda: ptir.concat((constant(), constant())), "", ["constant"]),
    ("what is read", lambda x: x + ptir.exp(constant()), "f32[6]", ["constant", "add"]),
    ("a slice of a large one", lambda: constant(np.ones(5000))[:2], "", ["constant"]),
    ("a sum of a large one", lambda: constant(np.ones(5000)).sum(), "", ["constant"]),
    ("no more than there is", lambda: -constant(np.ones(5000)), "", ["constant"]),
    ("positions", lambda: ptir.iota(shape=(4,)) * 2, "", ["constant"]),
    (
        "a mask",
        lambda: ptir.iota(shape=(3, 3)) > ptir.iota(shape=(3, 3), axis=1),
        "",
        ["constant"],
    ),
    ("a full", lambda: ptir.full(shape=(3,), value=2, dtype="f32") + constant(ROW[:3]), "",
     ["constant"]),
    ("a number", lambda x: x * constant([2.0]).astype("f32"), "f32[6]", ["mul"]),
    ("a number on the left", lambda x: constant(ROW[2:3]) - x, "f32[2,6]", ["sub"]),
    ("a number chosen", lambda m, x: ptir.select(m, x, constant(ROW[:1])), "i1[6] f32[6]",
     ["select"]),
    ("a full as a number", lambda x: x + ptir.full(shape=(6,), value=0.1, dtype="bf16"),
     "bf16[6]", ["add"]),
]  # fmt: skip


@pytest.mark.parametrize(("why", "function", "types", "left"), FOLDS, ids=[row[0] for row in FOLDS])
def test_what_is_known_is_computed(
    why: str, function: Callable[..., Any], types: str, left: list[str]
) -> None:
    assert ops(function, *types.split()) == left, why


STAYS: list[tuple[str, Callable[..., Any], str, list[str]]] = [
    ("an argument", lambda x: ptir.exp(x), "f32[6]", ["exp"]),
    ("positions alone", lambda: ptir.iota(shape=(4,)), "", ["iota"]),
    ("one value alone", lambda: ptir.full(shape=(4,), value=1, dtype="f32"), "", ["full"]),
    ("what is repeated", lambda: ptir.broadcast_to(constant(), shape=(4, 6)), "",
     ["constant", "broadcast_to"]),
    ("more than a page", lambda: ptir.tile(constant(), reps=(200,)), "", ["constant", "tile"]),
    ("many positions", lambda: ptir.iota(shape=(5000,)) * 2, "", ["iota", "mul"]),
    ("a sum of many positions", lambda: ptir.reduce_sum(ptir.iota(shape=(5000,))), "",
     ["iota", "reduce_sum"]),
    ("random numbers", lambda: OPS["rng_uniform"](constant(np.int64(3)), shape=(2,)), "",
     ["constant", "rng_uniform"]),
    ("another power", lambda x: x ** constant(np.full(1, 2, np.float32)), "f32[1]",
     ["constant", "pow"]),
    ("a mask of one element", lambda x: ptir.select(constant([True]), x, x + 1.0), "f32[1]",
     ["constant", "add", "select"]),
]  # fmt: skip


@pytest.mark.parametrize(("why", "function", "types", "left"), STAYS, ids=[row[0] for row in STAYS])
def test_what_stays(why: str, function: Callable[..., Any], types: str, left: list[str]) -> None:
    assert ops(function, *types.split()) == left, why


def test_an_error_is_one_of_the_run() -> None:
    zeros = np.zeros(3, np.int32)
    program = record(lambda: constant(np.arange(3, dtype=np.int32)) // constant(zeros))
    after = folded(program)
    assert [i.op.name for i in after.body] == ["constant", "constant", "div"]
    with pytest.raises(ElementError, match="integer division by zero"):
        ReferencePlan(after).run((), {})


def test_an_operand_that_must_be_a_tensor_is_no_number() -> None:
    five = np.array(5, np.int32)
    program = record(lambda low: ptir.clamp(constant(five), low, constant(five)), "si32[]")
    after = folded(program)
    assert [i.op.name for i in after.body if i.op.name == "clamp"] == ["clamp"]
    (found,) = ReferencePlan(after).run((np.array(3, np.int32),), {})
    assert found == 5


def test_symbols_are_not_known() -> None:
    s = ptir.dim("S")
    program = record(lambda x: x + (ptir.iota(shape=(s,)) + 1), "si32[?S]")
    assert [i.op.name for i in folded(program).body] == ["iota", "add", "add"]


def test_folding_spends_fuel() -> None:
    program = record(lambda: ptir.exp(constant()) + ptir.log(constant()))
    fuel = Fuel(1)
    after = folded(program, fuel)
    assert fuel.log == ["fold exp"]
    assert [i.op.name for i in after.body] == ["constant", "constant", "log", "add"]
    assert str(folded(program, Fuel(0))) == str(program)


def test_nobody_writes_into_what_was_folded() -> None:
    array = ROW.copy()
    program = record(lambda: constant(array).reshape(2, 3))
    (only,) = folded(program).body
    array[:] = 7
    assert only.attrs["value"].tolist() == ROW.reshape(2, 3).tolist()
    assert not only.attrs["value"].flags.writeable


@each_case
def test_every_op_of_constants_folds_to_what_it_gives(case: Case) -> None:
    for sample in case.samples:
        made = inputs(sample, case.dtypes[0])
        recorder = Recorder(case.op)
        with interpreter(recorder):
            constants = tuple(ptir.constant(value=array) for array in made.arrays)
            result = OPS[case.op](*made.operands(constants), **made.sample.attrs)
        whole = recorder.finish(several(result))
        expected = ReferencePlan(whole).run((), {})
        for program in (whole, legalize(whole, CONTEXT)):
            after = folded(program)
            assert all_same_bits(ReferencePlan(after).run((), {}), expected)
