"""Kernels from LLVM IR and from source: right at every level, refused where they must be."""

# Numba and llvmlite have no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs.errors import ArgumentError
from gptrs.kernels import compile as compiling
from gptrs.kernels import isa, native
from gptrs.kernels.compile import (
    Code,
    cache_key,
    compile_functions,
    compile_ir,
    compile_source,
)
from gptrs.kernels.native import KernelError
from gptrs.kernels.symbols import ALLOWED, undefined_symbols
from tests.kernels import DOUBLE_IR, SCALE, check_scale, run

ROOT = Path(__file__).parents[1]
LEVELS = [level.name for level in isa.host_levels()]
X86 = isa.host()[0].startswith("x86_64")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPTRS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("GPTRS_ISA", raising=False)
    return tmp_path


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
        assert ("vfmadd" in assembly) == (level != "generic"), "contract, where the CPU can"


@pytest.mark.parametrize("level", LEVELS)
def test_ir_runs_at_every_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_ISA", level)
    x = np.arange(19, dtype=np.float32)
    run(compile_ir(DOUBLE_IR, "double"), x, extent=(1, 18))
    assert (x == [0, *range(2, 36, 2), 18]).all()


def test_ir_may_be_an_llvmlite_module() -> None:
    from llvmlite import ir

    word = ir.IntType(64)
    module = ir.Module("anything")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * 3), "store_last")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.store(function.args[2], builder.inttoptr(function.args[0], word.as_pointer()))
    builder.ret_void()
    word_there = np.zeros(1, np.int64)
    compile_ir(module, "store_last")(word_there.ctypes.data, 0, 42)
    assert word_there[0] == 42


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
    scratch = scratch_doubles()
    scratch[0], scratch[1] = 5.0, 8.0
    floats(block[0])[21] = float32(sum_of(scratch, 2) + product_of(scratch, 2))
    scratch32 = scratch_floats()
    scratch32[0], scratch32[1] = float32(5), float32(8)
    floats(block[0])[22] = maximum_of(scratch32, 2) - minimum_of(scratch32, 2)
"""


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


def test_fast_math_keeps_nan_and_infinity() -> None:
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
    from gptrs.kernels import source as lowering

    text = str(lowering.lower(source, "special")[0])
    assert "contract" in text
    assert not {"fast", "reassoc", "nnan", "ninf", "nsz", "arcp", "afn"} & set(text.split())


REFUSED = {
    "raise": ("raise ValueError", "NRT_Free, PyBytes_FromStringAndSize"),
    "step": ("for i in range(first, last, arguments):\n        words(last)[i] = 1", "NRT_Free"),
    "allocation": ("words(arguments)[0] = len([i for i in range(last)])", "NRT_"),
    "unknown name": ("nothing(arguments)", "nothing"),
    "Python object": ("words(arguments)[0] = str(first)", "Numba cannot compile"),
    "syntax": ("for", "cannot be read"),
}


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_source_that_no_kernel_may_be(row: str) -> None:
    body, message = REFUSED[row]
    with pytest.raises(KernelError, match=message) as caught:
        compile_source(f"def bad(arguments, first, last):\n    {body}\n", "bad")
    assert "kernel bad for " in str(caught.value)


def test_symbols_from_outside_are_refused_when_it_is_built() -> None:
    text = """
declare i32 @getpid()
declare void @nowhere()
@elsewhere = external global i64
define void @leave(i64 %a, i64 %b, i64 %c) {
  %pid = call i32 @getpid()
  call void @nowhere()
  store i64 1, ptr @elsewhere
  ret void
}
"""
    with pytest.raises(KernelError, match=r"needs elsewhere, getpid, nowhere, which"):
        compile_ir(text, "leave")
    with pytest.raises(KernelError, match="cannot be linked"):
        compile_functions(lambda: text, ["leave"], ["getpid", "nowhere", "elsewhere"])


def test_functions_of_any_signature() -> None:
    text = """
declare i32 @getpid()
define i64 @add(i64 %a, i64 %b) {
  %c = call i64 @hidden(i64 %a, i64 %b)
  ret i64 %c
}
define i64 @hidden(i64 %a, i64 %b) {
  %c = add i64 %a, %b
  ret i64 %c
}
define i32 @process() {
  %pid = call i32 @getpid()
  ret i32 %pid
}
"""
    import ctypes

    found = compile_functions(lambda: text, ["add", "process"], ["getpid"])
    assert list(found) == ["add", "process"]
    word = ctypes.c_int64
    assert ctypes.CFUNCTYPE(word, word, word)(found["add"])(40, 2) == 42
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(found["process"])() == os.getpid()


MALFORMED = {
    "no IR": ("define nonsense", "cannot be read"),
    "other name": (DOUBLE_IR.replace("@double", "@triple"), "no function @double"),
    "declared only": ("declare void @double(i64, i64, i64)", "no function @double"),
    "signature": ("define i32 @double(i64 %a) { ret i32 0 }", r"is i32 \(i64\), expected void"),
}


@pytest.mark.parametrize("row", MALFORMED, ids=str)
def test_malformed_ir(row: str) -> None:
    text, message = MALFORMED[row]
    with pytest.raises(KernelError, match=message):
        compile_ir(text, "double")


def test_malformed_names_and_parameters() -> None:
    with pytest.raises(ArgumentError, match="cannot name a kernel"):
        compile_ir(DOUBLE_IR, "a b")
    with pytest.raises(KernelError, match="defines no function other"):
        compile_source(SCALE, "other")
    with pytest.raises(KernelError, match="defines no function one"):
        compile_source("def one(arguments):\n    pass\n", "one")


def test_a_kernel_may_be_called_like_a_function_that_it_calls() -> None:
    source = """
def cosf(arguments, first, last):
    x = floats(words(arguments)[0])
    x[0] = math.cos(x[0])
"""
    x = np.zeros(1, np.float32)
    run(compile_source(source, "cosf"), x)
    assert x[0] == 1


def test_numba_without_its_inner_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    from gptrs.kernels import source as lowering

    monkeypatch.delattr(lowering.CFunc, "_compile_uncached")
    lowered: list[str] = []
    final: Callable[..., Any] = lowering._final_module  # pyright: ignore[reportPrivateUsage]

    def noting(function: Any) -> Any:
        lowered.append(function.__name__)
        monkeypatch.undo()  # the public interface is built on the inner one
        monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
        return final(function)

    monkeypatch.setattr(lowering, "_final_module", noting)
    check_scale(compile_source(SCALE + "\n", "scale"))
    assert lowered == ["scale"]


def test_one_kernel_is_compiled_once() -> None:
    kernels = {compile_ir(DOUBLE_IR, "double").address for _ in range(3)}
    assert len(kernels) == 1
    fresh = DOUBLE_IR + "; by eight threads\n"
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(compile_ir, fresh, "double") for _ in range(8)]
        found = {job.result().library for job in jobs}
    assert len(found) == 1
    assert found.pop() is not compile_ir(DOUBLE_IR, "double").library


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_requests() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    texts = [DOUBLE_IR + f"; {i}\n" for i in range(3)]
    compile_source(SCALE, "scale")
    for text in texts * 100:
        compile_ir(text, "double")
    before = resident()
    for text in texts * 1000:
        compile_ir("".join([text, "\n"]), "double")
        compile_source(SCALE, "scale")
    assert resident() - before < 2**21, "3000 kernels more would be 100 MB"


def test_symbols_of_objects() -> None:
    text = """
declare float @expf(float)
declare i64 @foreign(i64)
@shared = common global i64 0
define i64 @f(i64 %a) {
  %b = call i64 @foreign(i64 %a)
  %y = sitofp i64 %b to float
  %x = call float @expf(float %y)
  store volatile i64 %a, ptr @shared
  store volatile float %x, ptr @shared
  ret i64 %b
}
"""
    triples = [isa.host()[0], *(["x86_64-apple-macosx11.0"] if X86 else [])]
    for triple in triples:
        target = isa.Target(isa.ISAS["generic"], triple, "", "")
        module = native.optimised(native.parse(text), {"f": "f"}, target)
        data = native.emit_object(module, target, ALLOWED | {"foreign"})
        assert undefined_symbols(data) == {"foreign", "expf"}
        for length in (16, 60, 100, len(data) // 2):
            with pytest.raises(ValueError, match="object code"):
                undefined_symbols(data[:length])
    with pytest.raises(ValueError, match="neither ELF nor Mach-O"):
        undefined_symbols(b"MZ")


def test_the_key_holds_what_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    target = isa.target(isa.current())
    other_cpu = isa.Target(target.isa, target.triple, "other", target.features)
    other_features = isa.Target(target.isa, target.triple, target.cpu, target.features + ",+sse")
    keys = [
        cache_key(code, where)
        for code, where in [
            (Code("python", SCALE, ("scale",)), target),
            (Code("llvm", SCALE, ("scale",)), target),
            (Code("python", SCALE + " ", ("scale",)), target),
            (Code("python", SCALE, ("scales",)), target),
            (Code("python", SCALE, ("scale", "s")), target),
            (Code("python", SCALE, ("scale",), frozenset(["cosf"])), target),
            (Code("python", SCALE, ("scale",)), other_cpu),
            (Code("python", SCALE, ("scale",)), other_features),
        ]
    ]
    import numba

    assert compiling.numba_version() == numba.__version__
    monkeypatch.setattr(numba, "__version__", "0.0")
    keys.append(cache_key(Code("python", SCALE, ("scale",)), target))
    monkeypatch.undo()
    text: Callable[[Path], str] = compiling._text  # pyright: ignore[reportPrivateUsage]
    digest_of = compiling._digest_of  # pyright: ignore[reportPrivateUsage]
    for changed in ("source.py", "native.py", "math.py", "reduce.py", "emit.py"):

        def edited(path: Path, changed: str = changed) -> str:
            return text(path) + changed * (path.name == changed)

        digest_of.cache_clear()
        monkeypatch.setattr(compiling, "_text", edited)
        keys.append(cache_key(Code("python", SCALE, ("scale",)), target))
    assert len(set(keys)) == len(keys)
    monkeypatch.undo()
    digest_of.cache_clear()
    assert cache_key(Code("python", SCALE, ("scale",)), target) == keys[0]


LOAD_ONLY = """
import sys
import gptrs
assert "llvmlite" not in sys.modules, "importing the package is light"
from gptrs.kernels import compile
version = compile.numba_version()
kernel = compile.compile_source(sys.stdin.read(), "scale")
assert kernel.library.cached, "found on disk"
assert "numba" not in sys.modules, "loaded without a compiler"
import ctypes
x, out, factor = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)(), ctypes.c_float(3)
block = (ctypes.c_int64 * 4)(*map(ctypes.addressof, (x, out)), 2, ctypes.addressof(factor))
kernel(ctypes.addressof(block), 0, 2)
assert list(out) == [4, 7, 10, 13], list(out)
import numba
assert version == numba.__version__, "known without importing it"
"""


def test_a_second_process_needs_no_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_libraries", {})
    assert not compile_source(SCALE, "scale").library.cached
    done = subprocess.run(
        [sys.executable, "-c", LOAD_ONLY], cwd=ROOT, input=SCALE, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
