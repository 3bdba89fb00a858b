"""Regions that write a block of an array, in straight code and in loops: stencils."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir

RNG = np.random.default_rng(5)
Function = Callable[..., Any]


def jacobi(x: Any) -> Any:
    around = x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]
    return ptir.dynamic_update_slice(x, (x[1:-1, 1:-1] + around) * 0.25, (1, 1))


def columns(x: Any) -> Any:
    """Merged axes of what is computed are none of the block."""
    return ptir.dynamic_update_slice(x * 2, x[:, :3] * 3, (0, 40))


def clamped(x: Any) -> Any:
    return ptir.dynamic_update_slice(x, x[:4] - 1, (1000, -7))


def two_blocks(x: Any) -> Any:
    first = ptir.dynamic_update_slice(x, x[2:4] * 2, (0, 0))
    return ptir.dynamic_update_slice(first, first[:, :1] + first[:, 1:2], (0, 1))


def used_twice(x: Any) -> Any:
    block = x[:5] * 3
    return ptir.dynamic_update_slice(x, block, (2, 0)) + block.sum()


def moving_start(x: Any) -> Any:
    start = ptir.cast(ptir.reduce_max(x) * 0 + 2, dtype=ptir.si32)
    return ptir.dynamic_update_slice(x, x[:5] * 3, (start, 0))


def sums(x: Any) -> Any:
    """A reduction by rows is what is stored."""
    return ptir.dynamic_update_slice(x, ptir.reduce_sum(x, axes=1, keepdims=True), (0, 3))


UPDATES: list[Function] = [
    *(jacobi, columns, clamped, two_blocks, used_twice, moving_start, sums),
]


def _check(function: Function, *arrays: Any) -> Any:
    """Whole numbers, and quarters of them, are exact."""
    jitted: Any = ptir.jit(function)
    found, expected = jitted(*arrays), ptir.jit(backend="reference")(function)(*arrays)
    for a, b in zip(_leaves(found), _leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(a.numpy()), np.asarray(b.numpy()))
    return jitted.explain(*arrays).report


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in _leaves(part)]
    return [] if tree is None else [tree]


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "bool"])
def test_updates_are_those_of_the_reference(update: Function, dtype: str) -> None:
    if dtype == "bool" and update is not columns:
        update = lambda x: ptir.dynamic_update_slice(x, ~x[:4], (1, 0))
    elif dtype == "bool":
        pytest.skip("no products of truth values")
    elif update is sums and dtype in ("float16", "uint8"):
        pytest.skip("a sum has another dtype or order")
    elif dtype in ("int32", "uint8") and update is jacobi:
        pytest.skip("quarters are no integers")
    elif dtype == "uint8" and update in (moving_start, used_twice):
        pytest.skip("not defined on this dtype")
    _check(update, RNG.integers(0, 8, (9, 43)).astype(dtype))


@pytest.mark.parametrize("update", [jacobi, two_blocks, clamped, sums])
@pytest.mark.parametrize("shape", [(6, 12), (31, 50), (200, 600)])
@pytest.mark.parametrize("length", [0, 1, 4, 5])
def test_steps_of_a_loop(update: Function, shape: Any, length: int) -> None:
    """As one kernel, or by the driver: small, large."""
    loop = lambda x: ptir.scan(lambda x, _: (update(x) * 1, x[0]), x, length=length)
    alone = lambda x: ptir.scan(lambda x, _: (update(x), None), x, length=length)[0]
    x = RNG.integers(0, 2, shape).astype(np.float64)
    kinds = [{step.kind for step in _check(f, x).steps} for f in (loop, alone)]
    assert all(("loop" in kind) == (x.size < 5000) for kind in kinds)
    assert all("reference" not in kind for kind in kinds)


def test_blocks_of_several_states() -> None:
    def loop(x: Any) -> Any:
        def body(state: Any, _: Any) -> Any:
            a, b, c = state
            new = ptir.dynamic_update_slice(a, b[1:-1] + a[2:], (1, 0))
            other = ptir.dynamic_update_slice(c, a[:5] - b[:5], (2, 0))  # of another state
            return (new, other, b), new

        return ptir.scan(body, (x, x * 2, x * 3), length=6)

    for shape in ((9, 4), (40, 30), (300, 400)):
        _check(loop, RNG.integers(0, 3, shape).astype(np.float64))


def test_a_while_loop_may_end_at_once() -> None:
    def loop(x: Any) -> Any:
        return ptir.while_loop(
            lambda s: s[0] < s[1][0, 0], lambda s: (s[0] + 1, jacobi(s[1])), (0.0, x)
        )

    x = RNG.integers(0, 5, (30, 40)).astype(np.float64)
    for corner in (-1.0, 1.0, 4.0):
        x[0, 0] = corner
        _check(loop, x)


def test_nested_loops_keep_their_own_states() -> None:
    def loop(x: Any) -> Any:
        def outer(x: Any, _: Any) -> Any:
            inner = ptir.scan(lambda y, _: (jacobi(y), y[1]), x + 1, length=3)
            return inner[0] - x, inner[1]

        return ptir.scan(outer, x, length=3)

    _check(loop, RNG.integers(0, 3, (20, 30)).astype(np.float64))


def test_the_block_alone_is_computed() -> None:
    """What is stored is no array of its own, and an old array without other uses is overwritten."""
    x = np.ones((40, 50), np.float32)
    report = _check(jacobi, x)
    (step,) = report.steps
    assert step.kind == "region"
    assert "copies argument x" in step.note
    report = _check(lambda x: ptir.dynamic_update_slice(x.sum(0) * x, x[:3] * 2, (1, 0)), x)
    assert [s.note for s in report.steps if s.note] == ["in place"]
    assert not report.copies


def test_a_donated_array_is_overwritten() -> None:
    function: Any = ptir.jit(donate=("x",))(lambda x, y: ptir.dynamic_update_slice(x, y * 2, (1,)))
    x = ptir.jit(lambda x: x + 1)(np.zeros(10, np.float32))
    address = x.numpy().ctypes.data
    found = function(x, np.ones(3, np.float32))
    assert found.numpy().ctypes.data == address
    assert found.numpy().tolist() == [1, 2, 2, 2, *[1] * 6]


def test_an_array_is_stored_into_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_OPT_PRE_ITERS", "0")  # no rule leaves the update out
    monkeypatch.setenv("GPTRS_OPT_POST_ITERS", "0")

    def stored(x: Any) -> Any:
        y = ptir.is_inf(ptir.floor(x))
        return ptir.dynamic_update_slice(y, y, (3,))

    _check(stored, np.array([1, np.inf, 2], np.float32))


def test_any_size_is_one_program() -> None:
    function: Any = ptir.jit(dynamic={"x": {0: "N", 1: "M"}})(
        lambda x: ptir.scan(lambda x, _: (jacobi(x), None), x, length=3)[0]
    )
    reference: Any = ptir.jit(backend="reference")(
        lambda x: ptir.scan(lambda x, _: (jacobi(x), None), x, length=3)[0]
    )
    for shape in ((3, 4), (30, 20), (100, 300)):
        x = RNG.integers(0, 9, shape).astype(np.float64)
        np.testing.assert_array_equal(function(x).numpy(), reference(x).numpy())
    assert function.cache_info().misses == 1
