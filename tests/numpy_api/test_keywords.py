"""Every keyword that NumPy's functions take, of those that are here too; and calls with them."""

# NumPy's functions have no one type, nor have the parameters of a lambda.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.ir.op_arguments import renamed_keywords

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
I = np.arange(12).reshape(3, 4) % 5  # noqa: E741
M = X > 0
HOLES = np.where(X > 0.5, np.nan, X).astype(np.float32)
ROW = np.array([0.5, -1.0, 3.5, 2.0, 2.0], np.float32)

EVERYWHERE = {
    "out": "results are new tensors",
    "order": "tensors are in row-major order",
    "subok": "there are no subclasses",
    "like": "results are tensors",
    "device": "the CPU is the only device",
    "casting": "astype says what is converted",
    "signature": "the dtypes of the operands choose the loop",
    "overwrite_input": "operands are never written",
}
UFUNCS = {
    "where": "elements without a result would be undefined: ptir.where",
    "dtype": "astype before or after",
    "axes": "moveaxis before and after",
    "axis": "moveaxis before and after",
    "keepdims": "expand_dims after",
}
LEFT_OUT: dict[str, str] = {
    "argpartition kind": "there is one algorithm",
    "partition kind": "there is one algorithm",
    "isin kind": "there is one algorithm",
    "array ndmax": "lists are nested all the way",
    "einsum_path einsum_call": "private",
    "corrcoef dtype": "astype before",
    "histogram_bin_edges weights": "bins of equal width have none",
    "percentile weights": "weighted quantiles",
    "quantile weights": "weighted quantiles",
    "nanpercentile weights": "weighted quantiles",
    "nanquantile weights": "weighted quantiles",
    "ravel_multi_index mode": "positions outside are an error of the caller",
    "trim_zeros axis": "rows",
}
"""Parameters of NumPy that are not here, with the reason."""


def _parameters(function: Any) -> set[str]:
    try:
        known = inspect.signature(function).parameters
    except (ValueError, TypeError):  # of a builtin
        return set()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name for name, parameter in known.items() if parameter.kind in kinds}


def _shared() -> list[str]:
    """The functions of NumPy that are here, too, and are neither modules nor types."""
    found: list[str] = []
    for name in dir(np):
        theirs = getattr(np, name)
        here = callable(theirs) and not isinstance(theirs, type) and hasattr(ptir, name)
        if here and callable(getattr(ptir, name)) and name[0] != "_":
            found.append(name)
    return found


def test_each_keyword_of_numpy_is_taken_or_has_a_reason() -> None:
    left_out = set(LEFT_OUT)
    missing: list[str] = []
    for name in _shared():
        theirs, ours = getattr(np, name), getattr(ptir, name)
        excused = EVERYWHERE | (UFUNCS if isinstance(theirs, np.ufunc) else {})
        accepted = _parameters(ours)
        others = getattr(ours, "other_names", None) or {}
        for key in sorted(_parameters(theirs) - set(excused)):
            renamed = renamed_keywords({others.get(key, key): None}, accepted)
            if not renamed.keys() <= accepted:
                missing.append(f"{name} {key}")
    assert sorted(set(missing) - left_out) == []
    assert sorted(left_out - set(missing)) == []


CALLS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "names of first operands": lambda xp, x, i, m: xp.sum(a=xp.flip(m=xp.stack(arrays=[x, x]))),
    "split": lambda xp, x, i, m: xp.split(ary=x, indices_or_sections=[1], axis=1)[1],
    "dtypes of joints": lambda xp, x, i, m: [
        getattr(xp, f"{name}stack")([x, i], dtype=np.float64) for name in ("v", "h")
    ],
    "stack": lambda xp, x, i, m: xp.stack([x, i], dtype=np.float64),
    "shapes": lambda xp, x, i, m: xp.full_like(x, 2.5, shape=(2, 5)) + xp.ones_like(x, shape=5),
    "eye": lambda xp, x, i, m: xp.eye(N=3, M=4, k=1) @ x.T,
    "array": lambda xp, x, i, m: xp.array(x, ndmin=4),
    "average": lambda xp, x, i, m: xp.average(x, axis=0, weights=i + 1.0, returned=True),
    "average of all": lambda xp, x, i, m: xp.average(x, axis=1, returned=True),
    "cross": lambda xp, x, i, m: xp.cross(x, x[::-1] ** 2, axisa=0, axisb=0, axisc=1),
    "cross along one": lambda xp, x, i, m: xp.cross(x, x[::-1] ** 2, axis=0),
    "steps": lambda xp, x, i, m: xp.linspace(
        np.float64(1), np.float64(3), 5, False, True, np.float64
    ),
    "axis of a range": lambda xp, x, i, m: xp.linspace(x, 2 * x, 5, axis=-1),
    "axis of powers": lambda xp, x, i, m: xp.logspace(x, 2 * x, 3, base=2.0, axis=1),
    "axis of ratios": lambda xp, x, i, m: xp.geomspace(abs(x) + 1, abs(x) + 3, 4, axis=-1),
    "open grid": lambda xp, x, i, m: xp.meshgrid(x[0], x[1], sparse=True, indexing="ij"),
    "open positions": lambda xp, x, i, m: xp.indices((2, 3), sparse=True),
    "period": lambda xp, x, i, m: xp.interp(x * 5, [3.0, 1.0, 2.5], [1.0, 5.0, 2.0], period=4),
    "var": lambda xp, x, i, m: xp.var(x, axis=1, mean=xp.mean(x, axis=1, keepdims=True)),
    "std": lambda xp, x, i, m: xp.std(x, axis=0, dtype=np.float64),
    "sort": lambda xp, x, i, m: xp.argsort(x, kind="stable") + xp.argsort(i, 1, "stable"),
    "sides": lambda xp, x, i, m: xp.searchsorted(a=xp.sort(x[0], kind="mergesort"), v=x),
    "where": lambda xp, x, i, m: xp.where(m, x=x, y=i) if xp is ptir else xp.where(m, x, i),
    "elements in one row": lambda xp, x, i, m: xp.take(x, i) + xp.take(x, i, mode="wrap"),
    "names of comparisons": lambda xp, x, i, m: xp.isclose(a=x, b=x + 1e-9),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call(name: str) -> None:
    def call(xp: Any, *operands: Any) -> list[Any]:
        found = CALLS[name](xp, *operands)
        return list(found) if isinstance(found, list | tuple) else [found]

    expected = call(np, X, I, M)
    traced = ptir.jit(lambda x, i, m: call(ptir, x, i, m))(X, I, M)
    eager = call(ptir, *map(ptir.tensor, (X, I, M)))
    assert len(traced) == len(eager) == len(expected)
    for wanted, *found in zip(expected, eager, traced, strict=True):
        for each in found:
            np.testing.assert_allclose(each.numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"]
)
def test_where_numbers_are_missing(name: str) -> None:
    kept = I > 0
    initial: dict[str, Any] = {"initial": 0.25} if name in ("nanmax", "nanmin", "nansum") else {}
    expected = getattr(np, name)(HOLES, axis=1, where=kept, **initial)
    found = getattr(ptir, name)(ptir.tensor(HOLES), axis=1, where=kept, **initial)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    wide = {} if name in ("nanmax", "nanmin") else {"dtype": np.float64}
    expected = getattr(np, name)(HOLES, axis=0, **wide)
    found = getattr(ptir, name)(ptir.tensor(HOLES), axis=0, **wide).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.dtype == expected.dtype


def test_of_integers_none_is_missing() -> None:
    found = ptir.nanmax(ptir.tensor(I), axis=0)
    assert found.dtype is ptir.si64
    np.testing.assert_array_equal(found, np.nanmax(I, axis=0))


METHODS = (
    *("linear", "lower", "higher", "midpoint", "nearest", "interpolated_inverted_cdf", "hazen"),
    *("weibull", "median_unbiased", "normal_unbiased"),
)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_of_quantiles(method: Any) -> None:
    for q in (0.0, 0.07, 0.5, np.array([0.31, 0.62, 1.0])):
        expected = np.quantile(X, q, axis=1, method=method)
        found = ptir.quantile(ptir.tensor(X), q, axis=1, method=method)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)
        expected = np.nanpercentile(HOLES, q * 100, axis=0, method=method)
        found = ptir.nanpercentile(ptir.tensor(HOLES), q * 100, axis=0, method=method)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_an_unknown_method() -> None:
    with pytest.raises(ArgumentError, match="expected one of linear, lower"):
        ptir.quantile(ptir.tensor(X), 0.5, method="best")


def test_rows_that_differ() -> None:
    rows = np.array([[2, 1], [0, 3], [2, 1], [0, 1]])
    found = ptir.unique(ptir.tensor(rows), True, True, True, axis=0)
    for part, wanted in zip(found, np.unique(rows, True, True, True, axis=0), strict=True):
        np.testing.assert_array_equal(part.numpy(), wanted)


@pytest.mark.parametrize("equal_nan", [True, False])
def test_nan_among_distinct_elements(equal_nan: bool) -> None:
    x = np.array([np.nan, 1, np.nan, -1, 1], np.float32)
    expected = np.unique(x, True, True, True, equal_nan=equal_nan)
    size = len(expected[0])
    eager = ptir.unique(ptir.tensor(x), True, True, True, equal_nan=equal_nan)
    traced = ptir.jit(lambda x: ptir.unique(x, True, True, True, equal_nan=equal_nan, size=size))(x)
    for found in (eager, traced):
        for part, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part.numpy(), wanted)


def test_positions_where_a_condition_holds() -> None:
    rows, columns = ptir.where(ptir.tensor(M))
    np.testing.assert_array_equal(np.stack([rows, columns]), np.stack(np.where(M)))
    found = ptir.jit(lambda m: ptir.where(m, size=14, fill_value=-1))(M)
    count = int(M.sum())
    assert all((part.numpy()[count:] == -1).all() for part in found)
    positions = ptir.nonzero(ptir.tensor(M), as_tuple=False)
    np.testing.assert_array_equal(positions, np.argwhere(M))


def test_words_of_torch() -> None:
    x = ptir.tensor(X)
    np.testing.assert_array_equal(ptir.flip(x, dims=(0, 1)), X[::-1, ::-1])
    np.testing.assert_array_equal(ptir.argsort(x, 1, True), np.argsort(-X, axis=1))
    np.testing.assert_array_equal(ptir.arange(1, end=4), [1, 2, 3])
    np.testing.assert_allclose(ptir.linspace(0, end=1, steps=3), [0, 0.5, 1])
    np.testing.assert_allclose(
        ptir.quantile(x, 0.3, dim=1, interpolation="lower").numpy(),
        np.quantile(X, 0.3, axis=1, method="lower"),
        rtol=1e-6,
    )
    np.testing.assert_allclose(ptir.cov(x, correction=0), np.cov(X, ddof=0), rtol=1e-5)
    rise = ptir.gradient(x, spacing=(2.0,), dim=1)
    np.testing.assert_allclose(rise.numpy(), np.gradient(X, 2.0, axis=1), rtol=1e-5)
    found = ptir.searchsorted(ptir.tensor(np.sort(ROW)), 2.0, right=True, out_int32=True)
    assert (found.item(), found.dtype) == (4, ptir.si32)
    assert ptir.bucketize(ptir.tensor(ROW), [0.0, 2.0], out_int32=True).dtype is ptir.si32


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 3), (4,)])
@pytest.mark.parametrize("dtype", ["i8", "u1", "?", "f4"])
def test_extremes_of_no_elements_are_initial(
    dtype: str, shape: tuple[int, ...], axis: int | None, name: str
) -> None:
    x = np.ones(shape, dtype)
    for initial in (0, 1, 5):
        expected = getattr(np, name)(x, axis=axis, initial=initial)
        function: Any = getattr(ptir, name)
        found = ptir.jit(lambda x: function(x, axis=axis, initial=initial))(x)  # noqa: B023
        assert np.array_equal(found.numpy(), expected)


def test_an_extreme_of_symbolic_extent() -> None:
    function: Any = ptir.max
    most = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: function(x, initial=-5))
    assert [int(most(np.array(x, np.int64))) for x in ([-9, -7], [], [3])] == [-5, -5, 3]
