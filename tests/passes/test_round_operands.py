"""Operands of products with weights of bf16 are rounded if asked for, and multiplied in pairs."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer.calls import product as product_call
from gptrs.backends.reference import ReferenceBackend
from gptrs.ir.parameter import Parameter
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower

RNG = np.random.default_rng(11)
BF16 = ml_dtypes.bfloat16


def drawn(rows: int, depth: int, columns: int, scale: float = 1.0) -> tuple[Any, Parameter]:
    """An operand of f32 with rows of tiny numbers, and a weight."""
    x = RNG.standard_normal((rows, depth)).astype(np.float32) * np.float32(scale)
    x[rows // 2] *= np.float32(1e-30)
    return x, Parameter(RNG.standard_normal((depth, columns)).astype(BF16), "w")


def rounded(x: Any) -> Any:
    return x.astype(BF16).astype(np.float32)


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_BF16_PRODUCTS", "1")


def casts(function: Any, *arguments: Any, **context: Any) -> int:
    program = lower(ptir.jit(function).program(*arguments), Context(ReferenceBackend(), **context))
    return sum(i.op.name == "cast" and i.result.type.dtype.name == "bf16" for i in program.body)


def test_nothing_is_rounded_unless_asked_for() -> None:
    x, w = drawn(4, 16, 8)
    assert casts(ptir.matmul, x, w) == 0
    np.testing.assert_allclose(ptir.jit(ptir.matmul)(x, w), x @ w.numpy().astype("f4"), rtol=1e-4)


@pytest.mark.usefixtures("wanted")
def test_an_operand_of_several_products_is_rounded_once() -> None:
    (x, w), (_, v) = drawn(4, 16, 8), drawn(4, 16, 24)
    assert casts(lambda x, w, v: (x @ w, x @ v), x, w, v) == 1
    assert casts(ptir.matmul, x, w, precise=True) == 0
    assert casts(ptir.matmul, x, Parameter(np.ones((16, 3), np.float32), "w")) == 0


@pytest.mark.usefixtures("wanted")
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("sizes", [(1, 64, 40), (100, 64, 40), (61, 1024, 320), (20, 4640, 64)])
def test_results_are_those_of_rounded_numbers(
    sizes: tuple[int, int, int], threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    x, w = drawn(*sizes)
    expected = rounded(x).astype("f8") @ w.numpy().astype("f8")
    found = ptir.jit(ptir.matmul)(x, w).numpy()
    size = np.abs(rounded(x)).astype("f8") @ np.abs(w.numpy().astype("f8"))
    assert np.all(np.abs(found - expected) <= 2e-6 * size)


@pytest.mark.usefixtures("wanted")
@pytest.mark.parametrize("scale", [1.0, 1e-37])
@pytest.mark.parametrize("transposed", [False, True])
def test_pairs_have_the_bits_of_single_products(
    scale: float, transposed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = drawn(75, 4640, 320, scale)
    bias, beside = RNG.standard_normal((2, 75, 320)).astype(np.float32)

    def product(x: Any, w: Any, bias: Any, beside: Any) -> Any:
        y = x @ (w.T if transposed else w)
        return ptir.relu(y + bias[0]) * beside + bias

    if transposed:
        w = Parameter(np.ascontiguousarray(w.numpy().T), "w")
    found = ptir.jit(product)(x, w, bias, beside).numpy()
    for row in (0, 37, 74):  # of few rows the kernel is another one
        at = slice(row, row + 1)
        alone = ptir.jit(lambda x, w: x @ (w.T if transposed else w))(x[at], w).numpy()
        several = ptir.jit(lambda x, w: x @ (w.T if transposed else w))(x, w).numpy()
        np.testing.assert_array_equal(alone, several[at])
    monkeypatch.setattr(product_call, "multiplies_bf16", lambda _: False)
    single: Any = ptir.jit(lambda x, w, c, d: product(x, w, c, d))  # another program
    np.testing.assert_array_equal(found, single(x, w, bias, beside).numpy())


@pytest.mark.usefixtures("wanted")
def test_rows_may_be_symbolic() -> None:
    w = drawn(1, 64, 600)[1]
    made: Any = ptir.jit(dynamic={"x": {0: "N"}})(lambda x, w: x @ w)
    rows = RNG.standard_normal((40, 64)).astype(np.float32)
    whole = made(rows, w).numpy()
    for count in (1, 3, 17, 40):
        np.testing.assert_array_equal(made(rows[:count], w).numpy(), whole[:count])


@pytest.mark.usefixtures("wanted")
@pytest.mark.parametrize("columns", [200, 3200])  # of little memory, and of much
def test_pairs_of_weights_that_are_not_compressed(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, _ = drawn(60, 96, 1)
    scales = np.exp2(RNG.integers(-60, 60, (96, columns)))  # no few values of their first bytes
    w = Parameter((RNG.standard_normal((96, columns)) * scales).astype(BF16), "w")
    found = ptir.jit(ptir.matmul)(x, w).numpy()
    monkeypatch.setattr(product_call, "multiplies_bf16", lambda _: False)
    single: Any = ptir.jit(lambda x, w: ptir.matmul(x, w))
    np.testing.assert_array_equal(found, single(x, w).numpy())


@pytest.mark.usefixtures("wanted")
def test_products_of_few_rounded_rows_are_one_step() -> None:
    (x, w), (_, v) = drawn(2, 64, 96), drawn(2, 64, 160)
    both: Any = ptir.jit(
        lambda x: (x @ ptir.cast(w, dtype=ptir.f32), x @ ptir.cast(v, dtype=ptir.f32))
    )
    assert both.explain(x).report.native_steps == 2  # the rounding is the first
