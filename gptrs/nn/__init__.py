"""Layers, and `Module`, the base of layers and models."""

from __future__ import annotations

from gptrs.nn.activations import ACTIVATIONS
from gptrs.nn.cache import KVCache
from gptrs.nn.layers import (
    BatchNorm2d,
    Conv1D,
    Conv2d,
    ConvLayer,
    DepthwiseConv2d,
    Embedding,
    LayerNorm,
    Linear,
)
from gptrs.nn.module import Module, ParameterOf

__all__ = [
    "ACTIVATIONS",
    "BatchNorm2d",
    "Conv1D",
    "Conv2d",
    "ConvLayer",
    "DepthwiseConv2d",
    "Embedding",
    "KVCache",
    "LayerNorm",
    "Linear",
    "Module",
    "ParameterOf",
]
