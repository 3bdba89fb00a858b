"""concat, pad and tile in plans: strided block copies at any sizes, on any number of threads."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, Array
from tests.cases.sample import same_bits


@pytest.fixture(autouse=True)
def faer() -> Any:
    with ptir.backend("faer"):
        yield


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def check(function: Any, *arrays: Array, dynamic: Any = None) -> Any:
    """By kernels and views alone, and what the reference gives. Returns the report."""
    f = ptir.jit(dynamic=dynamic or {})(function)
    found = f(*arrays).numpy()
    with ptir.backend("reference"):
        assert same_bits(found, f(*arrays).numpy())
    report = f.explain(*arrays).report
    assert report.instructions("reference") == 0, f.explain(*arrays)
    return report


JOINED = [
    lambda x, y: ptir.concat((x, y, x), axis=1),
    lambda x, y: ptir.pad(x, low=(1, 2), high=(0, 3), value=3),
    lambda x, y: ptir.pad(x, low=(0, 1), high=(1, 0), interior=(2, 1), value=1),
    lambda x, y: ptir.tile(y, reps=(2, 3)),
]


@pytest.mark.parametrize("name", sorted(DTYPES))
@pytest.mark.parametrize("function", JOINED)
def test_every_dtype(name: str, function: Any) -> None:
    dtype = DTYPES[name].numpy
    x, y = (abs(numbers(3, n) * 4).astype(dtype) for n in (4, 1))
    check(function, x, y)


VIEWED = [
    lambda x, v: ptir.concat((x.T, x.T[1:3], x.T[::2]), axis=0),
    lambda x, v: ptir.concat((x[:, 2:], x[:, :2]), axis=1),  # as roll
    lambda x, v: ptir.concat((ptir.broadcast_to(v, shape=x.shape), x), axis=-1),
    lambda x, v: ptir.concat((x.unsqueeze(1), x.unsqueeze(1)), axis=1),  # as stack
    lambda x, v: ptir.concat(tuple(x[:, i : i + 1] for i in reversed(range(5))), axis=1),
    lambda x, v: ptir.pad(x.T[1:], low=(1, 0), high=(0, 2)),
    lambda x, v: ptir.tile(x[::2].T, reps=(2, 3)),
]


@pytest.mark.parametrize("function", VIEWED)
def test_operands_are_read_where_they_lie(function: Any) -> None:
    """Through transposes, slices and broadcasts: no step but one, and nothing between."""
    report = check(function, numbers(7, 5), numbers(5))
    assert [step.kind for step in report.steps] == ["call"]
    assert report.arena_bytes == 0


def test_computed_operands_are_stored_once() -> None:
    report = check(lambda x: ptir.concat((-x[2:], x[:2]) * 2), numbers(4, 6))
    assert [step.kind for step in report.steps] == ["region", "call"]


@pytest.mark.slow
def test_many_operands_some_without_elements() -> None:
    widths = [n % 4 for n in range(300)]
    x = numbers(5, sum(widths))
    ends = np.cumsum(widths)

    def shuffled(x: Any) -> Tensor:
        parts = [x[:, end - n : end] for n, end in zip(widths, ends.tolist(), strict=True)]
        return ptir.concat((*parts[1::2], *parts[::2]), axis=1)

    check(shuffled, x)


@pytest.mark.parametrize("shape", [(1, 3), (4, 1), (33, 7), (2, 65)])
def test_symbolic_sizes(shape: tuple[int, int]) -> None:
    def f(x: Any) -> Tensor:
        y = ptir.concat((x, -x[:, :1], x), axis=1)
        return ptir.tile(ptir.pad(y, low=(1, 0), high=(0, 2), interior=(1, 0)), reps=(1, 2))

    check(f, numbers(*shape), dynamic={"x": {0: "S", 1: "T"}})


LARGE = [
    lambda x, y: ptir.concat((x, y), axis=-1),
    lambda x, y: ptir.concat((x.reshape(-1), y.reshape(-1))),
    lambda x, y: ptir.pad(x, low=(0, 1), high=(3, 1), value=1.5),
    lambda x, y: ptir.pad(y.reshape(-1), low=(100001,), high=(3,)),
    lambda x, y: ptir.pad(y.reshape(-1), low=(1,), high=(3,), interior=(2,)),
    lambda x, y: ptir.tile(y.reshape(-1), reps=(3,)),
    lambda x, y: ptir.concat((x.T, y.T), axis=0),
]


@pytest.mark.parametrize("threads", ["1", "2", "3"])
@pytest.mark.parametrize("function", LARGE)
def test_threads_share_large_ones(
    function: Any, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    check(function, numbers(40_009, 3), numbers(40_009, 5))
