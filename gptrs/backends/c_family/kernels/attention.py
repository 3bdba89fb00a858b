"""Attention of one query after the other, with an online softmax.

    work item: a batch, a head, a query
        for each BLOCK keys of those that the query sees:
            s[t] = scale · Σ_d q[d] · k[t, d]                dot products in 8 lanes
            m' = max(m, max s);  l, acc[·] *= exp(m − m');  m = m'
            l += Σ exp(s[t] − m);  acc[·] += exp(s[t] − m) · v[t, ·]
        out[·] = acc[·] / max(l, 1)

Blocks are counted from the first key that the query sees, so that the result does not depend on the
padding, on other rows, or on the tokens that come with it. Source: Milakov and Gimelshein,
arXiv:1805.02867; Dao et al., arXiv:2205.14135.
"""

from __future__ import annotations

from gptrs.backends.c_family.element_types import arithmetic, literal, loaded, stored
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.operands import Operand
from gptrs.backends.memory_operands import Graph
from gptrs.ir.dims import product
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import DType

BLOCK = 64
LANES = 8
MOST_DEPTH = 512


def has_attention(instruction: Instruction) -> bool:
    """Whether a kernel can compute this ``attention``."""
    q, _, v = (operand for operand in instruction.operands[:3] if isinstance(operand, Value))
    depths = q.type.shape[-1], v.type.shape[-1]
    return q.type.dtype.is_float and all(
        isinstance(depth, int) and 0 < depth <= MOST_DEPTH for depth in depths
    )


def attention_calls(instruction: Instruction, graph: Graph) -> list[KernelCall] | None:
    """The kernel of an ``attention``."""
    if not has_attention(instruction):
        return None
    return [_Writer(instruction, graph).call()]


class _Writer:
    def __init__(self, instruction: Instruction, graph: Graph) -> None:
        self._instruction, self._builder = instruction, KernelBuilder()
        operands = instruction.operands
        given = [Operand.of(graph, o) if isinstance(o, Value) else None for o in operands]
        q, k, v = given[:3]
        assert q is not None
        assert k is not None
        assert v is not None
        self._q, self._k, self._v = q, k, v
        start, end = (*given[3:], None, None)[:2]
        self._start, self._end = start, end
        self._dtype: DType = q.dtype.compute
        self._kind = arithmetic(q.dtype)
        self._depth, self._width = int(q.view.shape[-1]), int(v.view.shape[-1])

    def call(self) -> KernelCall:
        builder, instruction = self._builder, self._instruction
        batch, heads, queries, _ = self._q.view.shape
        groups = self._k.view.shape[1]
        lines = [
            f"const isize i = item % {builder.dim(queries)};",
            f"const isize h = item / {builder.dim(queries)} % {builder.dim(heads)};",
            f"const isize b = item / {builder.dim(queries)} / {builder.dim(heads)};",
            f"const isize g = h / {builder.dim(heads // groups)};",
            *self._range(),
            *self._query(),
            *self._blocks(),
        ]
        out = builder.write(instruction.result)
        one = literal(self._dtype, 1)
        result = stored(self._q.dtype, "sum_of[d] / divisor")
        lines += [
            f"const {self._kind} divisor = {self._kind}_maximum(weight, {one});",
            f"for (int d = 0; d < {self._width}; d++)",
            f"  {out}[item * {self._width} + d] = {result};",
        ]
        extent = product((batch, heads, queries))
        work = self._k.view.shape[2] * (self._depth + self._width)
        return builder.call("attention", "item", extent, lines, [instruction], work=work)

    def _range(self) -> list[str]:
        """The keys that a query sees: from ``first`` to ``last``."""
        builder, attrs = self._builder, self._instruction.attrs
        queries, keys = self._q.view.shape[2], builder.dim(self._k.view.shape[2])
        end = keys if self._end is None else f"(isize){self._end.element(builder, ['b'])}"
        start = "0" if self._start is None else f"(isize){self._start.element(builder, ['b'])}"
        lines = [
            f"const isize end = {end};",
            f"const isize place = end - {builder.dim(queries)} + i;",
            f"isize first = greatest(0, {start}), last = least(end, {keys});",
        ]
        if attrs["causal"]:
            lines.append("last = least(last, place + 1);")
        if attrs["window"] is not None:
            lines.append(f"first = greatest(first, place - {attrs['window']} + 1);")
        return lines

    def _query(self) -> list[str]:
        element = loaded(self._q.dtype, self._q.element(self._builder, ["b", "h", "i", "d"]))
        kind = self._kind
        return [
            f"{kind} query[{self._depth}], sum_of[{self._width}];",
            f"for (int d = 0; d < {self._depth}; d++) query[d] = {element};",
            f"for (int d = 0; d < {self._width}; d++) sum_of[d] = 0;",
            f"{kind} top = -({kind})F32_INFINITY, weight = 0;",
        ]

    def _blocks(self) -> list[str]:
        kind = self._kind
        value = loaded(self._v.dtype, self._v.element(self._builder, ["b", "g", "t", "d"]))
        return [
            f"for (isize block = first; block < last; block += {BLOCK}) {{",
            f"  const isize count = least({BLOCK}, last - block);",
            f"  {kind} scores[{BLOCK}], highest = top;",
            "  for (isize s = 0; s < count; s++) {",
            "    const isize t = block + s;",
            *(f"    {line}" for line in self._score()),
            f"    highest = {kind}_maximum(highest, scores[s]);",
            "  }",
            f"  const {kind} shift = highest == -({kind})F32_INFINITY ? 0 : highest;",
            f"  const {kind} factor = {kind}_exp(top - shift);",
            "  weight *= factor;",
            f"  for (int d = 0; d < {self._width}; d++) sum_of[d] *= factor;",
            "  for (isize s = 0; s < count; s++) {",
            "    const isize t = block + s;",
            f"    const {kind} e = {kind}_exp(scores[s] - shift);",
            "    weight += e;",
            f"    for (int d = 0; d < {self._width}; d++) sum_of[d] += e * {value};",
            "  }",
            "  top = highest;",
            "}",
        ]

    def _score(self) -> list[str]:
        """The score of key ``t``."""
        attrs, kind, depth = self._instruction.attrs, self._kind, self._depth
        scale: float = attrs["scale"]
        if scale is None:
            scale = depth**-0.5
        at = ["b", "g", "t", "(d + lane)"]
        key = loaded(self._k.dtype, self._k.element(self._builder, at))
        rest = depth % LANES
        whole = depth - rest
        lines = [f"{kind} lanes[{LANES}] = {{0}};"]
        if whole:
            lines += [
                f"for (int d = 0; d < {whole}; d += {LANES})",
                f"  for (int lane = 0; lane < {LANES}; lane++)",
                f"    lanes[lane] += query[d + lane] * {key};",
            ]
        if rest:
            lines += [
                f"for (int lane = 0, d = {whole}; lane < {rest}; lane++)",
                f"  lanes[lane] += query[d + lane] * {key};",
            ]
        total = f"{kind}_sum8(lanes)"
        text = f"{total} * {literal(self._dtype, scale)}"
        if (cap := attrs["softcap"]) is not None:
            cap_text = literal(self._dtype, cap)
            text = f"{kind}_tanh(({text}) / {cap_text}) * {cap_text}"
        return [*lines, f"scores[s] = {text};"]
