"""Attention of tiles of queries, with an online softmax.

    program: a batch, a head, QUERIES queries
        for each KEYS keys of those that one of the queries sees:
            s = scale · q · kᵀ                          `tl.dot`; −∞ where a query does not see it
            m' = max(m, max s);  l, acc *= exp(m − m');  m = m'
            l += Σ exp(s − m);  acc += exp(s − m) · v   `tl.dot`, its weights as v's floats
        out = acc / max(l, 1)

Sources: Milakov and Gimelshein, arXiv:1805.02867; Dao et al., arXiv:2205.14135.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gptrs.backends.c_family.index_text import position
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.attention import attention_calls as plain_attention_calls
from gptrs.backends.c_family.kernels.operands import Operand, terms
from gptrs.backends.c_family.kernels.product_tiles import MOST
from gptrs.backends.memory_operands import Graph
from gptrs.backends.triton.tiles import ELEMENTS, as_python, has_tiles, is_plain, tile_call
from gptrs.ir.dims import DimLike, product, same
from gptrs.ir.program import Instruction, Value

QUERIES, KEYS = 64, 32
_FEW_QUERIES = 16
_MOST_DEPTH = 128
_LEAST_DEPTH = 16  # of `tl.dot`
_WARPS, _STAGES = 4, 2


def attention_calls(instruction: Instruction, graph: Graph) -> list[KernelCall] | None:
    """The kernels of an ``attention``: a tile program of many queries."""
    calls = plain_attention_calls(instruction, graph)
    values = [value for value in instruction.operands if isinstance(value, Value)]
    if calls is None or not has_tiles((*values, instruction.result)):
        return calls
    writer = _Writer(instruction, graph)
    if max(writer.depth, writer.width) > _MOST_DEPTH or (tiles := writer.call()) is None:
        return calls
    queries = values[0].type.shape[2]
    if isinstance(queries, int):
        return calls if queries < _FEW_QUERIES else [tiles]
    (alone,) = calls
    return [
        replace(alone, when=(queries, 0, _FEW_QUERIES - 1)),
        replace(tiles, when=(queries, _FEW_QUERIES, MOST)),
    ]


class _Writer:
    """Writes the tile program of an instruction."""

    def __init__(self, instruction: Instruction, graph: Graph) -> None:
        self._instruction, self._builder = instruction, KernelBuilder()
        given = [
            Operand.of(graph, o) if isinstance(o, Value) else None for o in instruction.operands
        ]
        q, k, v, start, end = (*given, None, None)[:5]
        assert q is not None
        assert k is not None
        assert v is not None
        self._q, self._k, self._v, self._start, self._end = q, k, v, start, end
        self.depth, self.width = int(q.view.shape[-1]), int(v.view.shape[-1])
        self._texts: list[str] = []

    def call(self) -> KernelCall | None:
        """The call; None where the sizes have no text in Python."""
        builder = self._builder
        batch, heads, queries, _ = self._q.view.shape
        n, h, of_group = (
            self._dim(size) for size in (queries, heads, heads // self._k.view.shape[1])
        )
        parts = f"(({n} + {QUERIES - 1}) // {QUERIES})"
        keys = self._dim(self._k.view.shape[2])
        lines = [
            f"part, outer = item % {parts}, item // {parts}",
            f"h, b = outer % {h}, outer // {h}",
            f"g = h // {of_group}",
            f"i = part * {QUERIES} + tl.arange(0, {QUERIES})",
            f"d, w = tl.arange(0, {_padded(self.depth)}), tl.arange(0, {_padded(self.width)})",
            *self._range(n, keys),
            f"inside = (i < {n})[:, None] & (d < {self.depth})[None, :]",
            f"q = {self._load(self._q, ['b', 'h', 'i[:, None]', 'd[None, :]'], 'inside')}",
            f'top = tl.full(({QUERIES},), float("-inf"), tl.float32)',
            f"weight = tl.zeros(({QUERIES},), tl.float32)",
            f"total = tl.zeros(({QUERIES}, {_padded(self.width)}), tl.float32)",
            f"for block in range(lowest, highest, {KEYS}):",
            *(f"    {line}" for line in self._block()),
        ]
        out = builder.write(self._instruction.result)
        element = ELEMENTS[self._instruction.result.type.dtype.name]
        lines += [
            "result = total / tl.maximum(weight, 1.0)[:, None]",
            f"place = (outer * {n} + i)[:, None] * {self.width} + w[None, :]",
            f"inside = (i < {n})[:, None] & (w < {self.width})[None, :]",
            f"tl.store({out} + place, result.to({element}), mask=inside)",
        ]
        if not is_plain(*self._texts):
            return None
        extent = product((batch, heads, (queries + QUERIES - 1) // QUERIES))
        work = self._k.view.shape[2] * QUERIES
        members = [self._instruction]
        made = builder.call("attention_tile_program", "item", extent, lines, members, work=work)
        return tile_call(made, _WARPS, _STAGES)

    def _dim(self, size: DimLike) -> str:
        text = self._builder.dim(size)
        self._texts.append(text)
        return as_python(text)

    def _at(self, operand: Operand, indices: Sequence[str]) -> str:
        """Where elements are."""
        self._builder.uses(operand.view.strides)
        offset = operand.offset(self._builder)
        strides = operand.view.strides
        self._texts.append(position(["p"] * len(indices), strides, offset))
        at = position([f"({index})" for index in indices], strides, offset)
        still = [f"0 * {i}" for i, n in zip(indices, strides, strict=True) if same(n, 0)]
        return as_python(terms(self._builder.read(operand.value), at, *still))

    def _load(self, operand: Operand, indices: Sequence[str], inside: str) -> str:
        kinds = {self._q.dtype, self._k.dtype, self._v.dtype}
        wide = "" if len(kinds) == 1 else ".to(tl.float32)"
        return f"tl.load({self._at(operand, indices)}, mask={inside}, other=0.0){wide}"

    def _range(self, n: str, keys: str) -> list[str]:
        """The keys that queries see: from ``first`` to ``last``."""
        attrs = self._instruction.attrs
        end = keys if self._end is None else f"tl.load({self._at(self._end, ['b'])}).to(tl.int64)"
        start = "0" if self._start is None else f"tl.load({self._at(self._start, ['b'])})"
        lines = [  # what is added is 0, and makes a number the type of the other one
            f"end, begin = {end} + 0 * item, {start} + 0 * item",
            f"place = end - {n} + i",
            "first = tl.maximum(begin, 0) + 0 * place",
            f"last = tl.minimum(end, {keys}) + 0 * place",
        ]
        if attrs["causal"]:
            lines.append("last = tl.minimum(last, place + 1)")
        if attrs["window"] is not None:
            lines.append(f"first = tl.maximum(first, place - {attrs['window']} + 1)")
        return [*lines, "lowest, highest = tl.min(first, 0), tl.max(last, 0)"]

    def _block(self) -> list[str]:
        """The lines of a block of keys; those behind the last that a query sees are not read."""
        attrs = self._instruction.attrs
        scale = self.depth**-0.5 if attrs["scale"] is None else attrs["scale"]
        key = self._load(
            self._k,
            ["b", "g", "t[None, :]", "d[:, None]"],
            f"(t < highest)[None, :] & (d < {self.depth})[:, None]",
        )
        value = self._load(
            self._v,
            ["b", "g", "t[:, None]", "w[None, :]"],
            f"(t < highest)[:, None] & (w < {self.width})[None, :]",
        )
        lines = [
            f"t = (block + tl.arange(0, {KEYS})).to(tl.int64)",
            f"k = {key}",
            f'scores = tl.dot(q, k, input_precision="ieee") * {float(scale)!r}',
        ]
        if (cap := attrs["softcap"]) is not None:  # a hyperbolic tangent
            lines.append(f"scores = {cap!r} - {2 * cap!r} / (tl.exp(scores * {2 / cap!r}) + 1.0)")
        return [
            *lines,
            "seen = (t[None, :] >= first[:, None]) & (t[None, :] < last[:, None])",
            'scores = tl.where(seen, scores, float("-inf"))',
            "above = tl.maximum(top, tl.max(scores, 1))",
            'shift = tl.where(above == float("-inf"), 0.0, above)',
            "factor, e = tl.exp(top - shift), tl.exp(scores - shift[:, None])",
            "weight, top = weight * factor + tl.sum(e, 1), above",
            f"v = {value}",
            'total = tl.dot(e.to(v.dtype), v, total * factor[:, None], input_precision="ieee")',
        ]


def _padded(depth: int) -> int:
    """The least power of two of at least ``depth`` that `tl.dot` takes."""
    return max(_LEAST_DEPTH, 1 << (depth - 1).bit_length())
