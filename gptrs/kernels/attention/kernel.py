"""Attention softmax(q·kᵀ·scale + mask)·v in f32, without a matrix of scores (FlashAttention).

Keys and values are f32, or f16 or bf16 in memory (a KV cache of half the size): they are widened as
they are read, which is exact, and the result has the bits of widened copies.

    for work item (batch row, group, row block):                # extent
        copy the queries of the row block to the stack
        for block of keys, from the first key seen:             # 64, 32 or 16 keys by head size
            pack k [block, D] into [D, block]                   # prefill only
            for tile of queries:
                scores = q · kᵀ · scale                         # registers, then L1
                m' = max(m, scores); weights = exp(scores − m'); l = l·exp(m − m') + Σ weights
                sums = sums·exp(m − m') + weights · v           # registers, then L1
        result = sums / l

    q, result [B, H, S, D]; k, v [B, G, T, D]; any strides but that of D, which is 1
    row block:  rows (query, head of the group):  q0h0 q0h1 .. q1h0 q1h1 ..     H/G heads share k, v

One kernel serves prefill and decode. If more than a few queries need a block of keys, the kernel
packs the keys on its stack; a few queries read them where they lie, with software prefetch of the
following keys and values. Sources: online softmax, arXiv:1805.02867; attention in linear memory,
FlashAttention, arXiv:2205.14135.

Order rule: a score is one chain of multiply-adds over the head's elements; a sum of weights is one
chain over blocks in each lane, in a block over its vectors, and in the end over lanes as a tree; an
element of the result is one chain over the keys that the query sees, ascending, scaled at the
beginning of a block where the maximum rises. Keys that a query does not see take no part, whatever
their values. Blocks are counted from kv_start; where it is negative, the row's first keys are not
there any more, which changes nothing for a window that has left them behind by a block. So the bits
of a query's result depend on its keys alone: not on other queries or rows, padding, capacity, the
kernel's range or ``row_block``.
"""

from __future__ import annotations

from llvmlite import ir

from gptrs.errors import ArgumentError
from gptrs.kernels.attention.blocks import Head, Scratch, most_rows
from gptrs.kernels.attention.flash_attention import AttentionFunctions, flash_attention
from gptrs.kernels.attention.work_item import WorkItem
from gptrs.kernels.compiler.ir_builder import Function, KernelText
from gptrs.kernels.compiler.isa import Isa

_POINTERS = ("q", "k", "v", "result", "start", "length")
_STRIDES = tuple(
    f"{operand}_{axis}" for operand in ("q", "k", "v", "r") for axis in ("batch", "head", "token")
)
_SIZES = ("groups", "shared", "queries", "keys", "row_block", "window")
_ROW_STRIDES = ("start_stride", "length_stride")
ATTENTION_ARGUMENTS = _POINTERS + _SIZES + _STRIDES + _ROW_STRIDES
"""The argument block, in order.

For q and result [B, H, S, D], k and v [B, G, T, D]: ``groups`` is G, ``shared`` H / G, ``queries``
S, ``keys`` T. All strides count elements and may be anything; the elements of a head are
contiguous. ``start`` and ``length`` point to kv_start and kv_len, one integer every ``stride`` (0:
one for all rows). ``row_block`` is from 1 to `most_rows`. Arguments that the `Head` does not use
may be anything. The result overlaps no operand.
"""


def attention_extent(batch: int, groups: int, shared: int, queries: int, row_block: int) -> int:
    """The extent: row blocks of every group of every batch row. Its rows are H/G · S, in the order
    of queries, the heads that share a group side by side."""
    return batch * groups * -(-shared * queries // row_block)


def row_block_for(
    isa: Isa, size: int, batch: int, groups: int, shared: int, queries: int, threads: int
) -> int:
    """A row block that gives every thread several work items; it changes no bit of the result."""
    rows, most, tile = max(1, shared * queries), most_rows(isa, size), isa.tile_rows
    items = 8 * threads if threads > 1 else 1
    wanted = -(-items // max(1, batch * groups))  # row blocks of each group
    return min(most, -(-rows // (wanted * tile)) * tile)


def attention_time(
    batch: int, heads: int, groups: int, queries: int, keys: int, size: int, element: int = 4
) -> float:
    """An estimate in ns, on one thread: to read keys and values (elements of so many bytes), and to
    compute."""
    return batch * keys * size * (groups * element / 12 + heads * queries / 25)


def attention_kernel(isa: Isa, head: Head) -> KernelText:
    """Attention for ``head``. Arguments: `ATTENTION_ARGUMENTS`; extent: `attention_extent`.

    Query i of S stands at position kv_len − S + i. It sees the keys from kv_start to kv_len, if
    ``causal`` none after its position, with a ``window`` none that many or more before it. One that
    sees no key, or only keys with a score of −∞, gives 0. Raises `ArgumentError` for a head size
    that it is not made for.
    """
    if not 1 <= head.size <= 256:
        raise ArgumentError(f"head size {head.size}, expected 1 to 256")
    name = f"attention_{head.label}"
    module = ir.Module(f"{name} {isa.name}")
    functions = AttentionFunctions(module, isa, head)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    sizes = ATTENTION_ARGUMENTS[len(_POINTERS) :]
    item = WorkItem(f, head, f.argument_block(address, _POINTERS, sizes), Scratch(f, head))
    with f.loop(first, last) as loop:
        item.locate(loop.index)
        item.begin()
        flash_attention(item, functions)
        item.finish()
    f.ret_void()
    return KernelText(str(module), name)
