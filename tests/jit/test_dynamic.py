"""Symbolic dimensions: one program for all sizes from 1 on, with the results of each."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptrs import ptir
from gptrs.errors import ArgumentError, DimError, PtirError, ShapeError
from gptrs.ir.types import si32

pytestmark = pytest.mark.usefixtures("reference")

W = np.arange(12, dtype=np.float32).reshape(3, 4) / 12


def array(*shape: int) -> Any:
    return np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


def mixed(x: Any, y: Any) -> Any:
    batch, tokens, _ = x.shape
    z = x @ W  # [B, S, 4]
    flat = z.reshape(batch * tokens, 4)
    both = ptir.concat((z, y), axis=1)  # [B, S + T, 4]
    mask = ptir.iota(shape=(tokens,), dtype=si32, axis=0)
    last = x[:, -1:]
    return (
        ptir.softmax(z, axis=1),
        flat.sum(axis=0),
        both.reshape(-1),
        z * mask.astype("f32")[:, None],
        ptir.broadcast_to(last, shape=(batch, tokens, 3)) if tokens is not None else None,
        both[:, 1:],
        z.T,
        ptir.attention(z[:, None], both[:, None], both[:, None], causal=False, scale=0.5),
        {"sizes": (batch, tokens, both.shape[1], batch * tokens // 1, 7)},
    )


DYNAMIC = {"x": {0: "B", 1: "S"}, "y": {0: "B", 1: "T"}}
SYMBOLIC = ptir.jit(dynamic=DYNAMIC)(mixed)
CONCRETE = ptir.jit(mixed)
SIZES = [(1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 3, 4), (3, 2, 2), (1, 9, 1), (4, 4, 4)]


def agree(found: Any, expected: Any) -> None:
    assert found[-1] == expected[-1]
    assert all(type(size) is int for size in found[-1]["sizes"])
    for a, b in zip(found[:-1], expected[:-1], strict=True):
        assert a.type == b.type
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)  # sums in any order


@pytest.mark.parametrize(("batch", "tokens", "more"), SIZES)
def test_results_are_those_of_concrete_sizes(batch: int, tokens: int, more: int) -> None:
    x, y = array(batch, tokens, 3), array(batch, more, 4)
    found = SYMBOLIC(x, y)
    agree(found, CONCRETE(x, y))
    with ptir.eager():
        agree(found, SYMBOLIC(x, y))
    assert SYMBOLIC.cache_info().misses == 1


@given(st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_any_size(rows: int, columns: int) -> None:
    x = array(rows, columns)
    found = ROWS(x, 2)
    np.testing.assert_array_equal(found[0].numpy(), np.vstack([x, x]).reshape(-1) * 2)
    assert found[1] == 2 * rows * columns
    assert ROWS.cache_info().misses == 1


def _rows(x: Any, n: Any) -> Any:
    both = ptir.concat((x, x), axis=0)
    return both.reshape(-1) * n, both.size


ROWS = ptir.jit(dynamic={"x": {0: "R", -1: ptir.dim("C")}})(_rows)


def test_size_zero_has_its_own_program() -> None:
    function = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: x.sum(axis=0))
    for rows in (2, 0, 5, 0, 1):
        np.testing.assert_allclose(function(array(rows, 3)).numpy(), array(rows, 3).sum(0), 1e-6)
    assert [r.reason for r in function.retraces()] == [
        "the first call",
        "argument x: axis 0: ?N → 0",
    ]
    assert "?N" in str(function.program(array(2, 3)))


def test_other_axes_still_trace() -> None:
    function = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: x + 1)
    function(array(2, 3))
    function(array(2, 4))
    assert function.retraces()[1].reason == "argument x: axis 1: 3 → 4"


@dataclass
class Cache:
    keys: list[Any]
    start: Any


def test_a_path_names_a_part_of_an_argument() -> None:
    @ptir.jit(dynamic={"cache.keys": {1: "C"}, "cache.start": {0: "C"}, "x": {0: "C"}})
    def function(cache: Cache | None, x: Any) -> Any:
        return None if cache is None else [k * x + cache.start for k in cache.keys]

    for size in (1, 4, 7):
        keys = [array(2, size), array(5, size)]
        found = function(Cache(keys, array(size)), array(size))
        for a, k in zip(found, keys, strict=True):
            np.testing.assert_array_equal(a.numpy(), k * array(size) + array(size))
    assert function(None, array(3)) is None
    assert function.cache_info().misses == 2
    with pytest.raises(ArgumentError) as raised:
        function(Cache([array(2, 3), array(2, 4)], array(3)), array(3))
    assert "?C is 3 in argument cache.keys[0] and 4 in argument cache.keys[1] (axis 1)" in str(
        raised.value
    )
    assert raised.value.where is not None
    assert raised.value.where.file == __file__


def test_one_symbol_has_one_size() -> None:
    with pytest.raises(ArgumentError, match=r"\?B is 2 in argument x and 3 in argument y"):
        SYMBOLIC(array(2, 2, 3), array(3, 2, 4))
    with ptir.eager(), pytest.raises(ArgumentError, match=r"\?B is 2 in argument x and 3"):
        SYMBOLIC(array(2, 2, 3), array(3, 2, 4))
    np.testing.assert_array_equal(SYMBOLIC(array(2, 2, 3), array(2, 2, 4))[1].shape, (4,))


UNDECIDED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "equal": (lambda x, y: x if x.shape[0] == 4 else y, "?S"),
    "less": (lambda x, y: x if x.shape[0] < y.shape[0] else y, "?S"),
    "int": (lambda x, y: [x[i] for i in range(x.shape[0])], "?S"),
    "loop": (lambda x, y: [row for row in x], "?S"),  # noqa: C416
    "unpack": (lambda x, y: [*x], "?S"),
    "len": (lambda x, y: len(x), "?S"),
    "broadcast": (lambda x, y: x + y, "?S"),
    "split": (lambda x, y: x.split(2), "S"),
    "reshape": (lambda x, y: x.reshape(2, -1), "?S"),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_a_question_without_a_certain_answer(name: str) -> None:
    body, symbol = UNDECIDED[name]
    function = ptir.jit(dynamic={"x": {0: "S"}, "y": {0: "T"}})(lambda x, y: body(x, y))
    with pytest.raises(PtirError) as raised:
        function(array(6), array(6))
    assert symbol in str(raised.value)
    assert raised.value.where is not None
    assert raised.value.where.file == __file__
    assert raised.value.where.line in {line for _, _, line in body.__code__.co_lines()}
    if name in ("equal", "less", "int", "loop", "len"):
        assert isinstance(raised.value, DimError)
        assert "dynamic" in raised.value.fix


def test_a_fixed_slice_of_a_symbolic_axis() -> None:
    function = ptir.jit(dynamic={"x": {0: "S"}})(lambda x: x[:4])
    for size in (4, 6):
        np.testing.assert_array_equal(function(array(size)).numpy(), array(size)[:4])
    with pytest.raises(PtirError, match="4 elements") as raised:
        function(array(2))  # NumPy would give 2 elements; the program has 4
    assert raised.value.where is not None
    assert raised.value.where.file == __file__


def test_certain_answers() -> None:
    @ptir.jit(dynamic={"x": {0: "S"}})
    def function(x: Any) -> Any:
        size = x.shape[0]
        assert size >= 1
        assert size + 1 > size
        assert size != 0
        assert (2 * size) // 2 == size
        return x * 1.0

    for size in (1, 2, 9):
        np.testing.assert_array_equal(function(array(size)).numpy(), array(size))


def test_options_that_name_no_dimension() -> None:
    symbols: list[Any] = ["", "1S", "S+1", ptir.dim("S") * 2]
    for symbol in symbols:
        with pytest.raises(DimError, match="cannot name a dimension"):
            ptir.jit(dynamic={"x": {0: symbol}})(lambda x: x)
    function = ptir.jit(dynamic={"x": {1: "S"}})(lambda x: x)
    with pytest.raises(ArgumentError, match=r"axis 1 of argument x, which is f32\[3\]"):
        function(array(3))
    with pytest.raises(ArgumentError, match=r"axis 1 of argument x, which is f64\[\]"):
        function(2.0)


@pytest.mark.parametrize("backend", ["faer", "reference"])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: ptir.full(shape=(n - 2,), value=1.0, dtype=ptir.f32),
        lambda n: ptir.iota(shape=(n - 2,)),
        lambda n: ptir.rng_uniform(ptir.tensor(7), shape=(n - 2,)),
        lambda n: ptir.rng_normal(ptir.tensor(7), shape=(n - 2,)),
    ],
    ids=["full", "iota", "uniform", "normal"],
)
def test_a_difference_that_is_negative(make: Any, backend: str) -> None:
    def of_length(x: Any) -> Any:
        return make(x.shape[0])

    function = ptir.jit(backend=backend, dynamic={"x": {0: "N"}})(of_length)
    assert function(np.zeros(5, np.float32)).shape == (3,)
    with pytest.raises(ShapeError, match=r"shape \[-1\] has a negative extent"):
        function(np.zeros(1, np.float32))
