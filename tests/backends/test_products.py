"""Products of arguments: no packing, bits independent of other rows, accurate sums."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.ir.parameter import Parameter

Array = NDArray[Any]
Kind = Literal["random", "standard_normal"]
UNIT = 2.0**-24
PRODUCT = "gpt_rs.faer.matmul.f32.v1"
TRANSPOSED = "gpt_rs.faer.matmul.typed.v1"


def product(a: Any, b: Any) -> Any:
    return a @ b


def product_of_transposed(a: Any, b: Any) -> Any:
    return a.T @ b


def product_with_transposed(a: Any, b: Any) -> Any:
    return a @ b.T


multiply = ptir.jit(backend="faer")(product)
turned_left = ptir.jit(backend="faer")(product_of_transposed)
turned_right = ptir.jit(backend="faer")(product_with_transposed)


def numbers(*shape: int, seed: int = 0, kind: Kind = "standard_normal") -> Array:
    return getattr(np.random.default_rng(seed), kind)(shape, dtype=np.float32)


N = 600
IN_PLACE: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...], str]] = {
    "two vectors": (multiply, (10**6,), (10**6,), "dot"),
    "a matrix and a vector": (multiply, (N, N), (N,), "dot"),
    "a short matrix and a vector": (multiply, (N, 24), (24,), "gemv_transposed"),
    "points and a vector": (multiply, (N, 3), (3,), "narrow"),
    "points and a small matrix": (turned_right, (N, 8), (4, 8), "narrow"),
    "a transposed matrix and a vector": (turned_left, (N, N), (N,), "gemv"),
    "a vector and a matrix": (multiply, (N,), (N, N), "gemv"),
    "a vector and a transposed matrix": (turned_right, (N,), (N, N), "gemv_transposed"),
    "few rows": (multiply, (8, N), (N, N + 1), "gemv"),
    "few rows of a transposed matrix": (turned_right, (5, N), (N, N), "gemv_transposed"),
    "few columns": (multiply, (N, N), (N, 8), "gemv_transposed"),
    "few columns, transposed": (turned_right, (N, N), (3, N), "gemv_transposed"),
    "a batch of vectors": (multiply, (7, N, N), (7, N, 1), "dot"),
    "a batch of rows": (multiply, (7, 1, N), (7, N, N), "gemv"),
    "one matrix and many vectors": (multiply, (N, N), (2000, N, 1), "dot"),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_operands_are_read_where_they_lie(name: str) -> None:
    function, *shapes, wanted = IN_PLACE[name]
    a, b = (numbers(*shape, seed=i) for i, shape in enumerate(shapes))
    report = function.explain(a, b).report
    (step,) = [step for step in report.steps if step.kind != "view"]
    assert step.name == PRODUCT
    assert all(found.startswith(wanted) for found in step.kernels), step.kernels
    assert report.arena_bytes < 1024, "no operand is copied"
    left, right = a.astype(np.float64), b.astype(np.float64)
    left = left.T if function is turned_left else left
    expected = left @ (right.T if function is turned_right else right)
    np.testing.assert_allclose(function(a, b).numpy(), expected, rtol=2e-5, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("depth", [5, 20, 32, 300, 5000])
def test_a_row_does_not_depend_on_others(
    threads: str, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    x = numbers(64, depth, seed=1)
    for columns in (1, 2, 8, 9, 40, 200):
        w = numbers(depth, columns, seed=2)
        for python, given in ((product, w), (product_with_transposed, np.ascontiguousarray(w.T))):
            function = ptir.jit(backend="faer")(python)
            whole = function(x, given).numpy()
            for rows in (1, 2, 5, 8, 9, 33):
                found = function(x[:rows], given).numpy()
                np.testing.assert_array_equal(found, whole[:rows])
            np.testing.assert_array_equal(function(x[63], given).numpy(), whole[63])
            batch = function(x.reshape(4, 16, depth), given).numpy()
            np.testing.assert_array_equal(batch.reshape(whole.shape), whole)


def test_a_weight_and_an_argument_give_the_same_bits() -> None:
    x = numbers(64, 5000, seed=1)
    for columns in (1, 2, 40):
        w = numbers(5000, columns, seed=2)
        weight = Parameter(w, "w")
        fixed = ptir.jit(backend="faer")(lambda x, weight=weight: x @ weight)
        for rows in (1, 8, 64):
            found = multiply(x[:rows], w).numpy()
            np.testing.assert_array_equal(found, fixed(x[:rows]).numpy())


def test_symbolic_sizes() -> None:
    m, k, n = (ptir.dim(name) for name in "MKN")

    def activated(a: Any, b: Any) -> Any:
        return ptir.relu(a @ b) + 1.0

    function = ptir.jit(backend="faer", dynamic={"a": {0: m, 1: k}, "b": {0: k, 1: n}})(activated)
    for rows, depth, columns in ((1, 50, 70), (70, 50, 1), (3, 7, 5), (70, 5000, 3), (20, 9, 20)):
        a, b = numbers(rows, depth, seed=1), numbers(depth, columns, seed=2)
        expected = np.maximum(a.astype(np.float64) @ b, 0) + 1
        np.testing.assert_allclose(function(a, b).numpy(), expected, rtol=1e-4, atol=1e-3)
    assert function.cache_info().misses == 1


FOLLOWS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "a column and one number": (lambda a, b, r: a @ b + r, ((70, 50), (50, 1), (1,))),
    "a column and a residual": (lambda a, b, r: a @ b + r, ((70, 50), (50,), (70,))),
    "a residual with gaps": (
        lambda a, b, r: ptir.gelu(a @ b) + r[:, 3],
        ((70, 50), (50,), (70, 5)),
    ),
    "a transposed one": (lambda a, b, r: ptir.relu(a.T @ b) + r, ((50, 70), (50,), (70,))),
    "a short one": (lambda a, b, r: ptir.relu(a @ b) + r[:, 1], ((70, 9), (9,), (70, 2))),
    "segments": (lambda a, b, r: ptir.relu(a @ b) + r, ((3, 300000), (300000,), (3,))),
    "bias and residual of few rows": (
        lambda a, b, r: ptir.gelu(a @ b + r[0]) + r,
        ((5, 50), (50, 70), (5, 70)),
    ),
    "bias and residual of few columns": (
        lambda a, b, r: ptir.gelu(a @ b + r[0]) + r,
        ((70, 50), (50, 5), (70, 5)),
    ),
    "bias and residual of a batch": (
        lambda a, b, r: ptir.gelu(a @ b + r[0, 0]) + r,
        ((6, 9, 8), (6, 8, 20), (6, 9, 20)),
    ),
    "bias and residual of many rows": (
        lambda a, b, r: ptir.gelu(a @ b + r[0]) + r,
        ((70, 50), (50, 90), (70, 90)),
    ),
    "bias and residual of transposed rows": (
        lambda a, b, r: ptir.gelu(a.T @ b + r[0]) + r,
        ((50, 70), (50, 90), (70, 90)),
    ),
}


@pytest.mark.parametrize("name", FOLLOWS)
def test_what_follows_is_part_of_the_step(name: str) -> None:
    function, shapes = FOLLOWS[name]
    given = [numbers(*shape, seed=i) / shape[-1] ** 0.5 for i, shape in enumerate(shapes)]
    jitted = ptir.jit(backend="faer")(function)
    steps = [step.name for step in jitted.explain(*given).report.steps if step.kind != "view"]
    assert steps in ([PRODUCT], [TRANSPOSED])
    with ptir.eager():
        expected = function(*map(ptir.tensor, given))
    np.testing.assert_allclose(jitted(*given).numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_without_elements(shape: tuple[int, int]) -> None:
    a = numbers(*shape)
    assert np.array_equal(multiply(a, numbers(shape[1])).numpy(), np.zeros(shape[0]))
    assert np.array_equal(turned_left(a, numbers(shape[0])).numpy(), np.zeros(shape[1]))
    assert np.array_equal(multiply(a, numbers(shape[1], 3)).numpy(), np.zeros((shape[0], 3)))


def errors(found: Array, rows: Array, x: Array) -> tuple[float, float, float]:
    """Root mean squares: of the error, of pairwise summation's, of the rounding of a result."""
    truth = np.array([np.dot(row.astype(np.float64), x.astype(np.float64)) for row in rows])
    pairwise = np.array([np.sum(row * x) for row in rows])
    parts = found - truth, pairwise - truth, UNIT * truth
    error, others, rounding = (float(np.sqrt(np.mean(part**2))) for part in parts)
    return error, others, rounding


# At most this many times the error of pairwise summation, or of one rounding where that is more.
TWICE = 2.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "standard_normal"])
@pytest.mark.parametrize(
    ("depth", "count"), [(10**3, 300), (10**4, 100), (10**5, 30), (10**6, 9), (10**7, 4)]
)
def test_sums_keep_their_digits(depth: int, count: int, kind: Kind) -> None:
    rows, x = numbers(count, depth, seed=1, kind=kind), numbers(depth, seed=2, kind=kind)
    columns = np.ascontiguousarray(rows.T)
    single = np.array([multiply(row, x).numpy() for row in rows])
    for found in (multiply(rows, x).numpy(), turned_left(columns, x).numpy(), single):
        error, pairwise, rounding = errors(found, rows, x)
        assert error <= TWICE * max(pairwise, rounding)


@pytest.mark.slow
def test_a_hundred_million_products() -> None:
    part = numbers(10**6, kind="random")
    x = np.tile(part, 100)
    truth = 100 * np.dot(part.astype(np.float64), part.astype(np.float64))
    error = abs(float(multiply(x, x).numpy()) - truth)
    np.multiply(x, x, out=x)
    assert error <= TWICE * max(abs(float(np.sum(x)) - truth), UNIT * truth)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "standard_normal"])
@pytest.mark.parametrize("depth", [10**5, 10**6])
def test_deep_products_with_more_columns(depth: int, kind: Kind) -> None:
    """Four times the error of pairwise summation: their chains are longer, as a matrix of sums is
    kept in registers. Few rows, few columns, and many of both have the same bits (see above)."""
    rows, x = numbers(12, depth, seed=1, kind=kind), numbers(depth, seed=2, kind=kind)
    found = multiply(rows, np.stack([x, x], axis=1)).numpy()
    error, pairwise, rounding = errors(found[:, 0], rows, x)
    assert error <= 4 * max(pairwise, rounding)
