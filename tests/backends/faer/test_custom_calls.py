"""Matching of custom calls: which instructions they absorb, and that no other result is lost."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor

W = Parameter(np.linspace(-1, 1, 48, dtype=np.float32).reshape(8, 6), "w")
V = Parameter(np.linspace(2, -1, 48, dtype=np.float32).reshape(8, 6), "v")
HALF = Parameter(np.linspace(-1, 1, 48, dtype=np.float32).reshape(8, 6).astype(np.float16), "h")
EXPERTS = Parameter(np.linspace(-1, 1, 96, dtype=np.float32).reshape(3, 4, 8), "e")
IDS = Parameter(np.array([[0, 2], [1, 1], [2, 0], [0, 1], [2, 2]]), "ids")
BIAS = Parameter(np.arange(6, dtype=np.float32), "b")
X = np.sin(np.arange(40, dtype=np.float32)).reshape(5, 8)
PRODUCT = "gpt_rs.faer.matmul.f32.v1"


def heads(x: Tensor) -> Tensor:
    return x.reshape(1, 5, 1, 8).permute(0, 2, 1, 3)


def attended(x: Tensor) -> Any:
    y = ptir.attention(heads(x), heads(x), heads(x), causal=True)
    return y.permute(0, 2, 1, 3).reshape(5, 8) @ W


def both(x: Tensor) -> Any:
    y = x @ W
    return y + 1.0, ptir.gelu(y)


def shared_cast(x: Tensor) -> Any:
    wide = ptir.cast(HALF, dtype=ptir.f32)
    return x @ wide, ptir.exp(wide)


def two_products(x: Tensor) -> Any:
    return x @ W + (x * 2.0) @ W


# What the name says, and how many calls and other instructions there are in the end.
PROGRAMS: dict[str, tuple[Any, int, int]] = {
    "bias, activation and residual": (lambda x: ptir.gelu(x @ W + BIAS) + x[:, :6], 1, 0),
    "a gated product": (lambda x: ptir.silu(x @ W) * (x @ V) + x[:, :6], 2, 0),
    "a factor that is read where it lies": (lambda x: (x @ W) * x[:, 2:], 1, 0),
    "a factor of a product of arguments": (lambda x: (x @ x.T) * x[:, :5], 1, 2),
    "residual first": (lambda x: x[:, 2:] + x @ W, 1, 0),
    "a bias of one number is added in a loop": (lambda x: x @ W + BIAS[:1], 1, 1),
    "an activation of what is a result too": (both, 1, 6),
    "a product that two read": (lambda x: (x @ W) * (x @ W + 1.0), 1, 2),
    "two products added": (two_products, 2, 1),
    "a transposed weight": (lambda x: x[:, :6] @ W.T, 1, 0),
    "transposed rows": (lambda x: x.T @ x, 1, 0),
    "transposed rows of a weight": (lambda x: x.reshape((8, 5)).T @ W, 1, 2),
    "one head, so that moving axes changes nothing": (attended, 2, 0),
    "a widened weight": (lambda x: x @ ptir.cast(HALF, dtype=ptir.f32), 1, 0),
    "a widened weight that another reads": (shared_cast, 1, 2),
    "an activation alone": (lambda x: ptir.silu(x), 0, 4),
    "rows of a weight": (
        lambda x: ptir.ops.take(W, ptir.cast(x[:, 0] * 0.0, dtype=ptir.si32)),
        1,
        4,
    ),
    "a product over two axes": (
        lambda x: ptir.dot_general(
            x.reshape(5, 2, 4), W.reshape(4, 2, 6), contract_lhs=(1, 2), contract_rhs=(1, 0)
        ),
        1,
        0,
    ),
    "an outer product": (
        lambda x: ptir.dot_general(x[0], x[1], contract_lhs=(), contract_rhs=()),
        1,
        0,
    ),
    "the same array twice": (lambda x: x[:, :5] @ x[:, :5], 1, 0),
    "a sum of columns": (lambda x: ptir.softmax(x[:, 1:7], axis=-1), 1, 0),
    "softmax along rows": (lambda x: ptir.softmax(x, axis=0), 0, 7),
    "rms_norm of a part": (lambda x: ptir.rms_norm(x[1:, :6], BIAS), 1, 0),
    "rms_norm without a weight": (lambda x: ptir.rms_norm(x * 2.0, eps=0.5), 1, 1),
    "rms_norm of a column": (lambda x: ptir.rms_norm(x[:, :1]), 1, 0),
    "rotary of heads": (
        lambda x: ptir.rotary(x.reshape(5, 2, 4).permute(1, 0, 2), BIAS[:2], Tensor(X[:, 6:8])),
        1,
        1,
    ),
    "rotary of interleaved pairs": (
        lambda x: ptir.rotary(x[:, :6], x[:, :3], BIAS, interleaved=True),
        1,
        0,
    ),
    "rows by their experts": (lambda x: ptir.grouped_linear(x[:, :], IDS, EXPERTS), 1, 0),
    "a row for each expert": (
        lambda x: ptir.grouped_linear(ptir.stack((x, x[::-1]), axis=1), IDS, EXPERTS),
        2,
        0,
    ),
    "experts of a widened weight": (
        lambda x: ptir.grouped_linear(
            x[:, 2:], IDS, ptir.cast(Parameter(HALF.numpy().reshape(4, 2, 6)), dtype=ptir.f32)
        ),
        1,
        0,
    ),
    "some of the experts": (lambda x: ptir.grouped_linear(x, IDS * 0, EXPERTS[1:]), 1, 1),
    "experts that are computed": (
        lambda x: ptir.grouped_linear(x, IDS, EXPERTS * x[0]),
        1,
        4,
    ),
    "a norm of a part": (lambda x: ptir.layer_norm(x[1:, :6], BIAS, BIAS), 1, 0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    function, calls, others = PROGRAMS[name]
    jitted = ptir.jit(backend="faer")(function)
    body = jitted.lowered(X).body
    found = sum(i.op.name == "custom_call" for i in body)
    results = jitted(X)
    with ptir.eager():
        expected = function(Tensor(X))
    pairs = (
        zip(results, expected, strict=True) if isinstance(results, tuple) else [(results, expected)]
    )
    for a, b in pairs:
        np.testing.assert_allclose(a.numpy(), np.asarray(b), rtol=2e-6, atol=4e-6)
    assert (found, len(body) - found) == (calls, others), jitted.lowered(X)


@pytest.mark.parametrize("rows", [1, 7, 40])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_of_two_arguments_packs_the_second(rows: int, transposed: bool) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((rows, 45), np.float32), rng.standard_normal((45, 70), np.float32)
    given = np.ascontiguousarray(w.T) if transposed else w
    product = ptir.jit(backend="faer")(lambda x, w: x @ (w.T if transposed else w))
    np.testing.assert_allclose(product(x, given).numpy(), x @ w, rtol=1e-4, atol=1e-5)


def test_two_updates_of_arrays_of_different_lengths() -> None:
    """Calls that differ in the sizes of their operands alone share no steps."""

    @ptir.jit(backend="faer")
    def update(x: Any, y: Any, new: Any) -> Any:
        return ptir.dynamic_update_slice(x, new, (2,)), ptir.dynamic_update_slice(y, new, (2,))

    two, one, new = (np.full(n, n, np.float32) for n in (2, 1, 1))
    found = update(two, one, new)
    assert [each.numpy().tolist() for each in found] == [[2, 1], [1]]
