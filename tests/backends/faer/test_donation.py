"""Donated arguments: updated in place or copied, and what `explain` reports of a copy."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.base import StepReport
from gptrs.errors import DonatedError, ElementError
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, si32
from tests.support.rotary_decoder import Config, Decoder

PART = np.ones(2, np.float32)


@pytest.fixture(autouse=True)
def faer() -> Any:
    with ptir.backend("faer"):
        yield


def zeros(count: int = 5) -> Tensor:
    return ptir.tensor(np.zeros(count, np.float32))


def updates(function: Any, *arguments: Any) -> list[StepReport]:
    """The steps that update an array."""
    steps = function.explain(*arguments).report.steps
    return [step for step in steps if "update" in step.name]


def put(x: Any, part: Any = PART) -> Tensor:
    return ptir.dynamic_update_slice(x, part, (1,))


def after(then: Any) -> Any:
    """A function that updates ``x``, and then does something else with ``y``."""

    @ptir.jit(donate="x")
    def f(x: Any, y: Any) -> tuple[Tensor, Any]:
        return put(x), then(y)

    return f


@pytest.mark.parametrize(
    "then",
    [
        lambda y: ptir.cumsum(y, axis=0),
        lambda y: ptir.ops.sort(y)[0],
        lambda y: ptir.cond(y[0] > 0, lambda v: v + 1, lambda v: v * 2, y),
        lambda y: y / 0.0,
        lambda y: ptir.concat((-y[1:], y[:1])),
    ],
)
def test_a_step_that_cannot_fail_forbids_nothing(then: Any) -> None:
    f, y = after(then), np.arange(3, dtype=np.float32)
    (step,) = updates(f, zeros(), y)
    assert (step.note, step.copy) == ("in place", False)
    given = zeros()
    memory = given.numpy()
    assert f(given, y)[0].numpy() is memory


def test_explain_names_the_step_that_may_fail() -> None:
    f = after(lambda y: ptir.take(y, ptir.cast(y, dtype=si32), axis=0))
    (step,) = updates(f, zeros(), PART)
    assert step.copy
    assert step.note.startswith("copies argument x, as take at ")
    assert "test_donation.py:" in step.note
    assert step.note.endswith(".<lambda> may fail")
    assert step.note in str(f.explain(zeros(), PART))


def test_explain_says_why_else_an_update_copies() -> None:
    @ptir.jit
    def kept(x: Any) -> Tensor:
        return put(x)

    @ptir.jit(donate="x")
    def read(x: Any) -> tuple[Tensor, Tensor]:
        return put(x), ptir.ops.sort(x)[0]

    @ptir.jit(donate="x")
    def returned(x: Any) -> tuple[Tensor, Tensor]:
        return put(x), x

    @ptir.jit(donate="x")
    def itself(x: Any) -> Tensor:
        return put(x, x[:2])

    found = [updates(f, zeros())[0].note for f in (kept, read, returned, itself)]
    assert found[0] == "copies argument x, which is not donated"
    assert found[1].startswith("copies argument x, which gpt_rs.faer.sort.v1 at ")
    assert found[1].endswith(".read reads later")
    assert found[2] == "copies argument x, which is a result too"
    assert found[3] == "copies argument x, which it also reads"


def test_an_array_is_shifted_within_itself() -> None:
    """As users move a window of a cache: what is written is read before."""

    @ptir.jit(donate="x")
    def shifted(x: Any) -> Tensor:
        return ptir.dynamic_update_slice(x, x[:-1], (1,))

    x = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(shifted(ptir.tensor(x.copy())).numpy(), [0, *range(99)])


def test_sizes_at_which_a_step_fails_leave_the_argument_alone() -> None:
    """The first update fits and the second does not: at such sizes neither is made in place."""

    @ptir.jit(donate=("x", "y"), dynamic={"part": {0: "S"}})
    def f(x: Any, y: Any, part: Any) -> tuple[Tensor, Tensor]:
        return put(x, part), put(y, part)

    short, long = np.ones(2, np.float32), np.ones(4, np.float32)
    assert [s.note for s in updates(f, zeros(), zeros(3), short)] == ["in place"] * 2
    first, second = zeros(), zeros(3)
    memory = first.numpy()
    with pytest.raises(ElementError, match="axis 0: 4 elements do not fit extent 3"):
        f(first, second, long)
    assert first.numpy() is memory
    assert not np.any(memory)
    refused = f.explain(zeros(), zeros(3), long).report.steps
    assert "may fail" in refused[0].note
    assert f(first, second, short)[0].numpy() is memory


@pytest.mark.usefixtures("own_definitions")
def test_an_interrupted_call_has_taken_its_argument() -> None:
    """A part of it may be overwritten: it must not be used for the whole."""
    interrupts = False

    @ptir.primitive
    def slow_copy(x: Tensor) -> Type:
        """An op that NumPy runs."""
        return x.type

    def meaning(x: Array) -> Array:
        if interrupts:
            raise KeyboardInterrupt
        return x.copy()

    slow_copy.numpy(meaning)
    f = after(slow_copy)
    f(zeros(), PART)
    for _ in range(2):  # the second time by what is remembered of the first call
        interrupts, given = True, zeros()
        with pytest.raises(KeyboardInterrupt):
            f(given, PART)
        with pytest.raises(DonatedError):
            given.numpy()
        interrupts = False
        f(zeros(), PART)


@pytest.mark.parametrize("count", [1, 7])
def test_a_decoder_with_rotary_positions_copies_no_cache(count: int) -> None:
    """Native steps alone, and as many bytes beside a large cache as beside a small one."""
    decoder = Decoder.random(Config())
    tokens = ptir.tensor(np.arange(count)[None])
    sizes: set[int] = set()
    for capacity in (16, 64):
        cache = decoder.init_cache(1, capacity)
        found = Decoder.__call__.explain(decoder, tokens, cache).report
        assert found.copies == ()
        assert found.instructions("reference") == 0
        assert {s.note for s in found.steps if "update" in s.name} == {"in place"}
        sizes.add(found.arena_bytes + found.result_bytes)
    assert len(sizes) == 1
    cache = decoder.init_cache(1, 16)
    keys, values = cache.keys.numpy(), cache.values.numpy()
    _, cache = decoder(tokens, cache)
    assert cache.keys.numpy() is keys
    assert cache.values.numpy() is values


@pytest.mark.slow
def test_the_decoder_writes_what_the_reference_writes() -> None:
    decoder, prompt = Decoder.random(Config()), ptir.tensor(np.arange(5)[None])
    found = decoder.greedy(prompt, 20)
    with ptir.backend("reference"):
        assert decoder.greedy(prompt, 20) == found
    assert len(set(found)) > 3
