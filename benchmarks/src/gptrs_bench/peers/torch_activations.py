"""Activations of torch by the names that Hugging Face's configurations call them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn import functional

from gptrs_bench.gpt2 import TANH_GELU


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x, approximate="tanh")


def _quick_gelu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(1.702 * x)


def _clipped_gelu(x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x).clamp(-10, 10)


def _laplace(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * (1 + torch.erf((x - 0.707107) / (0.282095 * math.sqrt(2))))


def _relu_squared(x: torch.Tensor) -> torch.Tensor:
    return functional.relu(x).square()


def _identity(x: torch.Tensor) -> torch.Tensor:
    return x


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": functional.gelu,
    "gelu_10": _clipped_gelu,
    "gelu_python": functional.gelu,
    **dict.fromkeys(TANH_GELU, _gelu_tanh),
    "hardswish": functional.hardswish,
    "laplace": _laplace,
    "leaky_relu": functional.leaky_relu,
    "linear": _identity,
    "mish": functional.mish,
    "quick_gelu": _quick_gelu,
    "relu": functional.relu,
    "relu2": _relu_squared,
    "relu6": functional.relu6,
    "sigmoid": torch.sigmoid,
    "silu": functional.silu,
    "swish": functional.silu,
    "tanh": torch.tanh,
}
