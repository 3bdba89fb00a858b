"""Products of arguments of any dtype: native steps, the reference's values, any layout."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import ptir

Array = NDArray[Any]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
OTHERS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.complex128]


def numbers(dtype: Any, *shape: int, seed: int = 0) -> Array:
    """Any integers, whose products wrap; floats whose sums are exact in every order."""
    rng = np.random.default_rng(seed)
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    real = rng.integers(-3, 4, shape).astype(np.float64)
    imaginary = 1j * rng.integers(-3, 4, shape) if np.dtype(dtype).kind == "c" else 0
    return (real + imaginary).astype(dtype)


def check(fn: Any, *arguments: Array) -> None:
    """The result is the reference's; every step of the plan is native."""
    function: Any = ptir.jit(backend="faer")(fn)
    found: Any = function(*arguments).numpy()
    expected: Any = ptir.jit(backend="reference")(fn)(*arguments).numpy()
    np.testing.assert_array_equal(found, expected, strict=True)
    kinds = [step.kind for step in function.explain(*arguments).report.steps]
    assert "reference" not in kinds
    assert "call" in kinds


def product(a: Any, b: Any) -> Any:
    return a @ b


SHAPES = [
    ((1, 1), (1, 1)),
    ((3, 5), (5, 7)),
    ((64, 64), (64, 64)),
    ((130, 31), (31, 67)),
    ((1, 300), (300, 90)),
    ((90, 300), (300, 1)),
    ((90, 300), (300,)),
    ((3, 5), (5,)),
    ((300,), (300, 90)),
    ((150_000,), (150_000,)),
    ((2000, 9, 7), (2000, 7, 1)),
    ((4, 0), (0, 3)),
    ((0, 4), (4, 3)),
    ((7, 9, 5), (7, 5, 6)),
    ((2000, 3, 3), (2000, 3, 3)),
    ((5, 8, 4), (4, 6)),
    ((3, 70, 40), (3, 40, 50)),
]


@pytest.mark.parametrize("dtype", [*INTEGERS, *OTHERS], ids=lambda d: np.dtype(d).name)
def test_shapes(dtype: Any) -> None:
    for left, right in SHAPES:
        check(product, numbers(dtype, *left), numbers(dtype, *right, seed=1))


TURNED: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {
    "a.T @ b": (lambda a, b: a.T @ b, (40, 33), (40, 70)),
    "a @ b.T": (lambda a, b: a @ b.T, (33, 40), (70, 40)),
    "a.T @ b.T": (lambda a, b: a.T @ b.T, (40, 33), (70, 40)),
    "a.T @ vector": (lambda a, b: a.T @ b, (40, 33), (40,)),
    "a vector with gaps": (lambda a, b: a @ b[:, 3], (33, 40), (40, 7)),
    "a batch of vectors": (
        lambda a, b: ptir.transpose(a, perm=(1, 0, 2, 3)) @ b,
        (40, 50, 3, 7),
        (50, 40, 7, 1),
    ),
    "a transposed batch of vectors": (
        lambda a, b: ptir.transpose(a, perm=(1, 0, 3, 2)) @ b,
        (40, 50, 7, 3),
        (50, 40, 7, 1),
    ),
    "slices": (lambda a, b: a[1:, ::2] @ b[::3, 2:], (34, 80), (120, 50)),
    "a transposed batch": (
        lambda a, b: ptir.transpose(a, perm=(1, 0, 2)) @ ptir.transpose(b, perm=(1, 2, 0)),
        (9, 4, 20),
        (31, 4, 20),
    ),
    "two batch axes": (
        lambda a, b: ptir.transpose(a, perm=(0, 2, 1, 3)) @ ptir.transpose(b, perm=(0, 2, 3, 1)),
        (3, 9, 4, 20),
        (3, 31, 4, 20),
    ),
    "four batch axes": (
        lambda a, b: ptir.transpose(a, perm=(3, 1, 0, 2, 4, 5)) @ b,
        (2, 3, 2, 4, 5, 6),
        (4, 3, 2, 2, 6, 7),
    ),
    "two axes of the depth": (
        lambda a, b: ptir.dot_general(a, b, contract_lhs=(1, 2), contract_rhs=(0, 1)),
        (9, 4, 5),
        (4, 5, 11),
    ),
}


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int8, ml_dtypes.bfloat16, np.complex64]
)
@pytest.mark.parametrize("name", TURNED)
def test_operands_are_read_as_they_lie(name: str, dtype: Any) -> None:
    fn, left, right = TURNED[name]
    check(fn, numbers(dtype, *left), numbers(dtype, *right, seed=1))


def test_axes_that_are_not_evenly_spaced_are_arranged() -> None:
    def crossed(a: Any, b: Any) -> Any:
        return ptir.dot_general(a, b, contract_lhs=(1, 3), contract_rhs=(0, 1))

    check(crossed, numbers(np.float64, 3, 4, 6, 5), numbers(np.float64, 4, 5, 7, seed=1))


SUMS = [
    (np.int8, {"accum_dtype": ptir.si32}),
    (np.uint8, {"accum_dtype": ptir.si32}),
    (np.int16, {"accum_dtype": ptir.si64}),
    (np.float32, {"accum_dtype": ptir.f64}),
    (ml_dtypes.bfloat16, {"out_dtype": ptir.f32}),
]


@pytest.mark.parametrize(("dtype", "attrs"), SUMS)
def test_dtypes_of_sums_and_results(dtype: Any, attrs: Any) -> None:
    def dots(a: Any, b: Any) -> Any:
        return ptir.dot_general(a, b, contract_lhs=(1,), contract_rhs=(0,), **attrs)

    check(dots, numbers(dtype, 33, 70), numbers(dtype, 70, 40, seed=1))


def test_symbolic_sizes() -> None:
    axes: Any = {"a": {0: "M", 1: "K"}, "b": {0: "K", 1: "N"}}

    @ptir.jit(backend="faer", dynamic=axes)
    def multiply(a: Any, b: Any) -> Any:
        return a @ b

    for m, k, n in [(3, 4, 5), (200, 30, 7), (2, 5000, 90)]:
        a, b = numbers(np.float64, m, k), numbers(np.float64, k, n, seed=1)
        found: Any = multiply(a, b)
        np.testing.assert_array_equal(found.numpy(), a @ b)
    assert multiply.cache_info().misses == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.complex64, np.int64])
def test_threads_do_not_change_bits(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(dtype) for s in ((150, 5000), (5000, 70)))
    found: list[Array] = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        result: Any = ptir.jit(backend="faer")(product)(a, b)
        found.append(result.numpy())
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].view(np.uint8), other.view(np.uint8))


def test_special_values() -> None:
    a, b = numbers(np.float64, 20, 30), numbers(np.float64, 30, 40, seed=1)
    a[3, 4], a[7, 0], b[5, 6] = np.nan, np.inf, -np.inf
    check(product, a, b)


def test_sums_of_f64_are_as_exact_as_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((8, 20000)), rng.standard_normal((20000, 40))
    found: Any = ptir.jit(backend="faer")(product)(a, b)
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    ours, theirs = (np.abs(x - exact).max() for x in (found.numpy(), a @ b))
    assert ours <= 28 * theirs
