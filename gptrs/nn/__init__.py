"""Neural network layers over ``ptir`` ops, and `Module`, the base of layers and models.

A layer is a dataclass of parameters and options with a ``__call__`` of a few lines. Layers hold no
state besides their fields: a call is traced like any function.

| module | contents |
|---|---|
| `module` | `Module`: fields, ``__init__``, parameters and submodules by dotted names |
| `field_types` | type checks of the values that a module's fields get |
| `layers` | Linear, Conv1D, Embedding, norms, Conv2d, DepthwiseConv2d, BatchNorm2d, ConvLayer |
| `activations` | activations by their Hugging Face names (``ACT2FN``) |
| `cache` | `KVCache`, `CacheLayout`: keys and values of earlier tokens, causal attention to them |
| `cache_memory` | memory of KV caches: huge pages, reused from cache to cache |
| `rotary` | rotary positions: frequencies of every ``rope_type``, tables of cosines and sines |
| `layout` | NHWC and NCHW images |

Order when a model is built and runs: a checkpoint's parameters → layers (`field_types` checks them)
→ the model's ``__call__`` is traced, which calls the layers.
"""

from __future__ import annotations

from gptrs.nn.activations import ACTIVATIONS
from gptrs.nn.cache import CacheLayout, KVCache
from gptrs.nn.layers import (
    BatchNorm2d,
    Conv1D,
    Conv2d,
    ConvLayer,
    DepthwiseConv2d,
    Embedding,
    LayerNorm,
    Linear,
    RMSNorm,
)
from gptrs.nn.module import Module, ParameterOf

__all__ = [
    "ACTIVATIONS",
    "BatchNorm2d",
    "CacheLayout",
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
    "RMSNorm",
]
