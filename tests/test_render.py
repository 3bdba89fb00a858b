"""Kernels rendered from regions: compiled, run in pieces, and compared with the reference."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptrs import ptir
from gptrs.backends.faer.render import Rendered, render
from gptrs.backends.grouping import DTYPES, group
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.backends.regions import Region
from gptrs.ir.dims import dim, size_at
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Instruction, Param, Program, Value
from gptrs.ir.tensor import Parameter, Tensor
from gptrs.ir.types import Array, Type
from gptrs.kernels.compile import compile_source
from gptrs.models.gpt2 import GPT2, GPT2Config
from gptrs.passes.base import run_passes
from gptrs.passes.pipeline import PIPELINE
from tests.cases import CASES
from tests.cases.sample import Case, Sample, differences, inputs, is_symbolic

Sizes = Mapping[str, int]


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One folder for all: equal kernels are compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPTRS_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


def lower(program: Program) -> Program:
    return run_passes(program, PIPELINE, ReferenceBackend())


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
    return lower(recorder.finish(results))


def run_regions(program: Program, arguments: Sequence[Array], sizes: Sizes) -> tuple[Array, ...]:
    """``program`` with its regions as kernels, and the reference for what is outside."""
    values: dict[Value, Array] = dict(zip(program.params, arguments, strict=True))
    for step in group(program).steps:
        if isinstance(step, Region):
            values[step.result] = run_region(render(step), values, sizes)
        else:
            values.update(zip(step.results, run_reference(step, values, sizes), strict=True))
    return tuple(values[result] for result in program.results)


def run_region(rendered: Rendered, values: Mapping[Value, Array], sizes: Sizes) -> Array:
    kernel = compile_source(rendered.source, rendered.name)
    type = rendered.result.type
    out = np.zeros([size_at(n, sizes) for n in type.shape], type.dtype.numpy)
    arrays = [np.ascontiguousarray(values[v]).reshape(values[v].shape) for v in rendered.inputs]
    words = [a.ctypes.data for a in (*arrays, out)]
    block = np.array(words + [size_at(n, sizes) for n in rendered.words], np.int64)
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


# Compiled with `arcp`, a division may be a product with the reciprocal.
DIVIDING = frozenset(["div", "reciprocal"])


def rows() -> Iterator[Any]:
    """Samples of every row: all dtypes would be minutes of compiling, so some are drawn."""
    for number, case in enumerate(CASES):
        for dtype in case.dtypes:
            seed = zlib.crc32(f"{number} {dtype}".encode())
            if dtype not in DTYPES or (dtype not in ("f32", "si32", "i1") and seed % 5 > 1):
                continue
            chosen = {seed // 7 % len(case.samples)}
            if dtype == "f32":
                chosen.add(0)
            for index in sorted(chosen):
                name = f"{case.op}-{dtype}-{number}-{index}"
                yield pytest.param(case, case.samples[index], dtype, id=name)


@pytest.mark.parametrize(("case", "chosen", "dtype"), list(rows()))
def test_row(case: Case, chosen: Sample, dtype: str) -> None:
    made = inputs(chosen, dtype, {"S": 3}, symbolic=is_symbolic(chosen))
    program = record(OPS[case.op], *made.operands(made.types), **made.sample.attrs)
    ulps = max(2 * case.ulps, 2 * (case.op in DIVIDING))
    check(program, made.arrays, {"S": 3}, ulps, case.magnitude)


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


B, S = dim("B"), dim("S")
ROWS = Type((B, S, 40), ptir.f32)
VECTOR = Type((40,), ptir.f32)
SPELLED: dict[str, tuple[Any, tuple[Type, ...]]] = {
    "softmax": (softmax, (ROWS,)),
    "softmax over a symbolic axis": (softmax, (Type((3, B, S), ptir.f32),)),
    "softmax along axis 0": (softmax_first, (ROWS,)),
    "layer_norm": (layer_norm, (ROWS, VECTOR, VECTOR)),
    "gelu": (gelu, (ROWS,)),
}


@pytest.mark.parametrize("name", SPELLED)
def test_spelled_out_is_one_region(name: str) -> None:
    fn, types = SPELLED[name]
    program = record(fn, *types)
    assert len(group(program).regions) == 1
    for sizes in ({"B": 2, "S": 3}, {"B": 1, "S": 1}, {"B": 5, "S": 64}):
        shapes = [tuple(size_at(n, sizes) for n in t.shape) for t in types]
        arrays = [random(*shape, seed=i) for i, shape in enumerate(shapes)]
        check(program, arrays, sizes, ulps=32, magnitude=1)


def model(layers: int, width: int = 8) -> GPT2:
    config = GPT2Config(vocab_size=11, n_positions=32, n_embd=width, n_layer=layers, n_head=2)
    seeds = count()
    return GPT2.build(config, lambda n, s: Parameter(random(*s, seed=next(seeds)) * 0.3, n))


def lowered(layers: int, logits: str = "last", width: int = 8) -> tuple[GPT2, Program]:
    made = model(layers, width)
    tokens, cache = np.zeros((2, 3), np.int64), made.init_cache(np.zeros(2, np.int32), 8)
    return made, type(made).__call__.lowered(made, tokens, cache, logits=logits)


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


def test_layers_share_kernels() -> None:
    def names(layers: int, width: int = 8) -> set[str]:
        grouping = group(lowered(layers, width=width)[1])
        assert {i.op.name for i in grouping.outside} == {
            *("take", "dot_general", "dynamic_update_slice")
        }
        return {render(region).name.rpartition("_")[2] for region in grouping.regions}

    assert len(names(2)) == len(names(4)) <= 15
    assert names(2) == names(4) == names(12)
    assert len(names(2)) <= 15


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


def test_standalone_form_runs() -> None:
    program = record(layer_norm, Type((B, 40), ptir.f32), VECTOR, VECTOR)
    (region,) = group(program).regions
    made = render(region)
    namespace: dict[str, Any] = {}
    exec(made.standalone.replace("parallel=True, ", ""), namespace)
    arrays = [random(3, 40), random(40, seed=1), random(40, seed=2)]
    (expected,) = ReferencePlan(program).run(arrays, {"B": 3})
    values: dict[Value, Array] = dict(zip(program.params, arrays, strict=True))
    out = np.zeros(120, np.float32)
    words = [size_at(n, {"B": 3}) for n in made.words]
    namespace[made.name](*(values[v].reshape(-1) for v in made.inputs), out, *words, 3)
    assert not differences(out.reshape(3, 40), expected, 32, 1)
