"""Random numbers: Philox4x32-10, a work item for each block of four words.

    for each block of each seed:
        the words of the block
        for each element that they make: store it

The words, and the numbers made of them, are those of `gptrs.ir.ops.random`, to the bit; normal
numbers are computed in f64, so that a device needs it for those.
"""

from __future__ import annotations

from collections.abc import Iterable

from gptrs.backends.c_family.element_types import literal, loaded, stored
from gptrs.backends.c_family.index_text import position
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.operands import Operand, flat
from gptrs.backends.memory_operands import Graph
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, Shape, product
from gptrs.ir.ops.random import NORMAL, UNIFORM, ends
from gptrs.ir.program import Instruction
from gptrs.ir.types import DType, f64, ui64

_WORDS = 4  # of a block
_ROUNDS = [
    "for (int round = 0; round < 10; round++) {",
    "  const u32 low0 = w0 * 0xd2511f53u;",
    "  const u32 low2 = w2 * 0xcd9e8d57u;",
    "  const u32 high0 = u32_high_product(w0, 0xd2511f53u);",
    "  const u32 high2 = u32_high_product(w2, 0xcd9e8d57u);",
    "  w0 = high2 ^ w1 ^ key0;",
    "  w1 = low2;",
    "  w2 = high0 ^ w3 ^ key1;",
    "  w3 = low0;",
    "  key0 = key0 + 0x9e3779b9u;",
    "  key1 = key1 + 0xbb67ae85u;",
    "}",
]


def random_bits_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """Unsigned integers: the upper bits of a word, or two words."""
    dtype: DType = instruction.attrs["dtype"]
    if dtype is ui64:
        elements = [_wide(*pair) for pair in _pairs()]
    else:
        kind = "i8" if dtype.bits == 4 else f"u{dtype.bits}"
        elements = [f"({kind})(w{n} >> {32 - dtype.bits}u)" for n in range(_WORDS)]
    return [_call(instruction, graph, instruction.attrs["stream"], elements)]


def rng_uniform_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """low + u · (high − low), of the upper bits of a word, or of two."""
    attrs, dtype = instruction.attrs, instruction.result.type.dtype
    compute, kind = dtype.compute, dtype.compute.name
    if dtype is f64:
        parts = [f"(f64)({_wide(*pair)} >> 11) * 0x1p-53" for pair in _pairs()]
    else:
        parts = [f"(f32)(w{n} >> 8u) * 5.9604644775390625e-08f" for n in range(_WORDS)]
    low, high = attrs["low"], attrs["high"]
    least, greatest = (literal(compute, end) for end in ends(low, high, dtype))
    start, span = literal(compute, low), literal(compute, high - low)
    elements = [
        f"{kind}_minimum({kind}_maximum({start} + {part} * {span}, {least}), {greatest})"
        for part in parts
    ]
    return [_call(instruction, graph, UNIFORM, elements)]


def rng_normal_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """A pair of two fractions (Box and Muller); computed in f64."""
    attrs, dtype = instruction.attrs, instruction.result.type.dtype
    if dtype is f64:
        fractions = [f"(f64)({_wide(*pair)} >> 11)" for pair in _pairs()]
        scale = "0x1p-53"
    else:
        fractions = [f"(f64)w{n}" for n in range(_WORDS)]
        scale = "0x1p-32"
    mean, std = literal(f64, attrs["mean"]), literal(f64, attrs["std"])
    head: list[str] = []
    elements: list[str] = []
    for n in range(0, len(fractions), 2):
        first, second = fractions[n : n + 2]
        head += [
            f"const f64 radius{n} = f64_sqrt(-2.0 * f64_log(({first} + 1.0) * {scale}));",
            f"const f64 angle{n} = 6.283185307179586 * ({second} * {scale});",
        ]
        for function in ("cos", "sin"):
            element = f"{mean} + {std} * (radius{n} * f64_{function}(angle{n}))"
            elements.append(element if dtype is f64 else f"(f32)({element})")
    return [_call(instruction, graph, NORMAL, elements, head)]


def _pairs() -> list[tuple[str, str]]:
    return [("w0", "w1"), ("w2", "w3")]


def _wide(upper: str, lower: str) -> str:
    """64 bits of two words."""
    return f"(u64_shift_left((u64){upper}, (u64)32) | (u64){lower})"


def _call(
    instruction: Instruction,
    graph: Graph,
    stream: int,
    elements: list[str],
    before: Iterable[str] = (),
) -> KernelCall:
    """The kernel whose blocks make ``elements``, numbers in arithmetic on the result's dtype."""
    seed, *start = instruction.values()
    result, builder = instruction.result, KernelBuilder()
    shape, count = seed.type.shape, product(instruction.attrs["shape"])
    blocks = -(-count // len(elements))
    lines, names = flat((*shape, blocks), "item", builder)
    seeds, block = names[:-1], names[-1]
    key = loaded(seed.type.dtype, Operand.of(graph, seed).element(builder, seeds))
    lines += [
        f"const u64 key = (u64){key};" if seed.type.dtype is ui64 else f"const i64 key = {key};",
        f"u64 counter = (u64){block};",
    ]
    for value in start:
        lines.append(f"counter = counter + {Operand.of(graph, value).element(builder, seeds)};")
    kind = "u" if seed.type.dtype is ui64 else "i"
    lines += [
        "u32 key0 = (u32)key;",
        f"u32 key1 = (u32){kind}64_shift_right(key, ({kind}64)32);",
        "u32 w0 = (u32)counter;",
        "u32 w1 = (u32)u64_shift_right(counter, (u64)32);",
        f"u32 w2 = {stream}u;",
        "u32 w3 = 0u;",
        *_ROUNDS,
        *before,
    ]
    strides = _strides(shape, count)
    builder.uses(strides)
    of = position(seeds, strides)
    lines.append(f"const isize first = {block} * {len(elements)};")
    out, dtype = builder.write(result), result.type.dtype
    for n, element in enumerate(elements):
        at = f"{of} + first + {n}"
        lines.append(
            f"if (first + {n} < {builder.dim(count)}) {out}[{at}] = {stored(dtype, element)};"
        )
    size = product((*shape, blocks))
    return builder.call(instruction.op.name, "item", size, lines, [instruction], work=40)


def _strides(shape: Shape, count: DimLike) -> tuple[DimLike, ...]:
    """Where the numbers of each seed begin: strides along the axes of the seeds."""
    return tuple(count * stride for stride in View.contiguous(shape).strides)
