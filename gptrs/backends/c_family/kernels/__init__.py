"""Kernels of ops that no fused loop computes, one description for all dialects of the C family.

`KERNELS` is the table: by op, a function that gives the kernel calls of an instruction, or None
where they cannot compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.backends.c_family.kernel import KernelCall
from gptrs.backends.c_family.kernels.attention import attention_calls
from gptrs.backends.c_family.kernels.contraction import dot_general_calls
from gptrs.backends.c_family.kernels.indexing import (
    dynamic_slice_calls,
    dynamic_update_slice_calls,
    gather_calls,
    scatter_calls,
    take_calls,
)
from gptrs.backends.c_family.kernels.moving import concat_calls, pad_calls, tile_calls
from gptrs.backends.c_family.kernels.order import heap_calls, network_calls, searchsorted_calls
from gptrs.backends.c_family.kernels.product_tiles import (
    plain_dot_general_calls,
    tiled_dot_general_calls,
)
from gptrs.backends.c_family.kernels.random import (
    random_bits_calls,
    rng_normal_calls,
    rng_uniform_calls,
)
from gptrs.backends.c_family.kernels.rows import arg_extreme_calls, cumulative_calls
from gptrs.backends.c_family.kernels.segments import (
    segment_columns_calls,
    segment_results_calls,
)
from gptrs.backends.c_family.kernels.windows import extract_patches_calls, reduce_window_calls
from gptrs.backends.memory_operands import Graph
from gptrs.ir.ops.composite import attention
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from gptrs.ir.ops.index import gather, scatter_add, scatter_reduce, take
from gptrs.ir.ops.random import random_bits, rng_normal, rng_uniform
from gptrs.ir.ops.reduce import argmax, argmin, cummax, cummin, cumprod, cumsum
from gptrs.ir.ops.segment import segment_reduce
from gptrs.ir.ops.shape import concat, pad, tile
from gptrs.ir.ops.sort import searchsorted, sort, top_k
from gptrs.ir.ops.window import extract_patches, reduce_window
from gptrs.ir.program import Instruction, Operation

Maker: TypeAlias = Callable[[Instruction, Graph], "list[KernelCall] | None"]

KERNELS: Mapping[Operation, Maker] = {
    dot_general: dot_general_calls,
    attention: attention_calls,
    take: take_calls,
    gather: gather_calls,
    scatter_add: scatter_calls,
    scatter_reduce: scatter_calls,
    dynamic_slice: dynamic_slice_calls,
    dynamic_update_slice: dynamic_update_slice_calls,
    concat: concat_calls,
    pad: pad_calls,
    tile: tile_calls,
    argmax: arg_extreme_calls,
    argmin: arg_extreme_calls,
    cumsum: cumulative_calls,
    cumprod: cumulative_calls,
    cummax: cumulative_calls,
    cummin: cumulative_calls,
    extract_patches: extract_patches_calls,
    reduce_window: reduce_window_calls,
    random_bits: random_bits_calls,
    rng_uniform: rng_uniform_calls,
    rng_normal: rng_normal_calls,
    sort: heap_calls,
    top_k: heap_calls,
    searchsorted: searchsorted_calls,
    segment_reduce: segment_columns_calls,
}

IN_F64: frozenset[Operation] = frozenset([rng_normal])
"""Ops that are computed in f64, whatever their dtypes."""

PARALLEL_KERNELS: Mapping[Operation, Maker] = {
    **KERNELS,
    dot_general: tiled_dot_general_calls,
    sort: network_calls,
    segment_reduce: segment_results_calls,
}
"""The same for devices that run thousands of work items, whose groups share memory."""
PLAIN_KERNELS: Mapping[Operation, Maker] = {**KERNELS, dot_general: plain_dot_general_calls}
"""The same, with products that share no memory: what tiles are measured and tested against."""


def kernel_calls(
    instruction: Instruction, graph: Graph, makers: Mapping[Operation, Maker] = KERNELS
) -> list[KernelCall] | None:
    """The kernel calls of an instruction; None where there are none for its op, its dtypes or its
    shapes."""
    maker = makers.get(instruction.op)
    values = (*instruction.values(), *instruction.results)
    if maker is None or any(value.type.dtype.name not in IN_MEMORY for value in values):
        return None
    return maker(instruction, graph)
