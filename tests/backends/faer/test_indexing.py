"""Reads and writes at indices: the bits of the reference, for every dtype, layout and number of
threads."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ElementError
from gptrs.ir.ops.index import Reduce
from gptrs.ir.ops.segment import SegmentReduce
from gptrs.ir.types import Array, DType
from gptrs.kernels.compiler import isa

INTEGERS = ("si4", "si8", "si16", "si32", "si64", "ui4", "ui8", "ui16", "ui32", "ui64")
FLOATS = ("fp8_e4m3", "fp8_e5m2", "bf16", "f16", "f32", "f64")
COMPLEX = ("cf32", "cf64")


def drawn(shape: tuple[int, ...], dtype: DType) -> Array:
    """Small numbers, and with floats what has no order or no end."""
    rng = np.random.default_rng(sum(shape))
    x = rng.integers(0 if dtype.name.startswith("ui") else -3, 4, shape).astype(np.float64)
    if dtype.is_float and x.size > 10:
        x.flat[4], x.flat[8], x.flat[10] = np.nan, np.inf, -0.0
        x = x / 3
    return ptir.tensor(x).astype(dtype).numpy()


def indices(shape: tuple[int, ...], extent: int, dtype: str = "si64") -> Array:
    """Places that occur several times."""
    found = np.random.default_rng(len(shape)).integers(0, extent, shape)
    return ptir.tensor(found).astype(getattr(ptir, dtype)).numpy()


def check(function: Callable[..., Any], *arguments: Array, **options: Any) -> None:
    """Compare the bits of a function's results with those of the reference, NaN as NaN, and that
    all of its steps are native."""
    jitted = ptir.jit(function, **options)
    found = jitted(*arguments)
    with ptir.backend("reference"):
        expected = ptir.jit(function, **options)(*arguments)
    assert "reference" not in {step.kind for step in jitted.explain(*arguments).report.steps}
    several = isinstance(found, tuple)
    for a, b in zip(*((found, expected) if several else ((found,), (expected,))), strict=True):
        a, b = a.numpy(), b.numpy()
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        ordered = b.dtype.kind in "biu" or b.dtype.name in INTEGERS or "int" in b.dtype.name
        nan = np.zeros(b.shape, bool) if ordered else np.isnan(b.astype(complex))
        assert a[~nan].tobytes() == b[~nan].tobytes()
        assert ordered or np.isnan(a[nan].astype(complex)).all()


def scattering(axis: int, reduce: Reduce) -> Callable[..., Any]:
    return lambda x, i, source: ptir.scatter_reduce(x, i, source, axis=axis, reduce=reduce)


def combining(reduce: SegmentReduce) -> Callable[..., Any]:
    return lambda x, i: ptir.segment_reduce(x, i, count=9, reduce=reduce)


def runs_natively(dtype: DType) -> bool:
    return isa.current().half or dtype.name not in ("f16", "fp8_e4m3", "fp8_e5m2")


@pytest.mark.parametrize("name", ["i1", *INTEGERS, *FLOATS, *COMPLEX])
def test_reads_of_every_dtype(name: str) -> None:
    dtype: DType = getattr(ptir, name)
    x = drawn((7, 5, 19), dtype)

    def reads(x: Any, i: Any, rows: Any) -> Any:
        turned = ptir.transpose(x, perm=(2, 0, 1))
        return (
            ptir.take(x, i, axis=0),
            ptir.take(turned, i, axis=0),
            *(ptir.gather(x, rows, axis=axis) for axis in range(3)),
        )

    check(reads, x, indices((3, 2), 7), indices((5, 3, 18), 5))


@pytest.mark.parametrize("name", INTEGERS)
def test_indices_of_every_dtype(name: str) -> None:
    x, i = drawn((7, 20), ptir.f64), indices((7, 20), 7, name)
    check(lambda x, i: (ptir.take(x, i, axis=0), ptir.gather(x, i, axis=0)), x, i)
    check(lambda x, i: ptir.gather(x, i, axis=1), x, i)
    check(lambda x, i: ptir.scatter_reduce(x, i, x, axis=0, reduce="replace"), x, i)
    check(lambda x, i: ptir.segment_reduce(x, i[:, 0], count=9, reduce="max"), x, i)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS, *COMPLEX])
def test_scatters_of_every_dtype(name: str, axis: int) -> None:
    dtype: DType = getattr(ptir, name)
    if not runs_natively(dtype):
        pytest.skip("NumPy converts f16 and fp8 on this CPU")
    x, source, i = drawn((5, 6, 19), dtype), drawn((5, 7, 20), dtype), indices((5, 6, 18), 5)
    kinds: tuple[Reduce, ...] = ("replace", "add", "max", "min")
    for reduce in kinds[: 1 if dtype.is_complex else 4]:
        check(scattering(axis, reduce), x, i, source)
    check(lambda x, i, s: ptir.scatter_add(x, i, s, axis=axis), x, i, source)


@pytest.mark.parametrize("shape", [(40,), (40, 3), (40, 19), (40, 2, 3, 9)])
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS, *COMPLEX])
def test_segments_of_every_dtype(name: str, shape: tuple[int, ...]) -> None:
    dtype: DType = getattr(ptir, name)
    if not runs_natively(dtype):
        pytest.skip("NumPy converts f16 and fp8 on this CPU")
    kinds: tuple[SegmentReduce, ...] = ("add", "mul", "max", "min", "mean")
    for reduce in kinds[: 2 if dtype.is_complex else 4 + dtype.is_float]:
        check(combining(reduce), drawn(shape, dtype), indices((40,), 7))


@pytest.mark.parametrize("name", COMPLEX)
def test_means_of_complex_numbers(name: str) -> None:
    """As exact as their division."""
    x, i = drawn((40, 3), getattr(ptir, name)), indices((40,), 7)

    def means(x: Any, i: Any) -> Any:
        return ptir.segment_reduce(x, i, count=7, reduce="mean")

    found, expected = ptir.jit(means)(x, i), ptir.jit(backend="reference")(means)(x, i)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2 * np.finfo(x.dtype).eps)


def test_indices_that_are_the_same_for_a_row() -> None:
    x, i = drawn((9, 70), ptir.f32), indices((30,), 9)

    def spread(x: Any, i: Any) -> Any:
        rows = ptir.broadcast_to(i[:, None], shape=(30, 70))
        found = ptir.gather(x, rows, axis=0)
        return found, ptir.scatter_add(x, rows, found, axis=0)

    check(spread, x, i)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_nothing(shape: tuple[int, ...]) -> None:
    x, i = np.ones(shape, np.float32), np.zeros(shape, np.int64)
    check(lambda x, i: ptir.gather(x, i, axis=0), x, i)
    check(lambda x, i: ptir.scatter_add(x, i, x, axis=0), x, i)
    places = np.zeros(shape[:1], np.int64)
    check(lambda x, i: ptir.segment_reduce(x, i, count=2), x, places)


def test_symbolic_sizes() -> None:
    x = drawn((8, 6), ptir.f32)

    @ptir.jit(dynamic={"x": {0: "N"}, "i": {0: "M"}})
    def f(x: Any, i: Any) -> Any:
        return ptir.gather(x, i, axis=1), ptir.scatter_add(x, i, x, axis=1)

    for n, m in [(8, 8), (5, 3), (1, 1)]:
        i = indices((m, 4), 6)
        read, added = f(x[:n], i)
        np.testing.assert_array_equal(read.numpy(), np.take_along_axis(x[:m], i, 1))
        expected = x[:n].copy()
        np.add.at(expected, (np.arange(m)[:, None], i), x[:m, :4])
        np.testing.assert_array_equal(added.numpy(), expected)
    with pytest.raises(ElementError, match="index has extent 4 along axis 0, x has 3"):
        f(x[:3], indices((4, 4), 6))
    assert len(f.retraces()) == 1


WRONG: list[Callable[..., Any]] = [
    lambda x, i: ptir.ops.take(x, i[0]),
    lambda x, i: ptir.ops.take(x[:, :0], i[0]),
    lambda x, i: ptir.gather(x, i, axis=0),
    lambda x, i: ptir.gather(x, i, axis=1),
    lambda x, i: ptir.gather(x, ptir.transpose(i, perm=(1, 0)), axis=1),
    lambda x, i: ptir.scatter_add(x, i, x, axis=0),
    lambda x, i: ptir.scatter_add(x, i, x, axis=1),
    lambda x, i: ptir.segment_reduce(x, i[0], count=64),
    lambda x, i: ptir.segment_reduce(x[:, :0], i[0], count=64, reduce="mean"),
]


@pytest.mark.parametrize("wrong", [-1, 64, -(2**63), 2**40])
@pytest.mark.parametrize("function", WRONG)
def test_an_index_out_of_range(function: Callable[..., Any], wrong: int) -> None:
    x, i = drawn((64, 64), ptir.f64), indices((64, 64), 64)
    ptir.jit(function)(x, i)
    i[0, 40] = wrong
    with pytest.raises(ElementError, match=f" {wrong} is out of range for "):
        ptir.jit(function)(x, i)


def test_an_unsigned_index_beyond_all_signed_ones() -> None:
    x, i = drawn((9,), ptir.f32), np.array([1, 2**64 - 1], np.uint64)
    with pytest.raises(ElementError, match=f"index {2**64 - 1} is out of range"):
        ptir.jit(ptir.take)(x, i)


def test_a_donated_array_is_updated_in_place_unless_an_index_is_wrong() -> None:
    @ptir.jit(donate="x")
    def add(x: Any, i: Any, source: Any) -> Any:
        return ptir.scatter_add(x, i, source, axis=0)

    i, source = indices((50,), 9), drawn((50,), ptir.f32)
    given = ptir.tensor(np.zeros(9, np.float32))
    memory, expected = given.numpy(), np.zeros(9, np.float32)
    (step,) = add.explain(given, i, source).report.steps
    assert (step.note, step.copy) == ("in place", False)
    with pytest.raises(ElementError, match="index 9 is out of range"):
        add(given, np.append(i[1:], 9), source)
    assert not memory.any()
    np.add.at(expected, i, source)
    found = add(given, i, source).numpy()
    assert found is memory
    np.testing.assert_array_equal(found, expected)


THREADED: list[tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], int]] = [
    (lambda x, i, s: ptir.scatter_add(x, i, s, axis=0), (999,), (70_000,), 999),
    (lambda x, i, s: ptir.scatter_add(x, i, s, axis=0), (40, 9), (9000, 9), 40),
    (lambda x, i, s: ptir.scatter_add(x, i, s, axis=1), (300, 40), (300, 400), 40),
    (lambda x, i, s: ptir.segment_reduce(s, i, count=40), (1,), (9000, 8), 40),
    (lambda x, i, s: ptir.segment_reduce(s, i, count=40), (1,), (3000, 200), 40),
    (lambda x, i, s: ptir.take(x, i, axis=0) + s, (3000,), (70_000,), 3000),
]


@pytest.mark.parametrize(("function", "shape", "source", "extent"), THREADED)
def test_threads(
    function: Callable[..., Any],
    shape: tuple[int, ...],
    source: tuple[int, ...],
    extent: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    x, s = (rng.standard_normal(n).astype(np.float32) for n in (shape, source))
    i = rng.integers(0, extent, source[: 1 if len(shape) == 1 else None])
    expected = ptir.jit(backend="reference")(function)(x, i, s).numpy().tobytes()
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        assert ptir.jit(function)(x, i, s).numpy().tobytes() == expected


@pytest.mark.parametrize("extent", [1, 5000])
def test_updates_that_are_one_number(extent: int) -> None:
    index = indices((extent,), 30)
    rows = indices((extent, 3), 30)

    def count(index: Any, rows: Any) -> Any:
        ones, whole = ptir.ones(index.shape, dtype="si64"), ptir.ones(rows.shape)
        return (
            ptir.scatter_add(ptir.zeros((30,), dtype="si64"), index, ones, axis=0),
            ptir.scatter_add(ptir.ones((30, 3)), rows, whole, axis=0),
            ptir.segment_reduce(ptir.ones((*index.shape, 2)), index, count=30),
        )

    check(count, index, rows)
    check(count, index, rows, dynamic={"index": {0: "N"}, "rows": {0: "N"}})
    steps = ptir.jit(count).explain(index, rows).report.steps
    assert all(step.result != f"si64[{extent}]" for step in steps if extent > 1)
