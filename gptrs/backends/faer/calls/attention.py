"""Attention call: strided q, k and v (the KV cache among them), flash attention kernel.

Keys and values that are cast from f16 or bf16 are read as they are stored: nothing but the cache of
16 bits is in memory.
"""

from __future__ import annotations

import math
from dataclasses import replace

from gptrs.backends.faer.calls.base import Address, Binder, Call, kernel
from gptrs.backends.memory_operands import Graph, Members, Source, has_whole_rows
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, Shape, same
from gptrs.ir.ops.composite import attention
from gptrs.ir.ops.elementwise import cast
from gptrs.ir.ops.shape import transpose
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import f32
from gptrs.kernels.attention.blocks import Head, Index
from gptrs.kernels.attention.kernel import (
    ATTENTION_ARGUMENTS,
    attention_extent,
    attention_kernel,
    attention_time,
    row_block_for,
)
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import WeightType, weight_bytes
from gptrs.lazy_dataclass import dataclass

_INDICES: dict[str, Index] = {"si32": "i32", "si64": "i64"}
_NARROW: dict[str, WeightType] = {"f16": "f16", "bf16": "bf16"}
_MOST_HEAD = 256


@dataclass(frozen=True, eq=False)
class Attention(Call):
    """softmax(q·kᵀ·scale + mask)·v."""

    target = "gpt_rs.faer.attention.f32.v1"

    q: Source
    k: Source
    v: Source
    start: Source | None
    length: Source | None
    head: Head
    window: int
    strides: Shape
    """The strides of the result's axes [batch, heads, queries, head size]."""

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Attention | None:
        if core.op is not attention:
            return None
        members = Members()
        head = _head(core)
        q, k, v = (
            graph.source(value, has_whole_rows) if isinstance(value, Value) else None
            for value in core.operands[:3]
        )
        ends = [
            members.read(graph.source(value, lambda view: True))
            if isinstance(value, Value)
            else None
            for value in core.operands[3:]
        ]
        start, length = ends
        if head is None or q is None or k is None or v is None:
            return None
        narrow = [_narrow(source, graph) for source in (k, v)]
        match narrow:
            case [(keys, stored), (values, also)] if stored == also:
                k, v, head = keys, values, replace(head, stored=stored)
            case _:
                pass
        for source in (q, k, v):
            members.read(source)
        members.add(core)
        result, strides = core.result, View.contiguous(core.result.type.shape).strides
        reader = graph.only_reader(result)
        if reader is not None and reader.op is transpose and reader.attrs["perm"][-1] == 3:
            members.add(reader)
            result = reader.result
            placed = View.contiguous(result.type.shape).strides
            perm: tuple[int, ...] = reader.attrs["perm"]
            strides = tuple(placed[perm.index(axis)] for axis in range(4))
        window: int = core.attrs["window"] or 0
        found = tuple(members.found)
        return cls(result, found, q, k, v, start, length, head, window, strides)

    def compile(self, isa: Isa) -> None:
        kernel(attention_kernel, isa, self.head)

    def bind(self, b: Binder) -> bool:
        batch, heads, queries, size = (b.size(n) for n in self.q.view.shape)
        groups, keys = b.size(self.k.view.shape[1]), b.size(self.k.view.shape[2])
        if not batch * heads * queries:
            return True
        words: dict[str, int | Address] = dict.fromkeys(ATTENTION_ARGUMENTS, 0)
        for name, source in (("q", self.q), ("k", self.k), ("v", self.v)):
            words[name] = b.address(source.value, source.view.offset)
            _put_strides(words, name, b, source.view.strides)
        words["result"] = b.address(self.result)
        _put_strides(words, "r", b, self.strides)
        for name, source in (("start", self.start), ("length", self.length)):
            if source is not None:
                words[name] = b.address(source.value, source.view.offset)
                words[f"{name}_stride"] = b.size(source.view.strides[0])
        shared = heads // groups
        block = row_block_for(b.isa, size, batch, groups, shared, queries, b.threads)
        words.update(groups=groups, shared=shared, queries=queries, keys=keys)
        words.update(row_block=block, window=self.window)
        extent = attention_extent(batch, groups, shared, queries, block)
        element = weight_bytes(self.head.stored)
        time = attention_time(batch, heads, groups, queries, keys, size, element)
        code = kernel(attention_kernel, b.isa, self.head)
        uneven = self.head.causal and queries > 1
        b.step(code, [*words.values()], extent, time, uneven=uneven)
        return True


def _put_strides(
    words: dict[str, int | Address], name: str, b: Binder, strides: tuple[DimLike, ...]
) -> None:
    for axis, stride in zip(("batch", "head", "token"), strides, strict=False):
        words[f"{name}_{axis}"] = b.size(stride)


def _narrow(wide: Source, graph: Graph) -> tuple[Source, WeightType] | None:
    """The source of 16 bits that is cast to the f32 of ``wide``, and its type."""
    maker = graph.maker.get(wide.value)
    if maker is None or maker.op is not cast or maker in graph.taken:
        return None
    (value,) = maker.values()
    source = graph.source(value, has_whole_rows)
    if source is None or (stored := _NARROW.get(value.type.dtype.name)) is None:
        return None
    view: View | None = source.view
    for each in wide.through:
        view = view and view.moved_by(each.op, each.attrs)
    through = (*source.through, maker, *wide.through)
    if view is None or not has_whole_rows(view):
        return None
    return Source(source.value, view, through), stored


def _head(core: Instruction) -> Head | None:
    """The parameters that the kernel's code depends on; None where no kernel supports them."""
    q, k, v, start, length = core.operands
    assert isinstance(q, Value)
    assert isinstance(k, Value)
    assert isinstance(v, Value)
    size, groups = q.type.shape[-1], k.type.shape[1]
    ends = [value for value in (start, length) if isinstance(value, Value)]
    kinds = {value.type.dtype.name for value in ends}
    if q.type.dtype is not f32 or not isinstance(size, int) or not 1 <= size <= _MOST_HEAD:
        return None
    if not same(v.type.shape[-1], size) or same(groups, 0):
        return None
    if len(kinds) > 1 or not kinds <= _INDICES.keys():
        return None
    scale = core.attrs["scale"]
    return Head(
        size,
        1 / math.sqrt(size) if scale is None else float(scale),
        core.attrs["softcap"],
        causal=core.attrs["causal"],
        window=core.attrs["window"] is not None,
        start=start is not None,
        length=length is not None,
        index=_INDICES[next(iter(kinds))] if kinds else "i32",
    )
