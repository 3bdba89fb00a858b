"""The plan protocol for whole programs: results, ownership of memory, threads, reports."""

# The programs take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from threading import Barrier
from typing import Any, get_args

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.base import Backend, Plan, StepKind
from gptrs.backends.reference import ReferencePlan
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Program
from gptrs.ir.rewrite import Fuel
from gptrs.ir.sizes import filled
from gptrs.ir.types import Array, Type
from gptrs.passes.base import Context
from gptrs.passes.legalize import definition_of
from gptrs.passes.pipeline import lower
from tests.cases.programs import record
from tests.cases.sample import differences, draw
from tests.support.backends import instructions

ULPS = 32  # of 1 and above: sums and products of a few, in any order, through several instructions
ROW = np.array([1.0, -2.0, 0.5], np.float32)


def composites(x: Any, w: Any) -> Any:
    y = ptir.layer_norm(ptir.gelu_tanh(x @ w), eps=1e-3)
    q, k = y[None, None], ptir.silu(y)[None, None]
    mixed = ptir.attention(q, k, k, causal=True, scale=0.5)
    return ptir.softmax(y), ptir.log_softmax(y, axis=0), mixed, ptir.rms_norm(x), y.mean(axis=0)


def branches(p: Any, x: Any) -> Any:
    chosen = ptir.cond(p, lambda t: t * 2 + ROW, lambda t: ptir.tensor(ROW) + t * 0, x)
    summed = ptir.while_loop(lambda s: s.sum() < 100, lambda s: s + ptir.exp(s * 0), x)
    return chosen, summed, ptir.cond(p, lambda t: t, lambda t: ptir.tensor(ROW), x)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "several": (lambda x: (x + 1, ptir.softmax(x), x.sum()), ("f32[3,5]",)),
    "arguments": (lambda x, y: (x, y, x), ("f32[2,3]", "si32[4]")),
    "unread": (lambda x, y: y * 2, ("f32[2,3]", "f32[4]")),
    "twice": (lambda x: (x * 2, x * 2, x * 2), ("f32[3]",)),
    "views": (lambda x: (x.reshape(-1), x.T, x[0:1], x[None]), ("f32[2,3]",)),
    "views of results": (lambda x: (x + 1, (x + 1).reshape(-1), (x + 1).T), ("f32[2,3]",)),
    "constants": (lambda x: (ptir.tensor(ROW), ptir.tensor(ROW), x + ROW), ("f32[2,3]",)),
    "constant views": (lambda: (ptir.tensor(ROW)[:2], ptir.tensor(ROW).reshape(1, 3)), ()),
    "no results": (lambda x: (), ("f32[2]",)),
    "pairs": (lambda x: ptir.top_k(x, k=2), ("f32[3,5]",)),
    "one of a pair": (lambda x: ptir.top_k(x, k=2)[1], ("f32[3,5]",)),
    "no rows": (
        lambda x, y: (x + 1, x.sum(axis=0), ptir.softmax(x), x @ y, ptir.concat((x, x)), x.T),
        ("f32[0,3]", "f32[3,2]"),
    ),
    "no depth": (lambda x, y: (x @ y, x.sum(axis=1)), ("f32[2,0]", "f32[0,3]")),
    "rank 0": (lambda x: (x + 1, x.reshape(1), ptir.exp(x), x), ("f32[]",)),
    "integers": (lambda x: (x % 3, x < 1, ptir.select(x > 0, x, -x), x.sum()), ("si32[7]",)),
    "tokens": (lambda w, i: (ptir.take(w, i, axis=0), i + 1), ("f32[6,4]", "si64[2,3] 0..5")),
    "update": (
        lambda x, y: (ptir.dynamic_update_slice(x, y, (1,)), x * 2),
        ("f32[5]", "f32[2]"),
    ),
    "not a number": (lambda x: (x + 1, ptir.maximum(x, 0.0), x > 0), ("f32[9] special",)),
    "infinite literals": (
        lambda x: (ptir.select(x > 0, x, float("-inf")), x * float("nan")),
        ("f32[5]",),
    ),
    "composites": (composites, ("f32[4,6]", "f32[6,6]")),
    "positions of few digits": (
        lambda x: ptir.cast(ptir.iota(shape=(300,), dtype=ptir.bf16, axis=0), dtype=ptir.f32) + x,
        ("f32[1]",),
    ),
    "positions of fewer digits": (
        lambda x: (
            ptir.cast(ptir.iota(shape=(20,), dtype=ptir.fp8_e5m2, axis=0), dtype=ptir.f32) + x
        ),
        ("f32[1]",),
    ),
    "no steps": (
        lambda s, x: ptir.scan(lambda total, row: (total + row, total), s, x),
        ("f32[3]", "f32[0,3]"),
    ),
    "branches": (branches, ("i1[]", "f32[3] positive")),
    "many": (lambda x: ptir.concat(tuple(ptir.tanh(x + i) for i in range(16))), ("f32[3]",)),
}
SYMBOLIC: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "rows": (composites, ("f32[?N,6]", "f32[6,6]")),
    "sizes": (
        lambda x: (x * x.shape[0], x.sum(axis=0) / x.shape[0], x.reshape(-1), x[-1:]),
        ("f32[?N,3]",),
    ),
    "made": (
        lambda x: (
            ptir.iota(shape=x.shape, dtype=ptir.si32, axis=0),
            ptir.concat((x, x)),
            ptir.broadcast_to(x[-1:], shape=x.shape) + 0.0,
        ),
        ("f32[?N]",),
    ),
    "returned": (lambda x: (x, x.T, x), ("f32[?N,2]",)),
}

each_program = pytest.mark.parametrize(
    ("function", "types"), [pytest.param(*row, id=name) for name, row in PROGRAMS.items()]
)
symbolic_programs = pytest.mark.parametrize(
    ("function", "types"), [pytest.param(*row, id=name) for name, row in SYMBOLIC.items()]
)


def arguments(types: Sequence[str], seed: int = 0, n: int = 0) -> list[Array]:
    """Arrays of ``types``, in which the symbol N is ``n``."""
    made: list[Array] = []
    for number, text in enumerate(types):
        name, _, values = text.partition(" ")
        rng = np.random.default_rng(zlib.crc32(f"{text} {number} {seed}".encode()))
        made.append(draw(filled(Type.parse(name), {"N": n}), values, rng))
    return made


def recorded(function: Callable[..., Any], types: Sequence[str]) -> Program:
    return record(function, *(text.partition(" ")[0] for text in types))


def agree(found: Sequence[Array], expected: Sequence[Array]) -> None:
    assert len(found) == len(expected)
    for result, exact in zip(found, expected, strict=True):
        wrong = differences(result, exact, ULPS, 1.0)
        assert not wrong, wrong


def ready(backend: Backend, program: Program, fuel: float = float("inf")) -> tuple[Program, Plan]:
    """The lowered program and its plan."""
    lowered = lower(program, Context(backend, Fuel(fuel), precise=True))
    return lowered, backend.plan(lowered)


@each_program
def test_results_are_those_of_the_reference(
    function: Callable[..., Any], types: tuple[str, ...], backend: Backend
) -> None:
    program = recorded(function, types)
    _, plan = ready(backend, program)
    for seed in range(3):
        given = arguments(types, seed)
        found = plan.run(given, {})
        assert [Type.of(array) for array in found] == [r.type for r in program.results]
        agree(found, ReferencePlan(program).run(given, {}))


@each_program
def test_nobody_else_sees_the_memory_of_results(
    function: Callable[..., Any], types: tuple[str, ...], backend: Backend
) -> None:
    _, plan = ready(backend, recorded(function, types))
    given = arguments(types)
    before = [array.tobytes() for array in given]
    first, second = plan.run(given, {}), plan.run(given, {})
    for a, b in combinations([*given, *first, *second], 2):
        assert not np.may_share_memory(a, b)
    assert [array.tobytes() for array in given] == before
    kept = [array.copy() for array in second]
    for array in first:  # constants included, they are the caller's now
        assert array.flags.c_contiguous
        assert array.flags.writeable
        array.reshape(-1).view(np.uint8)[...] ^= 85
    third = plan.run(given, {})
    for a, b, c in zip(kept, second, third, strict=True):
        assert a.tobytes() == b.tobytes() == c.tobytes()


@each_program
def test_a_composite_is_claimed_or_inlined(
    function: Callable[..., Any], types: tuple[str, ...], backend: Backend
) -> None:
    program = recorded(function, types)
    lowered, _ = ready(backend, program)
    for instruction in instructions(lowered):
        assert not isinstance(instruction.op, Composite) or backend.claims(instruction)
    bare, plan = ready(backend, program, fuel=0)  # fuel may take any claim away
    assert not any(isinstance(instruction.op, Composite) for instruction in instructions(bare))
    given = arguments(types)
    agree(plan.run(given, {}), ReferencePlan(program).run(given, {}))


@each_program
def test_the_report_has_every_instruction(
    function: Callable[..., Any], types: tuple[str, ...], backend: Backend
) -> None:
    lowered, plan = ready(backend, recorded(function, types))
    report = plan.report({})
    kinds: tuple[StepKind, ...] = get_args(StepKind)
    assert report.program == lowered.name
    assert {step.kind for step in report.steps} <= set(kinds)
    assert sum(report.instructions(kind) for kind in kinds) == report.instructions()
    # A kernel of the backend's own stands for the instructions of its definition, what is cheap may
    # be computed in two places, and nothing need be done for a constant.
    done = [i for i in lowered.body if i.op.name != "constant"]
    opened = [1 if isinstance(i.op, Composite) else size_of(definition_of(i)) for i in done]
    assert report.instructions() >= sum(opened)
    shown = [type for step in report.steps for type in re.split(r", (?=[a-z])", step.result)]
    assert all(map(Type.parse, shown))
    assert all(step.name and step.instructions > 0 for step in report.steps)
    assert min(report.native_steps, report.arena_bytes, report.parameter_bytes) >= 0
    assert str(plan.report({})) == str(report)


def size_of(definition: Program | None) -> int:
    return 1 if definition is None else len(definition.body)


@symbolic_programs
def test_one_plan_serves_all_sizes(
    function: Callable[..., Any], types: tuple[str, ...], backend: Backend
) -> None:
    program = recorded(function, types)
    _, plan = ready(backend, program)
    for n in (3, 1, 17, 3, 2, 1):
        given = arguments(types, n, n)
        agree(plan.run(given, {"N": n}), ReferencePlan(program).run(given, {"N": n}))
        assert plan.report({"N": n}).steps or not program.body


@pytest.mark.parametrize("name", ["composites", "several", "constants", "update", "branches"])
def test_threads_share_a_plan(name: str, backend: Backend) -> None:
    function, types = PROGRAMS[name]
    _, plan = ready(backend, recorded(function, types))
    in_threads(plan, [(arguments(types, seed), {}) for seed in range(8)])


@pytest.mark.slow
def test_threads_share_a_plan_at_several_sizes(backend: Backend) -> None:
    function, types = SYMBOLIC["rows"]
    _, plan = ready(backend, recorded(function, types))
    in_threads(plan, [(arguments(types, n, n), {"N": n}) for n in (1, 2, 3, 5, 8, 13)])


def in_threads(plan: Plan, runs: Sequence[tuple[list[Array], Mapping[str, int]]]) -> None:
    """Each of ``runs`` many times in a thread of its own, begun at once: the same bits as alone."""
    expected = [plan.run(*run) for run in runs]
    barrier = Barrier(len(runs))

    def work(number: int) -> None:
        barrier.wait(timeout=60)
        for _ in range(20):
            for found, alone in zip(plan.run(*runs[number]), expected[number], strict=True):
                assert found.tobytes() == alone.tobytes()

    with ThreadPoolExecutor(len(runs)) as pool:
        list(pool.map(work, range(len(runs)), timeout=120))


def test_arguments_of_any_layout(backend: Backend) -> None:
    program = record(lambda x, y: (x @ y + 1, x, x.sum(axis=0)), "f32[4,4]", "f32[4,3]")
    _, plan = ready(backend, program)
    wide = np.sin(np.arange(48, dtype=np.float32)).reshape(6, 8)
    odd = np.frombuffer(b"\0" + wide[:4, :4].tobytes(), np.float32, offset=1).reshape(4, 4)
    for x in (wide.T[:4, :4], wide[:4, ::2], wide[::-1][:4, :4], wide[:4, 3::-1], odd):
        x.flags.writeable = False
        found = plan.run([x, wide[:4, :3]], {})
        agree(found, ReferencePlan(program).run([x, wide[:4, :3]], {}))
        assert not np.may_share_memory(found[1], x)


def test_parameters_are_arguments(backend: Backend) -> None:
    types = ("f32[4,3]", "f32[3,5]")
    recorder = Recorder("f")
    x = recorder.input(Type.parse(types[0]), "x")
    w = recorder.input(Type.parse(types[1]), "w", role="parameter")
    with interpreter(recorder):
        program = recorder.finish((x @ w, w))
    _, plan = ready(backend, program)
    for seed in range(2):
        given, weight = arguments(types, seed)
        found = plan.run([given, Parameter(weight, "w")], {})
        agree(found, ReferencePlan(program).run([given, weight], {}))
        assert not np.may_share_memory(found[1], weight)


def test_devices_are_there(backend: Backend) -> None:
    assert backend.is_available()
    devices = backend.devices()
    assert [device.index for device in devices] == list(range(len(devices)))
    assert devices
    for device in devices:
        assert device.name
        assert device.total_memory > 1 << 20
        assert 0 < device.room <= device.total_memory
