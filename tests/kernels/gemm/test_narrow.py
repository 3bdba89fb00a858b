"""Many short rows times a small matrix."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir

RNG = np.random.default_rng(3)
EPILOGUES: dict[str, Any] = {
    "nothing": lambda y, bias, beside: y,
    "bias": lambda y, bias, beside: y + bias,
    "activation": lambda y, bias, beside: ptir.relu(y),
    "everything": lambda y, bias, beside: ptir.gelu(y + bias) + beside,
    "residual": lambda y, bias, beside: y + beside,
}


def drawn(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def kernels(made: Any, *arguments: Any) -> str:
    return " ".join(made.explain(*arguments).kernels)


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "sizes", [(3, 3), (1, 5), (8, 8), (7, 2), (4, 4), (3, 1), (16, 1), (12, 3)]
)
def test_bits_are_those_of_few_rows(
    sizes: tuple[int, int], transposed: bool, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    depth, columns = sizes
    b = drawn(columns, depth) if transposed else drawn(depth, columns)
    made: Any = ptir.jit(lambda a, b: a @ (b.T if transposed else b))
    for rows in (256, 257, 1000, 4099):
        a = drawn(rows, depth)
        a[5], a[6, 0], a[7, -1] = -0.0, np.nan, np.inf
        assert "narrow" in kernels(made, a, b) or depth > 8  # of wide vectors alone
        found = made(a, b).numpy()
        for begin in (0, 5, rows - 3):
            few = a[begin : begin + 3]
            assert "narrow" not in kernels(made, few, b)
            np.testing.assert_array_equal(found[begin : begin + 3], made(few, b).numpy())
        with np.errstate(invalid="ignore"):
            expected = a.astype("f8") @ (b.T if transposed else b).astype("f8")
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", EPILOGUES)
def test_what_follows(name: str) -> None:
    a, b, bias, beside = drawn(1003, 3), drawn(3, 4), drawn(4), drawn(1003, 4)

    def function(a: Any, b: Any, bias: Any, beside: Any) -> Any:
        return EPILOGUES[name](a @ b, bias, beside)

    made: Any = ptir.jit(function)
    assert "narrow" in kernels(made, a, b, bias, beside)
    expected: Any = ptir.jit(backend="reference")(function)
    found = made(a, b, bias, beside).numpy()
    np.testing.assert_allclose(found, expected(a, b, bias, beside).numpy(), rtol=1e-5, atol=1e-5)
    few: Any = ptir.jit(function)(a[:5], b, bias, beside[:5])
    np.testing.assert_array_equal(found[:5], few.numpy())


@pytest.mark.parametrize(
    ("taken", "rows"),
    [
        (lambda a: a[3:], 997),
        (lambda a: a[:, 2:5], 1000),
        (lambda a: a.reshape(-1, 3), 2000),
        (lambda a: a.reshape(10, 200, 3), 200),
        (lambda a: a[::2], 500),
    ],
)
def test_views(taken: Any, rows: int) -> None:
    a = drawn(1000, 6)
    depth = taken(a).shape[-1]
    b, beside = drawn(depth, 6)[:, ::2], drawn(rows, 6)[:, :3]
    function = lambda a, b, c: taken(a) @ b + c
    found = ptir.jit(function)(a, b, beside).numpy()
    np.testing.assert_allclose(found, function(a, b, beside), rtol=1e-5, atol=1e-5)


def test_a_vector_is_a_column() -> None:
    a, b = drawn(1000, 3), drawn(3)
    made: Any = ptir.jit(lambda a, b: ptir.relu(a @ b))
    assert "narrow" in kernels(made, a, b)
    np.testing.assert_allclose(made(a, b).numpy(), np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)
    added: Any = ptir.jit(lambda a, b, c: a @ b + c)
    beside = drawn(1000)
    np.testing.assert_allclose(added(a, b, beside).numpy(), a @ b + beside, rtol=1e-5, atol=1e-5)


def test_rows_may_be_symbolic() -> None:
    made: Any = ptir.jit(dynamic={"a": {0: "N"}})(lambda a, b: a @ b)
    b = drawn(3, 3)
    for rows in (1, 200, 256, 3000):
        a = drawn(rows, 3)
        np.testing.assert_allclose(made(a, b).numpy(), a @ b, rtol=1e-5, atol=1e-5)
