"""Layers. Weights may be narrower than f32: they are widened where they are used."""

from __future__ import annotations

from gptrs import ptir
from gptrs.ir.tensor import Parameter, Tensor
from gptrs.nn.module import Module


def widened(weight: Tensor) -> Tensor:
    """``weight`` as f32 unless it is that or wider already: models compute in f32."""
    compute = weight.dtype.compute
    return weight if weight.dtype is compute else ptir.cast(weight, dtype=compute)


class Linear(Module):
    """x [..., in] · weightᵀ + bias, weight [out, in]."""

    weight: Parameter
    bias: Parameter | None = None

    def __call__(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else widened(self.bias)
        return ptir.linear(x, widened(self.weight), bias)


class Conv1D(Module):
    """x [..., in] · weight + bias, weight [in, out]: how GPT-2 stores its projections."""

    weight: Parameter
    bias: Parameter

    def __call__(self, x: Tensor) -> Tensor:
        return ptir.linear(x, widened(self.weight), widened(self.bias), transposed=True)


class Embedding(Module):
    """Rows of weight [vocabulary, width]."""

    weight: Parameter

    def __call__(self, ids: Tensor) -> Tensor:
        return widened(ptir.embedding(self.weight, ids))


class LayerNorm(Module):
    """Normalises the last axis to mean 0 and variance 1, then scales and shifts."""

    weight: Parameter
    bias: Parameter
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return ptir.layer_norm(x, widened(self.weight), widened(self.bias), eps=self.eps)
