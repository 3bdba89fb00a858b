"""Sources of fused loops: the text shown is the text compiled, and runs alone."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer.render import Rendered, render
from gptrs.backends.fusion import fuse
from gptrs.backends.regions import Region
from gptrs.ir.dims import dim, size_at
from gptrs.ir.program import Program, Value
from gptrs.ir.types import Array, Type
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.parallel_loop import LoopSource
from tests.backends.faer.test_render import SPELLED, record, run_reference, run_region

B, S = dim("B"), dim("S")
SIZES = {"B": 7, "S": 45}

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "sums of f64": (lambda x: x - x.sum(-1, keepdims=True), ("f64",)),
    "products": (lambda x: ptir.reduce_prod(x, axes=-1), ("f32",)),
    "extremes": (lambda x: x.max(0) - x.min(0), ("f32",)),
    "integers": (lambda x, y: ptir.clamp(x * 3 - y, -50, 99) // 7, ("si32", "si32")),
    "unsigned": (lambda x, y: ptir.maximum(x, y) + 3, ("ui64", "ui64")),
    "small integers": (lambda x: ptir.cast(x, dtype=ptir.si8) + 1, ("si16",)),
    "truth values": (lambda x: ptir.reduce_any(x > 1.5, axes=-1), ("f32",)),
    "choices": (lambda x, y: ptir.select(x < y, x + 1.0, y), ("f32", "f32")),
    "bf16": (lambda x: ptir.exp(x) * 0.3, ("bf16",)),
    "powers": (lambda x: ptir.pow(ptir.abs(x), 0.5) + ptir.rsqrt(x * x + 1e-3), ("f32",)),
    "transposed": (lambda x, y: x.permute(1, 0) + y.permute(1, 0) * 0.7, ("f32", "f32")),
    "indices": (lambda x: x + ptir.cast(ptir.iota(shape=(B, S), axis=1), dtype=ptir.f32), ("f32",)),
    "c library": (lambda x: ptir.sin(x) + ptir.pow(ptir.abs(x), 1.7), ("f32",)),
}
if isa.current().half:
    PROGRAMS["f16"] = (lambda x: ptir.tanh(x) * 2.0, ("f16",))


def program_of(name: str) -> Program:
    if name in SPELLED:
        fn, types, _ = SPELLED[name]
        return record(fn, *types)
    fn, dtypes = PROGRAMS[name]
    return record(fn, *(Type.parse(f"{dtype}[?B,?S]") for dtype in dtypes))


def array_of(type: Type, seed: int) -> Array:
    shape = [size_at(n, SIZES) for n in type.shape]
    x = np.random.default_rng(seed).standard_normal(shape) * 3
    return (x if type.dtype.is_float else np.abs(x) + 1).astype(type.dtype.numpy)


def run_module(made: Rendered, values: dict[Value, Array], *, parallel: bool, chunks: int) -> Array:
    """The result of the module's parallel function, called with arrays and defaults alone."""
    scope: dict[str, Any] = {}
    text = made.module(partial(size_at, sizes=SIZES), chunks)
    exec(text if parallel else text.replace("parallel=True, ", ""), scope)
    type = made.results[0].type
    out = np.zeros([size_at(n, SIZES) for n in type.shape], type.dtype.numpy)
    given = [np.ascontiguousarray(values[v]) for v in made.inputs]
    narrow = ("bfloat16", "float16")
    views = [a.view(np.uint16) if a.dtype.name in narrow else a for a in (*given, out)]
    scope[made.loop.parallel](*views)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SPELLED, *PROGRAMS])
def test_modules_give_the_bits_of_kernels(name: str) -> None:
    program = program_of(name)
    values: dict[Value, Array] = {p: array_of(p.type, i) for i, p in enumerate(program.params)}
    regions = 0
    for step in fuse(program).steps:
        if not isinstance(step, Region):
            values.update(zip(step.results, run_reference(step, values, SIZES), strict=True))
            continue
        made = render(step)
        values[step.result] = expected = run_region(made, values, SIZES)
        found = run_module(made, values, parallel=name == "layer_norm", chunks=3)
        assert found.tobytes() == expected.tobytes()
        regions += 1
    assert regions


@ptir.jit(backend="faer")
def scaled_gelu(x: Any, bias: Any) -> Any:
    y = ptir.gelu(x * 2.5 + bias)
    return y, y / y.sum(-1, keepdims=True)


X = np.random.default_rng(0).standard_normal((300, 200), np.float32)
BIAS = np.linspace(-1, 1, 200, dtype=np.float32)


def test_what_is_shown_is_what_is_compiled() -> None:
    explained = scaled_gelu.explain(X, BIAS)
    assert len(explained.sources) == 2
    for name, source in explained.sources.items():
        assert explained.kernels[name].source in source


def test_functions_that_are_shown_run_by_the_names_of_the_program() -> None:
    (first, gelu), (second, divide) = scaled_gelu.explain(X, BIAS).sources.items()
    scope: dict[str, Any] = {}
    exec(gelu.replace("parallel=True, ", "") + divide.replace("parallel=True, ", ""), scope)
    y, out = np.zeros_like(X), np.zeros_like(X)
    scope[f"{first}_parallel"](x=X, bias=BIAS, out=y)
    scope[f"{second}_parallel"](y, out)
    for found, expected in zip((y, out), scaled_gelu(X, BIAS), strict=True):
        assert np.array_equal(found, expected.numpy())


def test_arrays_that_would_be_read_wrong_are_refused() -> None:
    loop = LoopSource("copy", COPY)
    scope: dict[str, Any] = {}
    exec(loop.module({"extent": 4, "chunks": 1}).replace("parallel=True, ", ""), scope)
    x, out = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)
    scope["copy_parallel"](x, out)
    assert np.array_equal(x, out)
    for wrong in (x.astype(np.float64), np.ones((4, 4), np.float32)[::2, ::2]):
        with pytest.raises(Exception, match="expected an array in C order whose elements are as"):
            scope["copy_parallel"](wrong, out)


COPY = """@njit(error_model='numpy')
def copy(x: floats, out: floats, first, last):
    for i in range(first, last):
        out[i] = x[i]
"""


def test_names_of_the_program_are_in_llvm() -> None:
    explained = scaled_gelu.explain(X, BIAS)
    name = next(iter(explained.sources))
    text = explained.kernels[name].llvm()
    for value in ("x", "bias", "out", "n0", "number0", "arguments", "first", "last"):
        assert re.search(rf"%\.?{value}\b", text), value
    assert re.search(r"%(mul|add|erf)\d+\b", text), "and those of the values of the loop"
    builders = [k for n, k in softmax.explain(X).kernels.items() if n not in explained.sources]
    assert builders
    assert all(re.search(r"%arguments\b", kernel.llvm()) for kernel in builders)


@ptir.jit(backend="faer")
def softmax(x: Any) -> Any:
    return ptir.softmax(x)


@pytest.mark.slow
def test_names_do_not_make_another_kernel() -> None:
    def twice(name: str) -> Any:
        return ptir.jit(backend="faer", name="f")(eval(f"lambda {name}: {name} * 2.0 + {name}", {}))

    ours: dict[str, str] = {}
    for name in ("x", "weights", "x1", "out", "row", "j", "math", "float32", "été", "x0_at_0"):
        sources = twice(name).explain(BIAS).sources
        scope: dict[str, Any] = {}
        ((kernel, source),) = sources.items()
        exec(source.replace("parallel=True, ", ""), scope)
        out = np.zeros_like(BIAS)
        scope[f"{kernel}_parallel"](BIAS, out)
        assert np.array_equal(out, BIAS * 2 + BIAS), name
        ours[name] = kernel
        assert name in ("out", "row", "j", "math", "float32", "été", "x0_at_0") or (
            f"({name}: floats, out: floats" in source
        )
    assert len(set(ours.values())) == 1


LARGE: dict[str, Callable[..., Any]] = {
    "rows": lambda x, y: ptir.gelu(x * 2.5 + y) / ptir.exp(x).sum(-1, keepdims=True),
    "elements": lambda x, y: ptir.clamp(ptir.cast(x * y, dtype=ptir.si32) * 3, -50, 99),
    "a kernel between": lambda x, y: ptir.softmax(x * 0.3 + y.T.T) * 2.0 + ptir.tanh(y),
}


@pytest.mark.parametrize("name", LARGE)
def test_loops_are_numba_functions_with_its_driver(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each runs as the parallel function that is shown, and gives the bits of the pool's chunks."""
    from gptrs.kernels.driver import prange

    compiled: list[LoopSource] = []
    compile_loop = prange.compile_loop

    def noting(loop: LoopSource) -> int:
        compiled.append(loop)
        return compile_loop(loop)

    monkeypatch.setattr(prange, "compile_loop", noting)
    monkeypatch.setattr(prange, "_compiled", dict[str, Any]())
    monkeypatch.setenv("GPTRS_NUM_THREADS", "2")
    function = ptir.jit(backend="faer")(LARGE[name])
    x, y = X, X[::-1].copy()
    found: dict[str, bytes] = {}
    for driver in ("", "numba"):
        monkeypatch.setenv("GPTRS_DRIVER", driver)
        for threads in ("2", "1"):
            monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
            found[driver + threads] = function(x, y).numpy().tobytes()
    assert len(set(found.values())) == 1
    numba: Any = prange.numba
    if numba.config.NUMBA_NUM_THREADS > 1:
        monkeypatch.setenv("GPTRS_NUM_THREADS", "2")
        explained = function.explain(x, y)
        assert {loop.name for loop in compiled} == explained.sources.keys()
        for loop in compiled:
            assert loop.source in explained.sources[loop.name]


def test_a_driver_that_nobody_asked_for_compiles_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no pool, first calls take no longer for it."""
    from gptrs.kernels.driver import current, prange

    monkeypatch.delenv("GPTRS_DRIVER", raising=False)
    monkeypatch.setattr(current, "supported", lambda: False)
    monkeypatch.setattr(current, "_made", dict[str, Any]())
    monkeypatch.setattr(prange, "compile_loop", None)
    monkeypatch.setenv("GPTRS_NUM_THREADS", "2")
    assert current.current_driver().name == "numba"
    found = ptir.jit(backend="faer")(LARGE["rows"])(X, X).numpy()
    monkeypatch.undo()
    assert np.array_equal(found, ptir.jit(backend="faer")(LARGE["rows"])(X, X).numpy())
