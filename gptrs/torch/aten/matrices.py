"""Products of matrices, attention, linear algebra, Fourier transforms, distances."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from gptrs.ir.dims import DimLike, product
from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import Operands, UnsupportedError, aten, enter_all, ptir

enter_all({"mm bmm mv dot matmul": ptir.matmul, "linear": ptir.nn.linear})


@aten("addmm", "baddbmm", "addmv")
def addmm(c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta · c + alpha · a b``."""
    beta, alpha = _factors(c, beta, alpha)
    made = ptir.matmul(a, b)
    made = made if alpha == 1 else made * alpha
    if beta == 0:
        return ptir.broadcast_to(made, shape=made.shape)
    return made + (c if beta == 1 else c * beta)


def _factors(c: Tensor, beta: Any, alpha: Any) -> tuple[Any, Any]:
    """Of integers, factors without their fractions, as torch has them."""
    return (int(beta), int(alpha)) if c.dtype.is_integer else (beta, alpha)


@aten("addbmm")
def addbmm(c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    beta, alpha = _factors(c, beta, alpha)
    return ptir.addbmm(c, a, b, beta=beta, alpha=alpha)


@aten("addr")
def addr(c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    beta, alpha = _factors(c, beta, alpha)
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
    scores = _scores(query, key, attn_mask, is_causal, scale)
    return made, ptir.logsumexp(ptir.cast(scores, dtype=ptir.f32), axis=-1)


def _scores(
    query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None
) -> Tensor:
    """The scores of each query's keys; -∞ for those that it does not see."""
    scores: Tensor = ptir.matmul(query, ptir.swapaxes(key, -1, -2)) * _factor(query, scale)
    if is_causal:
        rows, columns = query.shape[-2], key.shape[-2]
        seen = ptir.tril(ptir.ones((rows, columns), dtype=ptir.i1))
        scores = ptir.where(seen, scores, -float("inf"))
    if mask is None:
        return scores
    return ptir.where(mask, scores, -float("inf")) if mask.dtype.is_bool else scores + mask


def _factor(query: Tensor, scale: float | None) -> float:
    return float(query.shape[-1]) ** -0.5 if scale is None else scale


@aten("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, keys and values; the weights of keys are computed again. A query
    that sees no key has none."""
    if dropout_p:
        raise UnsupportedError("attention with dropout")
    grad, query, key, value, out = (
        ptir.cast(x, dtype=logsumexp.dtype) for x in (grad, query, key, value, out)
    )
    scores = _scores(query, key, attn_mask, is_causal, scale)
    rows = ptir.unsqueeze(logsumexp, -1)
    weights = ptir.where(rows == -float("inf"), 0.0, ptir.exp(scores - rows))
    of_weights = ptir.matmul(grad, ptir.swapaxes(value, -1, -2))
    of_rows = ptir.sum(grad * out, axis=-1, keepdims=True)
    of_scores = weights * (of_weights - of_rows) * _factor(query, scale)
    of_query = ptir.matmul(of_scores, key)
    of_key = ptir.matmul(ptir.swapaxes(of_scores, -1, -2), query)
    return of_query, of_key, ptir.matmul(ptir.swapaxes(weights, -1, -2), grad)


@aten("_trilinear")
def trilinear(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """The sum over ``sumdim`` of the product of three tensors, which lack some axes each."""
    letters = string.ascii_lowercase[: a.ndim + len(expand1)]

    def without(axes: Sequence[int]) -> str:
        return "".join(letter for axis, letter in enumerate(letters) if axis not in axes)

    operands = ",".join(map(without, (expand1, expand2, expand3)))
    return ptir.einsum(f"{operands}->{without(sumdim)}", a, b, c)


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
