"""Kernels from Numba source: results at every vector level, and refused sources."""

# Numba and llvmlite have no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs.kernels.compiler import isa, loaded_object
from gptrs.kernels.compiler.codegen import KernelError
from gptrs.kernels.compiler.compile import compile_source
from gptrs.kernels.compiler.compile_job import CompileJob
from tests.support.kernels import SCALE, check_scale, run

pytestmark = pytest.mark.usefixtures("fresh_kernels")

LEVELS = [level.name for level in isa.host_levels()]
X86 = isa.host()[0].startswith("x86_64")


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_source_runs_at_every_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_ISA", level)
    kernel = compile_source(SCALE, "scale")
    check_scale(kernel)
    assert (kernel.name, kernel.source) == ("scale", SCALE)
    assert kernel.library.target.isa.name == level
    if X86:
        registers = {"avx512": "zmm", "avx2": "ymm", "generic": "xmm"}
        assembly = kernel.assembly()
        used = {name for name in registers.values() if f"%{name}" in assembly}
        assert max(used) == registers[level], "vectors of the whole width"
        assert "vfmadd" not in assembly, "a product and a sum round once each"


NAMES = """
def names(arguments, first, last):
    block = words(arguments)
    doubles(block[0])[0] = float64(float32(0.1))
    int8s(block[0])[8] = int8(-1)
    int16s(block[0])[5] = int16(-2)
    int32s(block[0])[3] = float_bits(float32(1.5))
    floats(block[0])[4] = bits_float(int32s(block[0])[3]) + float32(uint8s(block[0])[8])
    uint16s(block[0])[10] = uint16(65535)
    uint32s(block[0])[6] = uint32(uint16s(block[0])[10]) + uint32(1)
    uint64s(block[0])[4] = uint64(7)
    words(block[0])[5] = compare_exchange(block[0] + 32, 7, 8)
    words(block[0])[6] = compare_exchange(block[0] + 32, 7, 9)
    words(block[0])[7] = max(first, last) // (first - 2) + min(first, abs(-5))
    doubles(block[0])[9] = -1.0 / float64(first - 2)
    doubles(block[0])[8] = math.hypot(3.0, 4.0) + round(math.pow(2.0, float64(last)))
    floats(block[0])[20] = log32(exp32(float32(2))) + tanh32(float32(0)) + erf32(float32(9))
    scratch = local_doubles(544)
    scratch[0], scratch[1] = 5.0, 8.0
    floats(block[0])[21] = float32(sum_of(scratch, 2) + product_of(scratch, 2))
    scratch32 = local_floats(544)
    scratch32[0], scratch32[1] = float32(5), float32(8)
    floats(block[0])[22] = maximum_of(scratch32, 2) - minimum_of(scratch32, 2)
"""


@pytest.mark.slow
def test_all_names_that_source_may_use() -> None:
    out = np.zeros(12, np.int64)
    run(compile_source(NAMES, "names"), out, extent=(2, 4))
    assert out.view(np.float64)[0] == np.float32(0.1)
    assert (out.view(np.int8)[8], out.view(np.int16)[5]) == (-1, -2)
    assert out.view(np.int32)[3] == np.float32(1.5).view(np.int32)
    assert out.view(np.float32)[4] == 256.5
    assert (out.view(np.uint16)[10], out.view(np.uint32)[6]) == (65535, 65536)
    assert out[4:8].tolist() == [8, 7, 8, 2]
    assert out.view(np.float64)[8:10].tolist() == [21.0, -np.inf]
    assert out.view(np.float32)[20:23].tolist() == [3.0, 53.0, 3.0]


@pytest.mark.skipif(LEVELS == ["generic"], reason="half precision needs instructions of its own")
def test_half_precision() -> None:
    source = """
def halves(arguments, first, last):
    block = words(arguments)
    for i in range(first, last):
        uint16s(block[1])[i] = float_half(half_float(uint16s(block[0])[i]) + float32(1))
"""
    x = np.array([0.0, 1.5, -2.0, 65504.0, np.inf, np.nan, 6e-8], np.float16)
    out = np.zeros_like(x)
    run(compile_source(source, "halves"), x, out, extent=(0, x.size))
    np.testing.assert_array_equal(out, (x.astype(np.float32) + 1).astype(np.float16))


@pytest.mark.slow
def test_no_fast_math() -> None:
    source = """
def special(arguments, first, last):
    x = floats(words(arguments)[0])
    for i in range(first, last):
        value = x[i]
        if value != value:
            x[i] = float32(7)
        elif value == -math.inf:
            x[i] = float32(8)
        else:
            x[i] = (value + float32(1e8)) - float32(1e8)
"""
    x = np.array([np.nan, -np.inf, np.inf, 1.0] * 9, np.float32)
    run(compile_source(source, "special"), x, extent=(0, x.size))
    assert (x.reshape(9, 4) == [7, 8, np.inf, 0]).all(), "the order of a sum is kept too"
    from gptrs.kernels.compiler import numba_lowering as lowering

    text = str(lowering.lower(source, "special")[0])
    assert not {"contract", "fast", "reassoc", "nnan", "ninf", "nsz", "arcp", "afn"} & set(
        text.split()
    )


REFUSED = {
    "raise": ("raise ValueError", "Unsupported constraint encountered: raise"),
    "step": ("for i in range(first, last, arguments):\n        words(last)[i] = 1", "NRT_Free"),
    "allocation": ("words(arguments)[0] = len([i for i in range(last)])", "listcomp|NRT_"),
    "unknown name": ("nothing(arguments)", "nothing"),
    "Python object": ("words(arguments)[0] = str(first)", "Numba cannot compile"),
    "syntax": ("for", "cannot be read"),
}


@pytest.mark.slow
@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_source_that_no_kernel_may_be(row: str) -> None:
    body, message = REFUSED[row]
    with pytest.raises(KernelError, match=message) as caught:
        compile_source(f"def bad(arguments, first, last):\n    {body}\n", "bad")
    assert "kernel bad for " in str(caught.value)


def test_a_kernel_may_be_called_like_a_function_that_it_calls() -> None:
    source = """
def cosf(arguments, first, last):
    x = floats(words(arguments)[0])
    x[0] = math.cos(x[0])
"""
    x = np.zeros(1, np.float32)
    run(compile_source(source, "cosf"), x)
    assert x[0] == 1


@pytest.mark.slow
def test_numba_without_its_inner_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    from gptrs.kernels.compiler import numba_lowering as lowering

    monkeypatch.delattr(lowering.CFunc, "_compile_uncached")
    lowered: list[str] = []
    final: Callable[..., Any] = lowering._final_module  # pyright: ignore[reportPrivateUsage]

    def noting(function: Any, signature: Any) -> Any:
        lowered.append(function.__name__)
        monkeypatch.undo()  # the public interface is built on the inner one
        monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
        return final(function, signature)

    monkeypatch.setattr(lowering, "_final_module", noting)
    check_scale(compile_source(SCALE + "\n", "scale"))
    assert lowered == ["scale"]


@pytest.mark.parametrize(("result", "checks"), [("out", 0), ("y", 1)])
def test_a_result_is_apart_from_what_is_read(result: str, checks: int) -> None:
    """A loop over it is vectorised without a check for overlap."""
    kernel = compile_source(
        f"def doubled(x: floats, {result}: floats, first, last):\n"
        "    for j in range(first, last):\n"
        f"        {result}[j] = x[j] + x[j]\n",
        "doubled",
    )
    assert kernel.llvm().count("%diff.check =") == checks


def test_llvm_and_assembly_of_a_kernel_from_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by compiling it once more, when they are asked for."""
    source = f"{SCALE}\n\n"  # which no other test has compiled
    compiled = compile_source(source, "scale")
    monkeypatch.setattr(loaded_object, "_libraries", dict[str, Any]())
    kernel = compile_source(source, "scale")
    assert (compiled.library.cached, kernel.library.cached) == (False, True)
    jobs: list[object] = []
    module = CompileJob.module

    def counted(job: CompileJob) -> Any:
        jobs.append(job)
        return module(job)

    monkeypatch.setattr(CompileJob, "module", counted)
    check_scale(kernel)
    assert jobs == []
    for _ in range(2):
        assert kernel.llvm() == compiled.llvm()
        assert kernel.assembly() == compiled.assembly()
    assert len(jobs) == 2
    assert "define" in kernel.llvm()
    assert "gptrs_scale:" in kernel.assembly()
