"""Custom calls: one class per kernel family, which matches instructions and binds its kernels.

| module | calls |
|---|---|
| `base` | `Call`, `Binder`, kernel lookup |
| `forms`, `packing` | packed forms of weights, and what packs those of products |
| `product` | dot_general with bias, activation, residual: packed GEMM and GEMV |
| `grouped_product` | products with a matrix for each group of rows (mixture of experts) |
| `contraction` | analysis of dot_general: operand layouts and epilogue |
| `unpacked_product` | products without packing: one column, few rows or few columns |
| `tiled_product` | dot_general of arguments of other dtypes and layouts |
| `arguments` | products of arguments: strides of operands, grid of a batch |
| `dot_steps` | steps of products with one column |
| `tiled_steps` | steps of products of arguments: packed or not, in batches |
| `attention` | attention over strided keys and values (KV cache) |
| `rowwise` | layer_norm, rms_norm, softmax |
| `rotary` | rotary positions |
| `lines` | operands as lines along an axis, for `scan`, `sort` and `arg_extreme` |
| `nests` | loop nests of indexed access, for `indexing` |
| `axes`, `blocks` | merging of axes; steps that copy or fill strided blocks |
| `take` | take of weights |
| `dynamic_slices` | dynamic_slice, dynamic_update_slice |
| `indexing` | take, gather, scatter_add, scatter_reduce, segment_reduce |
| `concat_pad`, `nested_concat` | concat, pad, tile: block copies |
| `scan` | cumsum, cumprod, cummax, cummin |
| `sort` | sort, top_k |
| `binary_search` | searchsorted |
| `arg_extreme` | argmax, argmin |
| `conv` | conv2d: direct and Winograd |
| `depthwise` | depthwise convolution |
| `bottleneck` | inverted bottleneck: 1 × 1, depthwise, 1 × 1 fused |
| `pooling` | max, average and global average pooling |
| `gufunc` | steps that call NumPy's inner loops |
| `fft` | Fourier transforms |
| `lapack` | linear algebra |
| `random` | rng_uniform, rng_normal, random_bits |
| `epilogue`, `windows` | shared by convolutions and pooling |

A call is used twice. In `custom_calls.make_calls`, `match` finds it in the program. In the plan,
`compile` compiles its kernels for any size, and `bind` adds its native steps at the sizes of a
call. `_CALLS` maps ops to classes; the first class that matches is taken.
"""

from __future__ import annotations

from functools import cache
from typing import cast

from gptrs.backends.faer.calls.base import Call
from gptrs.ir.ops.composite import attention, layer_norm, softmax
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from gptrs.ir.ops.experts import grouped_linear
from gptrs.ir.ops.fft import fft_c2c, fft_c2r, fft_r2c
from gptrs.ir.ops.index import gather, scatter_add, scatter_reduce, take
from gptrs.ir.ops.language import rms_norm, rotary
from gptrs.ir.ops.linalg import (
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from gptrs.ir.ops.random import random_bits, rng_normal, rng_uniform
from gptrs.ir.ops.reduce import argmax, argmin, cummax, cummin, cumprod, cumsum
from gptrs.ir.ops.segment import segment_reduce
from gptrs.ir.ops.shape import concat, pad, tile
from gptrs.ir.ops.sort import searchsorted, sort, top_k
from gptrs.ir.ops.vision import (
    avg_pool2d,
    conv2d,
    depthwise_conv2d,
    global_avg_pool2d,
    max_pool2d,
)
from gptrs.ir.program import Operation
from gptrs.locks import late_import

# Where each is, and the ops that a match may begin with. The first one that matches is taken; a
# class is imported when a program has such an op: text has no convolutions.
_CALLS: tuple[tuple[str, tuple[Operation, ...]], ...] = (
    ("product:MatrixProduct", (dot_general,)),
    ("tiled_product:TiledProduct", (dot_general,)),
    ("grouped_product:GroupedProduct", (grouped_linear,)),
    ("attention:Attention", (attention,)),
    ("rowwise:LayerNorm", (layer_norm,)),
    ("rowwise:RmsNorm", (rms_norm,)),
    ("rowwise:Softmax", (softmax,)),
    ("rotary:Rotary", (rotary,)),
    ("take:Take", (take,)),
    ("indexing:Gather", (take, gather)),
    ("indexing:Scatter", (scatter_add, scatter_reduce)),
    ("indexing:Segments", (segment_reduce,)),
    ("dynamic_slices:Update", (dynamic_update_slice,)),
    ("dynamic_slices:Slice", (dynamic_slice,)),
    ("concat_pad:Concat", (concat,)),
    ("concat_pad:Pad", (pad,)),
    ("concat_pad:Tile", (tile,)),
    ("scan:Cumulative", (cumsum, cumprod, cummax, cummin)),
    ("sort:Sort", (sort, top_k)),
    ("binary_search:BinarySearch", (searchsorted,)),
    ("arg_extreme:ArgExtreme", (argmax, argmin)),
    (
        "lapack:Lapack",
        (cholesky, det, eig, eigh, eigvals, eigvalsh, inv, slogdet, solve, svd, svdvals),
    ),
    ("lapack:Qr", (qr,)),
    ("fft:Fourier", (fft_c2c, fft_c2r, fft_r2c)),
    ("random:Random", (rng_uniform, rng_normal, random_bits)),
    ("bottleneck:Bottleneck", (conv2d, depthwise_conv2d)),
    ("conv:WinogradConv", (conv2d,)),
    ("conv:DirectConv", (conv2d,)),
    ("depthwise:DepthwiseConv", (conv2d, depthwise_conv2d)),
    ("pooling:MaxPool", (max_pool2d,)),
    ("pooling:AvgPool", (avg_pool2d,)),
    ("pooling:GlobalAvgPool", (global_avg_pool2d,)),
)


@cache
def calls_of(op: Operation) -> tuple[type[Call], ...]:
    """The call classes for an op, the first choice first."""
    return tuple([_class_at(place) for place, ops in _CALLS if op in ops])


def _class_at(place: str) -> type[Call]:
    module, _, name = place.partition(":")
    return cast("type[Call]", getattr(late_import(f"{__name__}.{module}"), name))
