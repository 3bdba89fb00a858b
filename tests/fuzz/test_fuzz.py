"""Random programs run in every way (`make fuzz` runs more); planted bugs are found."""

# The holes of a pattern have no types, nor the parameters of recorded functions.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs.backends.faer import scalars
from gptrs.debug.error_bounds.balls import Ball
from gptrs.debug.error_bounds.error_propagation import BallEvaluator
from gptrs.ir import printing
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.elementwise import abs_, add, mul, rsqrt, sqrt, sub
from gptrs.ir.ops.shape import slice_
from gptrs.ir.program import Instruction
from gptrs.ir.rewrite import rewrite
from gptrs.ir.sizes import filled
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from gptrs.passes import simplify
from tests.cases.programs import record
from tests.cases.sample import all_same_bits
from tests.fuzz.control import GENERATORS, NOT_DRAWN
from tests.fuzz.programs import Example, family
from tests.fuzz.replay import example_of, text_of
from tests.fuzz.search import DisagreementError, Search

PROGRAMS = 300
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def searched() -> Search:
    """Kernels take longest, so every other program runs natively."""
    search = Search()
    search.run(PROGRAMS, 0, native=lambda e: e.turn % 2 == 0)
    return search


@pytest.mark.slow
def test_programs(searched: Search) -> None:
    assert searched.programs == PROGRAMS
    assert set(searched.instructions) == {family(op) for op in GENERATORS}
    tally = searched.tally
    compared = tally.exact + tally.bounded
    assert tally.unknown < 0.1 * compared, "rounding decides too much: little is compared"
    assert tally.exact > 2 * tally.extreme
    assert tally.raised > 0


def test_every_op_is_drawn() -> None:
    assert set(GENERATORS) | set(NOT_DRAWN) == set(OPS)
    assert not set(GENERATORS) & set(NOT_DRAWN)


def found(**options: Any) -> str:
    """What a search finds in programs of few ops."""
    with pytest.raises(DisagreementError) as raised:
        Search().run(1000, 1, shrink=False, **options)
    return str(raised.value)


def no_backend(_: Example) -> bool:
    return False


@rewrite(lambda x, y: sub(x, y), samples=[{"x": "f32[2]", "y": "f32[2]"}])
def add_for_sub(x: Any, y: Any) -> Tensor:
    return add(x, y)


@rewrite(lambda x: abs_(x), samples=[{"x": "f32[2]"}])
def drop_abs(x: Tensor) -> Tensor:
    return x


@rewrite(lambda x: sqrt(x), samples=[{"x": "f32[2]"}])
def almost_root(x: Tensor) -> Tensor:
    """Off by one unit in the last place, and no root of 0."""
    return mul(x, rsqrt(x))


@rewrite(
    lambda x, b, n, s: slice_(x, starts=b, sizes=n, strides=s),
    samples=[{"x": "f32[2]", "b": (0,), "n": (1,), "s": (1,)}],
)
def forget_start(x: Tensor, b: Any, n: Any, s: Any) -> Tensor | None:
    return slice_(x, starts=(0,) * len(b), sizes=n, strides=s) if any(b) else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "ops"),
    [
        (add_for_sub, ("sub", "neg")),
        (drop_abs, ("abs", "neg", "exp")),
        (almost_root, ("sqrt", "neg")),
        (forget_start, ("slice", "concat")),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_wrong_rule_is_found(rule: Any, ops: tuple[str, ...], monkeypatch: Patch) -> None:
    monkeypatch.setattr(simplify, "EXACT_RULES", (rule, *simplify.EXACT_RULES))
    assert "reference, precise" in found(native=no_backend, ops=ops)


def test_wrongly_merged_instructions_are_found(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Instruction, "attrs_key", ())
    assert "reference" in found(native=no_backend, ops=("reduce_sum", "sort", "cast", "reduce_max"))


@pytest.mark.slow
def test_a_wrongly_printed_literal_is_found(monkeypatch: Patch) -> None:
    right: Callable[[object], str] = printing._literal  # pyright: ignore[reportPrivateUsage]

    def literal(value: object) -> str:
        return f"{value:.1f}" if type(value) is float and abs(value) < 9 else right(value)

    monkeypatch.setattr(printing, "_literal", literal)
    assert "eager" in found(native=no_backend, ops=("add", "mul", "full"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "text"),
    [
        ("floor", "math.trunc({0})"),
        ("maximum", "{0} if {0} > {1} else {1}"),  # NaN does not win
        ("tanh", "tanh32({0}) * float32(1.000002)"),
    ],
)
def test_a_wrong_kernel_is_found(op: str, text: str, monkeypatch: Patch) -> None:
    """Also one that is off by 2e-6 of its result."""
    right = scalars.RULES[OPS[op]]

    def rule(s: scalars.Scalars) -> str:
        return text.format(*s.operands) if s.dtype.name == "f32" else right(s)

    monkeypatch.setitem(scalars.RULES, OPS[op], rule)
    assert "faer" in found(ops=(op,))


def follow(program: Any, *arrays: Array) -> list[Ball]:
    return BallEvaluator().run(filled(program, {}), [Ball(array) for array in arrays])


def test_radii() -> None:
    """What is exact has none, a sum a small one, and where rounding decides nothing is known."""
    x = np.array([1e8, 1.0, -1e8, 0.25], np.float32)
    (moved, total, compared) = follow(
        record(lambda x: (x[::2] * 2, x.sum(), (x.sum() > 0)), "f32[4]"), x
    )
    assert moved.radius is None
    assert total.radius is not None
    assert 1 < float(total.radius) < 1000
    assert compared.radius is not None
    assert np.isinf(compared.radius)
    (far,) = follow(record(lambda x: x.sum() > 1e6, "f32[4]"), x)
    assert far.radius is None


def example() -> Example:
    program = record(lambda x, y: (x @ y, x, y.sum()), "f32[?S,2]", "f32[2,3]")
    inputs = np.array([[np.nan, -0.0]], np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    return Example(program, {"S": 1}, inputs, 3)


@pytest.mark.slow
def test_a_failing_program_runs_again(tmp_path: Path) -> None:
    given = example()
    path = tmp_path / "again.py"
    path.write_text(text_of(given, "f: another\nline", "a test"))
    scope: dict[str, Any] = {"__name__": "again"}
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), scope)
    again = example_of(scope["f"], given.inputs, given.sizes, given.turn)
    assert str(again.program) == str(given.program)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=Path.cwd())
    assert done.stdout == "all ways agree\n", done.stderr
    assert all_same_bits(again.arrays(), given.arrays())


@pytest.mark.slow
def test_the_long_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--count", "2", "--seed", "3", "--json"]
    done = subprocess.run([*command, "--folder", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["programs"] == 2
    assert said["mismatches"] == []
    assert said["tally"]["comparisons"] >= 20
