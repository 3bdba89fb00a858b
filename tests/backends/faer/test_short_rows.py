"""Loops over short rows have their reductions in registers, and the bits of other loops."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import expansions, render

RNG = np.random.default_rng(7)
FLOATS = ("float32", "float64", "float16")
ANY = (*FLOATS, "int32", "uint8", "int64")


def drawn(rows: int, length: int, dtype: str) -> Any:
    """Rows with zeros of both signs, infinities, NaN and repeated extremes."""
    if dtype not in FLOATS:
        return RNG.integers(0, 9, (rows, length)).astype(dtype)
    x = RNG.standard_normal((rows, length)).astype(dtype)
    x[0], x[1] = -0.0, np.inf
    x[2, length // 2], x[3, -1] = np.nan, -np.inf
    x[4, 0], x[4, -1] = np.nan, np.nan
    x[5, :2] = x[5, -1] = x[5].max() + 1
    return x


def norm(x: Any) -> Any:
    return ptir.sqrt((x * x).sum(-1, keepdims=True))


FUNCTIONS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "sum": (lambda x: x.sum(-1), ANY),
    "max": (lambda x: x.max(-1), ANY),
    "min": (lambda x: x.min(-1, keepdims=True), ANY),
    "prod": (lambda x: x.prod(-1), ANY),
    "mean": (lambda x: x.mean(-1), FLOATS),
    "var": (lambda x: x.var(-1), FLOATS),
    "norm": (lambda x: x / norm(x), FLOATS),
    "range": (lambda x: x.max(-1) - x.min(-1), ANY),
    "any": (lambda x: (x > 1).any(-1), ANY),
    "all": (lambda x: (x < 2).all(-1), ANY),
    "centred": (lambda x: x - x.mean(-1, keepdims=True), FLOATS),
    "softmax": (lambda x: ptir.softmax(x, axis=-1), FLOATS),
    "strided": (lambda x: x[::2, ::-1].sum(-1), ANY),
    "columns": (lambda x: x.T.max(0), ANY),
    "argmax": (lambda x: x.argmax(-1), ANY),
}
ROWS = [
    pytest.param(function, dtype, length, id=f"{name}-{dtype}-{length}")
    for name, (function, dtypes) in FUNCTIONS.items()
    for dtype in dtypes
    for length in ((2, 3, 10, 16, 30, 32) if dtype == "float32" else (3, 10))
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize(("function", "dtype", "length"), ROWS)
def test_bits_are_those_of_other_loops(
    function: Any, dtype: str, length: int, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    x = drawn(41, length, dtype)
    written: Any = ptir.jit(lambda x: function(x))
    found = written(x).numpy()
    monkeypatch.setattr(render, "is_of_short_rows", lambda _: False)
    other: Any = ptir.jit(lambda x: function(x))
    np.testing.assert_array_equal(found, other(x).numpy())
    bound = {"float64": 1e-12, "float16": 4e-3}.get(dtype, 2e-5)
    reference: Any = ptir.jit(backend="reference")(function)
    np.testing.assert_allclose(found, reference(x).numpy(), rtol=bound, atol=bound)


@pytest.mark.parametrize("name", ["sum", "var", "norm", "range"])
def test_they_are_written_out(name: str) -> None:
    function, _ = FUNCTIONS[name]
    made: Any = ptir.jit(function)
    (source, *_) = made.explain(drawn(41, 10, "float32")).sources.values()
    assert "lanes" not in source


LONG_ROWS = {"sum": 9, "max": 9, "norm": 8, "centred": 8, "argmax": 9}


@pytest.mark.parametrize("name", LONG_ROWS)
def test_rows_that_cannot_be_shuffled_are_computed_one_by_one(name: str) -> None:
    function, length = FUNCTIONS[name][0], LONG_ROWS[name]
    for short, width in ((False, length), (True, length - 1)):
        made: Any = ptir.jit(lambda x: function(x))
        (source, *_) = made.explain(drawn(41, width, "float32")).sources.values()
        assert ("row_by_row()" in source) is not short


def test_functions_and_integers_stay_vectors_across_rows() -> None:
    functions = (lambda x: ptir.exp(x).sum(-1), "float32"), (lambda x: x.argmax(-1), "int32")
    for function, dtype in functions:
        made: Any = ptir.jit(function)
        (source, *_) = made.explain(drawn(41, 12, dtype)).sources.values()
        assert "row_by_row" not in source


@pytest.mark.parametrize("length", [2, 5, 9, 11, 16, 29])
@pytest.mark.parametrize("dtype", [*ANY, "bool"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_are_those_of_numpy(name: str, dtype: str, length: int) -> None:
    x = drawn(41, length, "float32") > 0 if dtype == "bool" else drawn(41, length, dtype)
    made: Any = ptir.jit(lambda x: getattr(x, name)(-1))
    np.testing.assert_array_equal(made(x).numpy(), getattr(np, name)(x, -1))


@pytest.mark.parametrize("length", [31, 32, 33])
def test_longer_rows_have_a_kernel(length: int) -> None:
    made: Any = ptir.jit(lambda x: x.argmax(-1))
    steps = made.explain(drawn(41, length, "float32")).report.steps
    assert any("arg" in step.name for step in steps) == (length > expansions.MOST_ELEMENTS)
