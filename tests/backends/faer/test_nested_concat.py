"""Concats of slices of concats: one call where nothing else reads the inner one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array


def drawn(*shape: int) -> Array:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def steps_of(function: Any, *arguments: Array) -> list[str]:
    return [step.kind for step in function.explain(*arguments).report.steps]


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "edge", "wrap"])
@pytest.mark.parametrize("width", [(0, 3, 3), (2, 1, 3), (1, 0, 2)])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_borders(
    mode: str, width: tuple[int, ...], threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    pairs = [(n, n + 1 if n else 0) for n in width]

    pad: Any = ptir.pad

    @ptir.jit
    def padded(x: Tensor) -> Tensor:
        return pad(x, pairs, mode=mode)

    x = drawn(5, 6, 7)
    of_numpy: Any = np.pad
    np.testing.assert_array_equal(padded(x).numpy(), of_numpy(x, pairs, mode=mode))
    assert steps_of(padded, x) == ["call"]


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -4])
@pytest.mark.parametrize(("first", "last"), [(0, 13), (2, 5), (4, 11), (5, 6), (12, 13)])
def test_slices_of_any_step(step: int, first: int, last: int) -> None:
    """Slices that cut blocks, skip some, or leave one."""

    def nested(x: Any, y: Any, concat: Any) -> Any:
        v = concat((x, y, x), 0)
        part = v[first:last:step] if step > 0 else v[last - 1 : first - 1 if first else None : step]
        return concat((part, y[:1], v[1:3]), 0)

    def concat(parts: tuple[Tensor, ...], axis: int) -> Tensor:
        return ptir.concat(parts, axis=axis)

    @ptir.jit
    def function(x: Tensor, y: Tensor) -> Tensor:
        return nested(x, y, concat)

    x, y = drawn(4, 3), drawn(5, 3)
    np.testing.assert_array_equal(function(x, y).numpy(), nested(x, y, np.concatenate))
    assert steps_of(function, x, y) == ["call"]


def test_an_inner_concat_that_others_read_is_stored() -> None:
    @ptir.jit
    def function(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        v = ptir.concat((x, x), axis=0)
        w = ptir.concat((x * 2, x), axis=0)
        return ptir.concat((v, v[:, :1]), axis=1), v, ptir.concat((w, w), axis=1) + w.sum()

    x = drawn(3, 4)
    v, w = np.concatenate([x, x]), np.concatenate([x * 2, x])
    wanted = np.concatenate([v, v[:, :1]], 1), v, np.concatenate([w, w], 1) + w.sum()
    for found, one in zip(function(x), wanted, strict=True):
        np.testing.assert_allclose(found.numpy(), one, rtol=1e-6)


def test_sizes_that_are_not_known_are_stored() -> None:
    @ptir.jit(dynamic={"x": {0: "N"}})
    def function(x: Tensor) -> Tensor:
        v = ptir.concat((x, x), axis=0)
        return ptir.concat((v[:, 1:], v), axis=1)

    for count in (1, 5):
        x = drawn(count, 4)
        v = np.concatenate([x, x])
        np.testing.assert_array_equal(function(x).numpy(), np.concatenate([v[:, 1:], v], 1))


def test_many_blocks_are_stored() -> None:
    @ptir.jit
    def function(x: Tensor) -> Tensor:
        v = ptir.concat((x,) * 9, axis=0)
        return ptir.concat((v,) * 9, axis=1)

    x = drawn(2, 3)
    np.testing.assert_array_equal(function(x).numpy(), np.tile(x, (9, 9)))
    assert steps_of(function, x) == ["call", "call"]
