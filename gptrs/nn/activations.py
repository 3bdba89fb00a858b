"""Activation functions by their names in Hugging Face configurations.

The entries of ``ACT2FN`` in transformers that have no parameters and occur in hidden layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gptrs import ptir
from gptrs.ir.tensor import Tensor


def _leaky_relu(x: Tensor) -> Tensor:
    """x above 0, 0.01 x below."""
    return ptir.maximum(x, x * 0.01)


def _relu_squared(x: Tensor) -> Tensor:
    """max(x, 0)². Source: So et al., arXiv:2109.08668."""
    positive = ptir.relu(x)
    return positive * positive


def _hard_swish(x: Tensor) -> Tensor:
    """x · clamp(x + 3, 0, 6) / 6. Source: Howard et al., arXiv:1905.02244."""
    return x * ptir.relu6(x + 3.0) / 6.0


def _mish(x: Tensor) -> Tensor:
    """x · tanh(log(1 + eˣ)). Source: Misra, arXiv:1908.08681.

    With n = eˣ (eˣ + 2), which subtracts nothing, tanh(log(1 + eˣ)) is n / (n + 2).
    """
    e = ptir.exp(ptir.minimum(x, 20.0))  # from there on n / (n + 2) is 1, also in f64
    n = e * (e + 2.0)
    return x * (n / (n + 2.0))


def _laplace(x: Tensor) -> Tensor:
    """½ (1 + erf((x − μ) / (σ √2))), with the μ and σ of Ma et al., arXiv:2209.10655."""
    return 0.5 * (1.0 + ptir.erf((x - 0.707107) / (0.282095 * math.sqrt(2))))


def _clipped_gelu(x: Tensor) -> Tensor:
    """gelu between −10 and 10. Source: Wu et al., arXiv:2004.09602."""
    return ptir.clamp(ptir.gelu(x), -10.0, 10.0)


def _identity(x: Tensor) -> Tensor:
    return x


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": ptir.gelu,
    "gelu_10": _clipped_gelu,
    "gelu_accurate": ptir.gelu_tanh,
    "gelu_fast": ptir.gelu_tanh,
    "gelu_new": ptir.gelu_tanh,
    "gelu_python": ptir.gelu,
    "gelu_python_tanh": ptir.gelu_tanh,
    "gelu_pytorch_tanh": ptir.gelu_tanh,
    "hardswish": _hard_swish,
    "laplace": _laplace,
    "leaky_relu": _leaky_relu,
    "linear": _identity,
    "mish": _mish,
    "quick_gelu": ptir.gelu_quick,
    "relu": ptir.relu,
    "relu2": _relu_squared,
    "relu6": ptir.relu6,
    "sigmoid": ptir.sigmoid,
    "silu": ptir.silu,
    "swish": ptir.silu,
    "tanh": ptir.tanh,
}
