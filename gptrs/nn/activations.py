"""Activations by the names that Hugging Face's configurations call them."""

from __future__ import annotations

from collections.abc import Callable

from gptrs import ptir
from gptrs.ir.tensor import Tensor

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": ptir.gelu,
    "gelu_new": ptir.gelu_tanh,
    "gelu_fast": ptir.gelu_tanh,
    "gelu_pytorch_tanh": ptir.gelu_tanh,
    "quick_gelu": ptir.gelu_quick,
    "relu": ptir.relu,
    "relu6": ptir.relu6,
    "sigmoid": ptir.sigmoid,
    "silu": ptir.silu,
    "swish": ptir.silu,
    "tanh": ptir.tanh,
}
