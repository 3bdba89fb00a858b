"""``ptir.vmap`` of control flow: conditions that differ by example, loops, and what may fail."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ElementError
from gptrs.ir.program import Fails
from gptrs.ir.tensor import Tensor
from tests.support.marks import slow_unless

COUNTS = np.array([3, 0, 7, 1, 5])
ROWS = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


def halves(n: Any) -> Any:
    """The steps of the Collatz sequence from n + 1 to 1."""

    def step(state: Any) -> Any:
        m, steps = state
        even = ptir.remainder(m, 2) == 0
        return ptir.cond(even, lambda m: ptir.ops.div(m, 2), lambda m: m * 3 + 1, m), steps + 1

    return ptir.while_loop(lambda s: s[0] > 1, step, (n + 1, 0))[1]


def quotient(a: Any, b: Any) -> Any:
    return ptir.cond(b > 0, lambda: ptir.ops.div(a, b), lambda: -a)


def picked(row: Any, at: Any) -> Any:
    """row[at], or 0 where there is none."""
    return ptir.cond(at < 4, lambda: ptir.ops.take(row, at), lambda: row[0] * 0)


def composed(row: Any, at: Any) -> Any:
    """A composite that may fail, in a branch in a branch."""

    def inside() -> Any:
        return ptir.cond(at > 1, lambda: ptir.cross_entropy(row, at), lambda: row.sum())

    return ptir.cond(at < 4, inside, lambda: row.max())


def endless(n: Any) -> Any:
    """A loop that does not end for the examples that do not take its branch."""
    return ptir.cond(
        n > 2, lambda: ptir.while_loop(lambda m: m != 2, lambda m: m - 1, n), lambda: n
    )


def countdown(n: Any) -> Any:
    """A loop with a part of the state that is the same for all, and a division that fails at 0."""

    def step(state: Any) -> Any:
        m, total, table = state
        return m - 1, total + ptir.ops.div(12, m) * table[0], table

    return ptir.while_loop(lambda s: s[0] > 0, step, (n, 0, np.array([1, 2])))[1]


def recurrence(row: Any, n: Any) -> Any:
    """A scan whose state is at first the same for all, in which a branch may fail."""

    def step(state: Any, x: Any) -> Any:
        index, total = state
        total = total + ptir.cond(index < n, lambda: x / ptir.ops.div(6, n), lambda: x * 0)
        return (index + 1, total), total * 2

    return ptir.scan(step, (0, 0.0), row)


def fixed_loop(n: Any) -> Any:
    """In a branch, a loop with a condition that is the same for all."""

    def run() -> Any:
        return ptir.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + ptir.ops.div(60, n)), (0, n)
        )[1]

    return ptir.cond(n > 0, run, lambda: n - 1)


def shifted(row: Any, n: Any) -> Any:
    """Slices and updates at places that differ by example."""
    part = ptir.dynamic_slice(row, (n,), sizes=(2,))
    return ptir.dynamic_update_slice(row, part * 2, (n - 3,))


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "halves": (halves, (COUNTS,)),
    "quotient": (quotient, (COUNTS * 9, COUNTS)),
    "picked": (picked, (ROWS, COUNTS)),
    "composed": (composed, (ROWS, COUNTS)),
    "endless": (endless, (COUNTS,)),
    "countdown": (countdown, (COUNTS,)),
    "recurrence": (recurrence, (ROWS, COUNTS)),
    "fixed_loop": (fixed_loop, (COUNTS,)),
    "shifted": (shifted, (ROWS, COUNTS)),
}


def results(found: Any) -> list[Any]:
    if isinstance(found, tuple):
        return [array for part in found for array in results(part)]
    return [found.numpy()]


@pytest.mark.parametrize(
    ("name", "compiled"),
    [
        pytest.param(
            name,
            compiled,
            id=f"{name}-{'compiled' if compiled else 'eager'}",
            marks=slow_unless(not compiled or name in ("quotient", "countdown")),
        )
        for name in PROGRAMS
        for compiled in (False, True)
    ],
)
def test_a_batch_agrees_with_its_examples(name: str, compiled: bool) -> None:
    function, columns = PROGRAMS[name]
    singly = [results(function(*map(Tensor, each))) for each in zip(*columns, strict=True)]
    batched = ptir.vmap(function)
    found = results((ptir.jit(batched) if compiled else batched)(*columns))
    for place, array in enumerate(found):
        expected = np.stack([one[place] for one in singly])
        assert array.dtype == expected.dtype
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["halves", "quotient", "countdown", "endless"])
def test_maps_of_control_flow_nest(name: str) -> None:
    function, columns = PROGRAMS[name]
    twice = [np.stack([column, column[::-1]]) for column in columns]
    found = ptir.vmap(ptir.vmap(function))(*twice).numpy()
    expected = ptir.vmap(function)(*columns).numpy()
    np.testing.assert_array_equal(found, np.stack([expected, expected[::-1]]))


def test_a_shared_condition_stays_one() -> None:
    @ptir.jit
    def run(x: Any, flag: Any) -> Any:
        return ptir.vmap(lambda e: ptir.cond(flag > 0, lambda: e * 2, lambda: flag * 1.0))(x)

    assert [i.op.name for i in run.program(ROWS[0], np.float32(1)).body] == ["greater", "cond"]
    np.testing.assert_array_equal(run(ROWS[0], np.float32(1)).numpy(), ROWS[0] * 2)
    np.testing.assert_array_equal(run(ROWS[0], np.float32(-3)).numpy(), np.full(4, -3, np.float32))


def test_what_cannot_be_masked_runs_one_example_at_a_time() -> None:
    @ptir.primitive
    def positive(x: Tensor) -> ptir.Type:
        """x, which fails where it is not positive."""
        return x.type

    @positive.numpy
    def _(x: Any) -> Any:
        if (x <= 0).any():
            raise ElementError("not positive")
        return x

    @positive.failing
    def _(x: Tensor) -> Any:

        return Fails.AT_ELEMENTS

    positive.batching(lambda size, mapped, x: positive(x))
    try:
        batched = ptir.vmap(lambda n: ptir.cond(n > 0, lambda: positive(n), lambda: n - 1))
        expected = np.where(COUNTS > 0, COUNTS, COUNTS - 1)
        np.testing.assert_array_equal(batched(COUNTS).numpy(), expected)
        np.testing.assert_array_equal(ptir.jit(batched)(COUNTS).numpy(), expected)
    finally:
        ptir.unregister(positive)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_what_fails_at_an_active_example_fails(compiled: bool) -> None:
    for function, columns in (
        (lambda a, b: ptir.cond(b >= 0, lambda: ptir.ops.div(a, b), lambda: a), (COUNTS, COUNTS)),
        (lambda row, at: ptir.ops.take(row, at), (ROWS, COUNTS)),
        (lambda at: ptir.ops.take(ROWS[0], at), (COUNTS,)),
    ):
        batched = ptir.vmap(function)
        with pytest.raises(ElementError):
            (ptir.jit(batched) if compiled else batched)(*columns)
