"""Activations of neural networks."""

from __future__ import annotations

from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.elementwise import clamp
from gptrs.torch.aten.table import aten, ptir


@aten("hardtanh")
def hardtanh(x: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    return clamp(x, min_val, max_val)


@aten("gelu")
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return ptir.gelu(x) if approximate == "none" else ptir.gelu_tanh(x)


@aten("silu")
def silu(x: Tensor) -> Tensor:
    return ptir.silu(x)


@aten("elu")
def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    below = ptir.expm1(x * input_scale) * alpha
    return ptir.where(x > 0, x, below) * scale


@aten("leaky_relu")
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    return ptir.where(x > 0, x, x * negative_slope)


@aten("softplus")
def softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    scaled = x * beta
    return ptir.where(scaled > threshold, x, ptir.log1p(ptir.exp(scaled)) / beta)


@aten("mish")
def mish(x: Tensor) -> Tensor:
    return x * ptir.tanh(ptir.nn.softplus(x))


@aten("hardswish")
def hardswish(x: Tensor) -> Tensor:
    return ptir.nn.hardswish(x)


@aten("hardsigmoid")
def hardsigmoid(x: Tensor) -> Tensor:
    return ptir.nn.hardsigmoid(x)


@aten("glu")
def glu(x: Tensor, dim: int = -1) -> Tensor:
    return ptir.nn.glu(x, dim)


@aten("_prelu_kernel")
def prelu(x: Tensor, weight: Tensor) -> Tensor:
    return ptir.where(x > 0, x, x * weight)
