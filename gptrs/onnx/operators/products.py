"""Matrix products."""

from __future__ import annotations

from gptrs.ir.tensor import Tensor
from gptrs.onnx.table import onnx, ptir


@onnx("MatMul")
def matmul(x: Tensor, y: Tensor) -> Tensor:
    return ptir.matmul(x, y)


@onnx("Gemm")
def gemm(
    x: Tensor,
    y: Tensor,
    c: Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - ONNX's own names
    transB: int = 0,  # noqa: N803
    broadcast: int = 1,
) -> Tensor:
    """``alpha · x · y + beta · c``, of x and y transposed where it is asked for."""
    x = ptir.transpose(x) if transA else x
    y = ptir.transpose(y) if transB else y
    made = ptir.matmul(x, y)
    made = made if alpha == 1 else _scaled(made, alpha)
    if c is None or beta == 0:
        return made
    return made + (c if beta == 1 else _scaled(c, beta))


def _scaled(x: Tensor, factor: float) -> Tensor:
    return ptir.astype(x * factor, x.dtype)


@onnx("Einsum")
def einsum(*operands: Tensor, equation: str) -> Tensor:
    return ptir.einsum(equation.replace(" ", ""), *operands)
