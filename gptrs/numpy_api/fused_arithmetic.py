"""Products and quotients that are added to something: addmm, addmv, addr, addcmul, addcdiv, rsub.

``beta`` · x + ``alpha`` · product; where ``beta`` is 0, ``x`` is not read, as in BLAS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs.errors import ShapeError
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.arithmetic import divide
from gptrs.numpy_api.function import as_tensor, public

__all__ = ["addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "baddbmm", "rsub"]


def _ranks(name: str, a: Tensor, b: Tensor, ranks: tuple[int, int]) -> None:
    if (a.ndim, b.ndim) != ranks:
        raise ShapeError(
            f"{name} takes operands of ranks {ranks[0]} and {ranks[1]}, found"
            f" {shape_text(a.shape)} and {shape_text(b.shape)}"
        )


def _added(
    name: str,
    x: Any,
    factors: tuple[Any, Any],
    scales: tuple[Any, Any],
    ranks: tuple[int, int],
    product: Callable[..., Tensor],
) -> Tensor:
    x, a, b = promote((as_tensor(x), as_tensor(factors[0]), as_tensor(factors[1])))
    _ranks(name, a, b, ranks)
    beta, alpha = scales
    result = product(a, b)
    result = result if alpha == 1 else result * alpha
    if beta == 0:
        return result
    return (x if beta == 1 else x * beta) + result


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    return OPS["matmul"](a, b)


@public
def addmm(x: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """β·x + α·(mat1 · mat2) for mat1 [M, K] and mat2 [K, N]; ``x`` broadcasts to [M, N]."""
    return _added("addmm", x, (mat1, mat2), (beta, alpha), (2, 2), _matmul)


@public
def addmv(x: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """β·x + α·(mat · vec) for mat [M, K] and vec [K]; ``x`` broadcasts to [M]."""
    return _added("addmv", x, (mat, vec), (beta, alpha), (2, 1), _matmul)


@public
def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """β·x + α·vec1[i]·vec2[j]; ``x`` broadcasts to [M, N]."""
    return _added("addr", x, (vec1, vec2), (beta, alpha), (1, 1), FUNCTIONS["outer"])


@public
def baddbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """β·x + α·(batch1 · batch2) for [B, M, K] and [B, K, N]; ``x`` broadcasts to [B, M, N]."""
    return _added("baddbmm", x, (batch1, batch2), (beta, alpha), (3, 3), _matmul)


def _summed(a: Tensor, b: Tensor) -> Tensor:
    """Σ over the batch of a · b, as one product of matrices [M, B·K] and [B·K, N]."""
    batch, rows, inner = a.shape
    wide = OPS["transpose"](a, perm=(1, 0, 2)).reshape((rows, batch * inner))
    return OPS["matmul"](wide, b.reshape((batch * inner, b.shape[2])))


@public
def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """β·x + α·Σ over the batch of (batch1 · batch2); ``x`` broadcasts to [M, N]."""
    return _added("addbmm", x, (batch1, batch2), (beta, alpha), (3, 3), _summed)


@public
def addcmul(x: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """x + value · tensor1 · tensor2; shapes broadcast."""
    x, a, b = promote((as_tensor(x), as_tensor(tensor1), as_tensor(tensor2)))
    return x + (a * b if value == 1 else a * b * value)


@public
def addcdiv(x: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """x + value · tensor1 / tensor2; shapes broadcast. Integers divide as f32."""
    part = as_tensor(tensor1)
    return as_tensor(x) + divide(part if value == 1 else part * value, tensor2)


@public
def rsub(x: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """other − alpha · x."""
    part = as_tensor(x)
    return other - (part if alpha == 1 else part * alpha)
