"""Code generation of fused regions: compiled, run in chunks, compared with the reference."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptrs import ptir
from gptrs.backends.faer.render import Rendered, as_word, render
from gptrs.backends.fusion import fuse
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.backends.regions import Region
from gptrs.ir.dims import dim, size_at
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Instruction, Param, Program, Value
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, as_dtype
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_loop
from gptrs.kernels.rowwise.reduce import LANES, PART
from gptrs.models.gpt2 import GPT2, GPT2Config
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.cases.sample import differences

Sizes = Mapping[str, int]


def record(fn: Any, *types: Any, **attrs: Any) -> Program:
    """The lowered program of ``fn`` for operands: types become parameters."""
    recorder = Recorder("test")
    numbers = count()

    def enter(operand: Any) -> Any:
        if isinstance(operand, tuple):
            return tuple(map(enter, cast("tuple[Any, ...]", operand)))
        if isinstance(operand, Type):
            return recorder.input(operand, f"x{next(numbers)}")
        return operand

    operands = [enter(t) for t in types]
    with interpreter(recorder):
        result: Any = fn(*operands, **attrs)
        results = cast("tuple[Tensor, ...]", result if isinstance(result, tuple) else (result,))
    return lower(recorder.finish(results), Context(ReferenceBackend()))


def run_regions(program: Program, arguments: Sequence[Array], sizes: Sizes) -> tuple[Array, ...]:
    """``program`` with its regions as kernels, and the reference for what is outside."""
    values: dict[Value, Array] = dict(zip(program.params, arguments, strict=True))
    for step in fuse(program).steps:
        if isinstance(step, Region):
            values[step.result] = run_region(render(step), values, sizes)
        else:
            values.update(zip(step.results, run_reference(step, values, sizes), strict=True))
    return tuple(values[result] for result in program.results)


def run_region(rendered: Rendered, values: Mapping[Value, Array], sizes: Sizes) -> Array:
    kernel = compile_loop(lambda: rendered.source, rendered.name, rendered.canonical)
    type = rendered.results[0].type
    out = np.zeros([size_at(n, sizes) for n in type.shape], type.dtype.numpy)
    arrays = [np.ascontiguousarray(values[v]).reshape(values[v].shape) for v in rendered.inputs]
    words = [a.ctypes.data for a in (*arrays, out)]
    block = np.array(words + [size_at(as_word(n), sizes) for n in rendered.words], np.int64)
    extent = size_at(rendered.extent, sizes)
    middle = extent // 2
    kernel(block.ctypes.data, middle, extent)
    kernel(block.ctypes.data, 0, middle)
    return out


def run_reference(
    instruction: Instruction, values: Mapping[Value, Array], sizes: Sizes
) -> tuple[Array, ...]:
    operands = tuple(dict.fromkeys(instruction.values()))
    program = Program(
        "one", cast("tuple[Param, ...]", operands), (instruction,), instruction.results
    )
    return ReferencePlan(program).run([values[v] for v in operands], sizes)


def check(
    program: Program,
    arguments: Sequence[Array],
    sizes: Sizes,
    ulps: int = 0,
    magnitude: float = 0.0,
) -> None:
    found = run_regions(program, arguments, sizes)
    expected = ReferencePlan(program).run(arguments, sizes)
    for a, b in zip(found, expected, strict=True):
        assert not (wrong := differences(a, b, ulps, magnitude)), wrong


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(x: Tensor) -> Tensor:
    e = ptir.exp(x - ptir.reduce_max(x, axes=-1, keepdims=True))
    return e / ptir.reduce_sum(e, axes=-1, keepdims=True)


def softmax_first(x: Tensor) -> Tensor:
    return softmax(x.permute(2, 1, 0)).permute(2, 1, 0)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred * ptir.rsqrt(variance + 1e-5) * weight + bias


def gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (ptir.tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0)


# By op, how many operands it has.
EXACT = {
    **dict.fromkeys(["sqrt", "rsqrt", "reciprocal", "neg", "abs", "floor", "ceil", "round"], 1),
    **dict.fromkeys(["add", "sub", "mul", "div", "floor_divide", "maximum", "minimum"], 2),
    "clamp": 3,
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", EXACT)
def test_one_op_is_exact(name: str, dtype: str) -> None:
    """On any bits, and on special values with each other; the signs of zeros too."""
    kind = as_dtype(dtype)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e-45, -1e-310, np.inf, -np.inf, np.nan]
    values: Array = np.array(special, kind.numpy)
    rng = np.random.default_rng(0)
    grid: Array = np.stack(np.meshgrid(*[values] * EXACT[name])).reshape(EXACT[name], -1)
    drawn: Array = rng.integers(0, 256, (EXACT[name], 24_000), np.uint8).view(kind.numpy)
    arrays = [np.concatenate(pair) for pair in zip(grid, drawn, strict=True)]
    types = [Type(a.shape, kind) for a in arrays]
    program = record(OPS[name], *types)
    (found,) = run_regions(program, arrays, {})
    with np.errstate(all="ignore"):
        (expected,) = ReferencePlan(program).run(arrays, {})
    assert not (wrong := differences(found, expected)), wrong
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[number], np.signbit(expected)[number])


B, S = dim("B"), dim("S")
ROWS = Type((B, S, 40), ptir.f32)
VECTOR = Type((40,), ptir.f32)
# With the number of regions: the exponentials that softmax sums and divides are kept in a row.
SPELLED: dict[str, tuple[Any, tuple[Type, ...], int]] = {
    "softmax": (softmax, (ROWS,), 1),
    "softmax over a symbolic axis": (softmax, (Type((3, B, S), ptir.f32),), 1),
    "softmax along axis 0": (softmax_first, (ROWS,), 1),
    "layer_norm": (layer_norm, (ROWS, VECTOR, VECTOR), 1),
    "gelu": (gelu, (ROWS,), 1),
}


@pytest.mark.parametrize("name", SPELLED)
def test_spelled_out_is_fused(name: str) -> None:
    fn, types, count = SPELLED[name]
    program = record(fn, *types)
    assert len(fuse(program).regions) == count
    for sizes in ({"B": 2, "S": 3}, {"B": 1, "S": 1}, {"B": 5, "S": 64}):
        shapes = [tuple(size_at(n, sizes) for n in t.shape) for t in types]
        arrays = [random(*shape, seed=i) for i, shape in enumerate(shapes)]
        check(program, arrays, sizes, ulps=32, magnitude=1)


@pytest.mark.slow
@pytest.mark.skipif(not isa.host()[0].startswith("x86_64"), reason="reads x86 assembly")
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "gelu"])
def test_spelled_out_is_vectorised(name: str) -> None:
    fn, types, _ = SPELLED[name]
    packed: set[str] = set()
    for made in map(render, fuse(record(fn, *types)).regions):
        kernel = compile_loop(partial(getattr, made, "source"), made.name, made.canonical)
        text, level = kernel.assembly(), kernel.library.target.isa.name
        vector = {"avx512": "%zmm", "avx2": "%ymm", "generic": "%xmm"}[level]
        lines = [line for line in text.split("\n") if vector in line]
        packed |= {line.split()[0] for line in lines if "ps" in line.split()[0]}
        assert not {"expf", "tanhf", "exp", "tanh"} & set(re.findall(r"\w+", text))
    assert any("mul" in word or "fma" in word for word in packed)
    assert any("add" in word for word in packed)


LENGTHS = (1, 2, 31, 32, 33, 64, 500, 511, 512, 513, 1024, 1100)


@pytest.mark.parametrize("level", [level.name for level in isa.host_levels()])
@pytest.mark.parametrize("size", LENGTHS)
def test_a_row_is_summed_in_one_order(
    size: int, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bits alone, among others and at every vector level: those of a sum over lanes."""
    monkeypatch.setenv("GPTRS_ISA", level)
    program = record(ptir.reduce_sum, Type((B, S), ptir.f32), axes=-1)
    x = random(3, size)
    (found,) = run_regions(program, [x], {"B": 3, "S": size})
    for i in range(3):
        (alone,) = run_regions(program, [x[i : i + 1]], {"B": 1, "S": size})
        assert alone[0] == found[i] == lanes_sum(x[i])


def lanes_sum(x: Array) -> np.float32:
    total = 0.0
    for begin in range(0, x.size, PART):
        part = x[begin : begin + PART]
        padded = np.append(part, np.zeros(-part.size % LANES, np.float32)).reshape(-1, LANES)
        lanes = np.zeros(LANES, np.float32)
        for row in padded:
            lanes = lanes + row
        while lanes.size > 1:
            lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
        total += float(lanes[0])
    return np.float32(total)


@pytest.mark.parametrize("op", ["reduce_max", "reduce_min", "reduce_prod"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_reductions_of_floats(op: str, dtype: str) -> None:
    kind = as_dtype(dtype)
    program = record(OPS[op], Type((B, S), kind), axes=-1)
    for size in LENGTHS:
        x = np.exp2(np.random.default_rng(size).integers(-1, 2, (8, size))).astype(kind.numpy)
        x[1, size // 2], x[2, -1], x[3, 0] = np.nan, np.nan, np.nan
        x[4, -1], x[5, 0], x[6, size // 2], x[7] = -np.inf, np.inf, -3, -np.inf
        check(program, [x], {"B": 8, "S": size})


def model(layers: int, width: int = 8) -> GPT2:
    config = GPT2Config(vocab_size=11, n_positions=32, n_embd=width, n_layer=layers, n_head=2)
    seeds = count()
    return GPT2.build(config, lambda n, s: Parameter(random(*s, seed=next(seeds)) * 0.3, n))


def lowered(layers: int, logits: str = "last", width: int = 8) -> tuple[GPT2, Program]:
    made = model(layers, width)
    tokens, cache = np.zeros((2, 3), np.int64), made.init_cache(np.zeros(2, np.int32), 8)
    with ptir.backend("reference"):
        return made, type(made).__call__.lowered(made, tokens, cache, logits=logits)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 8), (3, 7, 20)])
def test_gpt2_at_several_sizes(sizes: tuple[int, int, int]) -> None:
    batch, new, capacity = sizes
    made, program = lowered(2)
    parameters = {n.replace(".", "_"): p.numpy() for n, p in made.parameters().items()}
    rng = np.random.default_rng(0)
    named: dict[str, Array] = {
        "tokens": rng.integers(0, 11, (batch, new)),
        "cache_length": np.array(capacity - new, np.int32),
        "cache_start": np.minimum(np.arange(batch), capacity - new).astype(np.int32),
    }
    symbols = {"B": batch, "S": new, "C": capacity}
    arguments = [
        parameters[p.name]
        if p.role == "parameter"
        else named.get(p.name, random(*(size_at(n, symbols) for n in p.type.shape)))
        for p in program.params
    ]
    check(program, arguments, symbols, ulps=256, magnitude=2)


@pytest.mark.slow
def test_layers_share_kernels() -> None:
    def names(layers: int, logits: str = "all") -> set[str]:
        grouping = fuse(lowered(layers, logits)[1])
        assert {i.op.name for i in grouping.outside} == {
            *("take", "dot_general", "dynamic_update_slice")
        }
        return {render(region).name.rpartition("_")[2] for region in grouping.regions}

    assert names(2) == names(4) == names(12)
    assert len(names(2)) <= 15
    # Of the last layer fewer rows are read.
    assert names(3, "last") == names(4, "last") == names(12, "last")
    assert len(names(3, "last")) <= 18


FLAT_STEPS = ("add", "sub", "maximum", "minimum", "neg", "abs", "less", "mul", "rows", "shift")
MOVING_STEPS = ("transpose", "reshape", "slice", "spread", "total", "most", "convert")


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    steps = st.tuples(
        st.sampled_from(FLAT_STEPS + MOVING_STEPS), st.integers(0, 99), st.integers(0, 99)
    )
    return draw(st.lists(steps, min_size=3, max_size=14))


def interpret(steps: list[tuple[str, int, int]], *operands: Tensor) -> tuple[Tensor, ...]:
    """Values of shape [4, S, 6], each step from one or two earlier ones."""
    shape = operands[0].shape
    values = list(operands)
    for name, i, j in steps:
        x = values[i % len(values)]
        others = [v for v in values if v.dtype is x.dtype]
        values.append(step(name, x, others[j % len(others)], shape))
    return tuple(values[-2:])


def step(name: str, x: Tensor, y: Tensor, shape: Any) -> Tensor:
    match name:
        case "mul" | "total" if x.dtype.is_float:  # rounded in another order
            return ptir.maximum(x, y) - 1
        case "total":
            return ptir.broadcast_to(ptir.reduce_sum(x, axes=1, keepdims=True), shape=shape)
        case "most":
            return x - ptir.reduce_max(x, axes=(0, 2), keepdims=True)
        case "less":
            return ptir.select(ptir.less(x, y), x + 1, y)
        case "rows":
            return x + ptir.cast(ptir.iota(shape=shape, axis=1), dtype=x.dtype)
        case "shift":
            return ptir.clamp(x, -50, 99)
        case "transpose":
            return x.permute(2, 1, 0).reshape(4, shape[1], 6)
        case "reshape":
            return (x.reshape(2, 2, shape[1] * 6) + 1).reshape(shape)
        case "slice":
            return x + y[1:2]
        case "spread":
            return ptir.broadcast_to(x[:, :1, 2:3], shape=shape)
        case "convert":
            return ptir.cast(x, dtype=ptir.si32 if x.dtype.is_float else ptir.f32)
        case "neg" | "abs":
            return OPS[name](x)
        case _:
            return OPS[name](x, y)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(programs())
def test_random_programs(steps: list[tuple[str, int, int]]) -> None:
    shape = (4, S, 6)
    types = [Type(shape, ptir.si32), Type(shape, ptir.f32)]
    program = record(partial(interpret, steps), *types)
    for size in (1, 5):
        rng = np.random.default_rng(size)
        whole = rng.integers(-9, 9, (4, size, 6), np.int32)
        check(program, [whole, random(4, size, 6)], {"S": size})
