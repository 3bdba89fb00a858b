"""Promotion of dtypes, against NumPy within a kind and the rules of JAX and torch across kinds."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest

from gptrs import ptir as namespace
from gptrs.errors import DTypeError, ParseError
from gptrs.ir.promotion import promoted_dtype, result_dtype
from gptrs.ir.types import DTYPES, DType

ptir: Any = namespace  # arrays in place of Tensors
INTEGERS = [d for d in DTYPES.values() if d.is_integer and d.bits > 4]
FLOATS = [ptir.f16, ptir.f32, ptir.f64]
COMPLEX = [ptir.cf32, ptir.cf64]
OF_NUMPY = [ptir.i1, *INTEGERS, *FLOATS, *COMPLEX]


def of_kind(dtype: DType) -> str:
    return "integer" if dtype.is_integer else dtype.kind


@pytest.mark.parametrize(("a", "b"), [*product(OF_NUMPY, OF_NUMPY)], ids=str)
def test_two_dtypes(a: DType, b: DType) -> None:
    found = promoted_dtype((a, b))
    if {a, b} >= {ptir.ui64} and {a.kind, b.kind} == {"int", "uint"}:
        assert found is ptir.f32
    elif of_kind(a) == of_kind(b) or "bool" in (a.kind, b.kind):
        assert found == np.promote_types(a.numpy, b.numpy)
    elif "complex" in (a.kind, b.kind):
        assert found is (ptir.cf64 if {ptir.f64, ptir.cf64} & {a, b} else ptir.cf32)
    else:
        assert found in (a, b)
        assert found is not None
        assert found.is_float


def test_narrow_floats() -> None:
    assert promoted_dtype((ptir.f16, ptir.bf16)) is ptir.f32
    assert promoted_dtype((ptir.bf16, ptir.f64)) is ptir.f64
    assert promoted_dtype((ptir.fp8_e4m3, ptir.f32)) is None
    assert promoted_dtype((ptir.fp8_e4m3, ptir.fp8_e5m2)) is None
    assert promoted_dtype((ptir.fp8_e4m3, ptir.si8)) is ptir.fp8_e4m3


@pytest.mark.parametrize("count", [3, 4])
def test_the_order_does_not_matter(count: int) -> None:
    for dtypes in combinations((*OF_NUMPY, ptir.bf16, ptir.si4), count):
        assert len({promoted_dtype(order) for order in permutations(dtypes)}) == 1, dtypes


NUMBERS: list[tuple[DType, Any, DType]] = [
    (ptir.i1, True, ptir.i1),
    (ptir.i1, 2, ptir.si64),
    (ptir.i1, 0.5, ptir.f32),
    (ptir.i1, 1j, ptir.cf32),
    (ptir.ui8, 2, ptir.ui8),
    (ptir.ui8, True, ptir.ui8),
    (ptir.si64, 0.5, ptir.f32),
    (ptir.si32, 1j, ptir.cf32),
    (ptir.f16, 2, ptir.f16),
    (ptir.bf16, 0.5, ptir.bf16),
    (ptir.f32, 1j, ptir.cf32),
    (ptir.f64, 1j, ptir.cf64),
    (ptir.cf32, 0.5, ptir.cf32),
]


@pytest.mark.parametrize(("dtype", "number", "expected"), NUMBERS, ids=str)
def test_a_number_beside_a_tensor(dtype: DType, number: Any, expected: DType) -> None:
    x = np.ones(3, dtype.numpy)
    weak = ptir.jit(lambda x, n: x * n)  # an argument that is a number is weak, too
    results = (
        ptir.jit(lambda x: x * number)(x),
        ptir.jit(lambda x: number * x)(x),
        ptir.tensor(x) * number,
        weak(x, number) if not isinstance(number, bool) else ptir.tensor(x) * number,
    )
    for result in results:
        assert result.dtype is expected
        assert result.tolist() == [number * 1] * 3
    assert result_dtype((dtype, number)) is expected


def test_numbers_alone() -> None:
    assert [result_dtype((n,)) for n in (True, 1, 1.0, 1j)] == [
        *(ptir.i1, ptir.si64, ptir.f32, ptir.cf32),
    ]
    assert ptir.sqrt(64).item() == 8.0
    assert ptir.add(1, 2).item() == 3


X = np.arange(1, 5, dtype=np.float32)
I = np.arange(1, 5, dtype=np.int8)  # noqa: E741
M = X > 2


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: ptir.tensor(I) * X, X * I),
        (lambda: ptir.tensor(M) * X, X * M),
        (lambda: ptir.tensor(X) + I, X + I),
        (lambda: ptir.tensor(I) / 2, I / np.float32(2)),
        (lambda: ptir.tensor(I) / I, np.ones(4, np.float32)),
        (lambda: 1 / ptir.tensor(I), np.float32(1) / I),
        (lambda: ptir.tensor(I) // 2.0, I // np.float32(2)),
        (lambda: ptir.tensor(M) + M, M),
        (lambda: ptir.tensor(M) * M, M),
        (lambda: ptir.tensor(I) > 1.5, I > 1.5),
        (lambda: ptir.exp(ptir.tensor(I)), np.exp(X)),
        (lambda: ptir.mean(ptir.tensor(I)), X.mean()),
        (lambda: ptir.tensor(I) @ X, X @ X),
        (lambda: ptir.concat((I, X)), np.concatenate((I, X), dtype=np.float32)),
        (lambda: ptir.select(ptir.tensor(M), I, X), X),
        (lambda: ptir.softmax(ptir.tensor(I), axis=0), np.exp(X) / np.exp(X).sum()),
        (lambda: ptir.linear(ptir.tensor(I), np.ones((2, 4), np.float32)), np.full(2, 10.0)),
    ],
)
def test_calls(function: Any, expected: Any) -> None:
    for call in (function, ptir.jit(function)):
        result = call()
        assert result.dtype == (np.float32 if expected.dtype == np.float64 else expected.dtype)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_the_program_shows_the_casts() -> None:
    program = ptir.jit(lambda x, i: x * i).program(X, I)
    assert [i.op.name for i in program.body] == ["cast", "mul"]
    assert str(ptir.parse(str(program))) == str(program)


def test_a_text_is_strict() -> None:
    text = str(ptir.jit(lambda x, i: x * i).program(X, X)).replace('i: "f32[4]"', 'i: "si8[4]"')
    with pytest.raises(ParseError, match="operands have dtypes"):
        ptir.parse(text)


@pytest.mark.parametrize("call", [lambda x, i: x * i, lambda x, i: i * 1.5 + x, lambda x, i: i @ x])
def test_strict_programs(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DTypeError):
        ptir.jit(strict_dtypes=True)(call)(X, I)
    function, loose = ptir.jit(call), ptir.jit(strict_dtypes=False)(call)
    first = function(X, I).numpy()
    monkeypatch.setenv("GPTRS_STRICT_DTYPES", "1")
    with pytest.raises(DTypeError):
        function(X, I)
    np.testing.assert_array_equal(loose(X, I).numpy(), first)
    with ptir.eager(), pytest.raises(DTypeError):
        ptir.jit(call)(X, I)


def test_dtypes_are_those_of_numpy() -> None:
    assert ptir.f32 == np.float32
    assert np.dtype("float32") == ptir.f32
    assert ptir.bf16 == "bfloat16"
    assert ptir.f32 != np.float64
    assert ptir.f64 != None  # noqa: E711 - which NumPy takes for f64
    assert np.empty(3, ptir.tensor(X).dtype).dtype == np.float32
    table: dict[Any, int] = {np.dtype("f4"): 1}
    assert table[ptir.f32] == 1
