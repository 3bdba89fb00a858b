"""Loops whose elements do not depend on each other run element by element."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.kernels.compiler.isa import Isa

RNG = np.random.default_rng(11)


def escape(x: Any, y: Any) -> Any:
    """Steps of z² + c until it leaves a circle, under a mask."""

    def body(state: Any) -> Any:
        n, a, b, count = state
        inside = a * a + b * b <= 4
        a, b = (
            ptir.select(inside, new, old)
            for new, old in ((a * a - b * b + x, a), (a * b * 2 + y, b))
        )
        return n + 1, a, b, ptir.select(inside, count + 1, count)

    count = ptir.full(shape=x.shape, value=0, dtype=ptir.si32)
    start = ptir.full(shape=(), value=0, dtype=ptir.si32), x * 0, x * 0, count
    return ptir.while_loop(lambda state: state[0] < 37, body, start)


def by_rows(x: Any, y: Any) -> Any:
    """Captured rows and columns that are broadcast, and positions."""
    places = ptir.iota(shape=x.shape, axis=1, dtype=x.dtype)
    body = lambda s, _: (s * 2 - x[:, :1] + y[0] - places, None)
    return ptir.scan(body, x, length=5)[0]


def moving(x: Any, y: Any) -> Any:
    """A number of the state that elements depend on, and one of ys."""
    body = lambda s, _: ((s[0] * 2 - 1, s[1] + s[0]), s[0])
    return ptir.scan(body, (x[0, 0] * 0 + 2, y), length=11)


def orbit(period: int) -> Callable[..., Any]:
    """The state repeats after ``period`` iterations."""

    def function(x: Any, y: Any) -> Any:
        parts = tuple(x + k for k in range(period))
        body = lambda s, _: ((*s[1:], s[0]), None)
        return ptir.scan(body, parts, length=39)[0]

    return function


def signs(x: Any, y: Any) -> Any:
    """0 and -0 are different states."""
    return ptir.scan(lambda s, _: (-s, None), x * 0, length=19)[0]


def twice(x: Any, y: Any) -> Any:
    """A value with several uses, a result that is another's part, and a state that stays."""

    def body(state: Any, _: Any) -> Any:
        a, b, stays = state
        shared = a * 2 - b
        return (shared, shared + a * stays, stays), None

    return ptir.scan(body, (x, y, x - y), length=4)[0]


def stream(x: Any, y: Any) -> Any:
    xs = ptir.broadcast_to(x[None], shape=(3, *x.shape)) + 1
    body = lambda s, x: ((s[1], s[0] + x * y), (s[0] - x, s[1]))
    return ptir.scan(body, (x, y), xs)


def backwards(x: Any, y: Any) -> Any:
    def body(s: Any, item: Any) -> Any:
        row, number = item
        return s + row * number, (s, number + 1)

    xs = ptir.broadcast_to(y[None], shape=(4, *y.shape)), x.reshape(-1)[:4]
    return ptir.scan(body, x, xs, reverse=True)


LOOPS = [escape, by_rows, moving, twice, signs, stream, backwards, *map(orbit, (1, 2, 3, 8))]
SHAPES = [(3, 100), (70, 1), (1, 64), (13, 67), (2, 1030)]


def _results(function: Any, *arrays: Any) -> list[Any]:
    found: list[Any] = []

    def collect(tree: Any) -> None:
        if isinstance(tree, tuple | list):
            for part in tree:
                collect(part)
        else:
            found.append(np.asarray(tree.numpy()))

    collect(function(*arrays))
    return found


def _bits(x: Any) -> Any:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def _compare(
    loop: Callable[..., Any], *arrays: Any, kinds: frozenset[str], precise: bool = True
) -> None:
    function: Any = ptir.jit(precise=precise)(loop)
    found, expected = (
        _results(f, *arrays) for f in (function, ptir.jit(backend="reference")(loop))
    )
    assert {step.kind for step in function.explain(*arrays).report.steps} <= kinds
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(_bits(a), _bits(b))


NATIVE = frozenset(["region", "loop"])


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bits_are_those_of_the_reference(loop: Callable[..., Any], shape: Any) -> None:
    arrays = RNG.standard_normal((2, *shape)).astype(np.float32)
    _compare(loop, *arrays, kinds=NATIVE)


@pytest.mark.parametrize("loop", [by_rows, stream, twice, signs])
@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "uint8", "complex64"])
def test_every_dtype(loop: Callable[..., Any], dtype: str) -> None:
    if loop in (by_rows, signs) and dtype in ("complex64", "uint8"):
        pytest.skip("an op of it is not defined on this dtype")
    arrays = RNG.integers(0, 5, (2, 5, 71)).astype(dtype)  # whole numbers: complex ones are exact
    _compare(loop, *arrays, kinds=NATIVE, precise=dtype != "complex64")


def test_truth_values() -> None:
    def loop(x: Any, y: Any) -> Any:
        return ptir.scan(lambda s, _: ((s[1], ~s[0]), None), (x, y), length=7)[0]

    _compare(loop, *(RNG.random((2, 333)) > 0.5), kinds=NATIVE)


@pytest.mark.parametrize("dtype", [ptir.f16, ptir.bf16])
def test_a_narrow_number_of_the_state_rounds_once_an_iteration(dtype: Any) -> None:
    """A count in bf16 ends at 256, one in f16 at 2048."""

    def loop(x: Any) -> Any:
        start = ptir.full(shape=(), value=0, dtype=dtype), ptir.cast(x, dtype=dtype)
        count, x = ptir.scan(lambda s, _: ((s[0] + 1, s[1] + s[0]), None), start, length=3000)[0]
        return ptir.cast(count, dtype=ptir.f32), x

    count, _ = ptir.jit(loop)(np.zeros(100, np.float32))
    assert count.item() == {ptir.f16: 2048, ptir.bf16: 256}[dtype]


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_threads_do_not_change_bits(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = RNG.standard_normal((2, 150, 131)).astype(np.float32)
    for loop in (escape, stream):
        monkeypatch.setenv("GPTRS_NUM_THREADS", "1")
        alone = _results(ptir.jit(loop), x, y)
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        for a, b in zip(alone, _results(ptir.jit(loop), x, y), strict=True):
            np.testing.assert_array_equal(_bits(a), _bits(b))


def test_every_level(level: Isa) -> None:
    arrays = RNG.standard_normal((2, 5, 71)).astype(np.float32)
    for loop in (escape, stream):
        _compare(loop, *arrays, kinds=NATIVE)


def test_any_size_and_length_is_one_program() -> None:
    axes: Any = {"xs": {0: "T", 1: "N"}}

    @ptir.jit(dynamic=axes)
    def total(xs: Any) -> Any:
        return ptir.scan(lambda s, x: (s + x, s * 2), xs[0] * 0, xs)

    for shape in ((3, 1), (7, 5), (4, 2000)):
        xs = RNG.integers(0, 9, shape).astype(np.float32)
        last, ys = total(xs)
        sums = np.cumsum(xs, 0)
        np.testing.assert_array_equal(last.numpy(), sums[-1])
        np.testing.assert_array_equal(ys.numpy(), 2 * (sums - xs))
    assert total.cache_info().misses == 1


def test_no_iteration_and_no_element() -> None:
    none: Any = ptir.jit(lambda x: ptir.scan(lambda s, _: (s * 2, None), x, length=0)[0])
    x = RNG.standard_normal(100)
    np.testing.assert_array_equal(none(x).numpy(), x)
    never: Any = ptir.jit(
        lambda x: ptir.while_loop(lambda s: s[0] < 0, lambda s: (s[0] + 1, s[1] * 2), (3, x))
    )
    n, same = never(x)
    assert n.item() == 3
    np.testing.assert_array_equal(same.numpy(), x)


def test_elements_that_depend_on_others_stay_with_the_driver() -> None:
    def rotated(x: Any) -> Any:
        body = lambda s, _: (ptir.concat((s[1:], s[:1]), axis=0) - s, None)
        return ptir.scan(body, x, length=3)[0]

    def centred(x: Any) -> Any:
        return ptir.scan(lambda s, _: (s - s.mean(), None), x, length=3)[0]

    def until(x: Any) -> Any:
        return ptir.while_loop(lambda s: ptir.reduce_max(s) > 1, lambda s: s * 0.5, x)

    x = RNG.standard_normal(100_000)
    for loop in (rotated, centred, until):
        found, expected = ptir.jit(loop)(x), ptir.jit(backend="reference")(loop)(x)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-12)


def test_a_signal_ends_it() -> None:
    @ptir.jit
    def endless(x: Any) -> Any:
        return ptir.while_loop(lambda s: s[0] > 0, lambda s: (s[0] * 1, s[1] + 1), (1, x))

    def interrupt(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError):
            endless(np.ones(1000, np.float32))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
