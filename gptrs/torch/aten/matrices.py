"""Products of matrices, attention, linear algebra, Fourier transforms, distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.ir.dims import DimLike, product
from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import Operands, UnsupportedError, aten, enter_all, ptir

enter_all({"mm bmm mv dot matmul": ptir.matmul, "linear": ptir.nn.linear})


@aten("addmm", "baddbmm", "addmv")
def addmm(c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta · c + alpha · a b``."""
    made = ptir.matmul(a, b)
    made = made if alpha == 1 else made * alpha
    if beta == 0:
        return ptir.broadcast_to(made, shape=made.shape)
    return made + (c if beta == 1 else c * beta)


@aten("addbmm")
def addbmm(c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return ptir.addbmm(c, a, b, beta=beta, alpha=alpha)


@aten("addr")
def addr(c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return ptir.addr(c, a, b, beta=beta, alpha=alpha)


@aten("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention, and the logarithm of each row's sum, which its gradient needs."""
    if dropout_p:
        raise UnsupportedError("attention with dropout")
    made = attention(query, key, value, attn_mask, 0.0, is_causal, scale=scale)
    by = float(query.shape[-1]) ** -0.5 if scale is None else scale
    scores: Tensor = ptir.matmul(query, ptir.swapaxes(key, -1, -2)) * by
    if is_causal:
        rows, columns = query.shape[-2], key.shape[-2]
        seen = ptir.tril(ptir.ones((rows, columns), dtype=ptir.i1))
        scores = ptir.where(seen, scores, -float("inf"))
    if attn_mask is not None:
        scores = (
            ptir.where(attn_mask, scores, -float("inf"))
            if attn_mask.dtype.is_bool
            else scores + attn_mask
        )
    return made, ptir.logsumexp(ptir.cast(scores, dtype=ptir.f32), axis=-1)


@aten("scaled_dot_product_attention")
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if dropout_p:
        raise UnsupportedError("attention with dropout")
    return ptir.nn.scaled_dot_product_attention(
        query, key, value, attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
    )


@aten("linalg_solve_triangular")
def solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    if not left:
        raise UnsupportedError("a triangular matrix on the right")
    return ptir.linalg.solve_triangular(a, b, upper=upper, unitriangular=unitriangular)


@aten("linalg_cross")
def cross(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    return ptir.linalg.cross(x, y, axis=dim)


@aten("linalg_matrix_exp")
def matrix_exp(x: Tensor) -> Tensor:
    return ptir.linalg.matrix_exp(x)


@aten("_cdist_forward")
def cdist(x: Tensor, y: Tensor, p: float, compute_mode: int | None) -> Tensor:
    return ptir.cdist(x, y, p)


@aten("_pdist_forward")
def pdist(x: Tensor, p: float = 2) -> Tensor:
    return ptir.pdist(x, p)


@aten("_euclidean_dist", operands=Operands.AS_GIVEN)
def euclidean(x: Tensor, y: Tensor) -> Tensor:
    return ptir.cdist(x, y, 2.0)


def _scaled(x: Tensor, count: DimLike, normalization: int) -> Tensor:
    """A transform divided by nothing, by √n, or by n."""
    if normalization == 0:
        return x
    return x * float(count) ** (-0.5 if normalization == 1 else -1.0)


def _count(shape: Sequence[DimLike], dim: Sequence[int]) -> DimLike:
    return product(tuple(shape[axis] for axis in dim))


@aten("_fft_c2c")
def fft_c2c(x: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    """The transform of complex numbers over some axes."""
    run, norm = (ptir.fft.fftn, "backward") if forward else (ptir.fft.ifftn, "forward")
    return _scaled(run(x, axes=tuple(dim), norm=norm), _count(x.shape, dim), normalization)


@aten("_fft_r2c")
def fft_r2c(x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    """The transform of real numbers, the half of the last axis that determines the rest."""
    run = ptir.fft.rfftn if onesided else ptir.fft.fftn
    return _scaled(run(x, axes=tuple(dim)), _count(x.shape, dim), normalization)


@aten("_fft_c2r")
def fft_c2r(x: Tensor, dim: Sequence[int], normalization: int, last_dim_size: DimLike) -> Tensor:
    """The transform back to real numbers, so many along the last axis."""
    extents = tuple(last_dim_size if axis == dim[-1] else x.shape[axis] for axis in dim)
    made = ptir.fft.irfftn(x, s=extents, axes=tuple(dim), norm="forward")
    return _scaled(made, product(extents), normalization)
