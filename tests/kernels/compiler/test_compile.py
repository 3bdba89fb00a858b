"""Compilation of LLVM IR at every vector level; each kernel is compiled once."""

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

import numpy as np
import pytest

from gptrs.errors import ArgumentError
from gptrs.kernels.compiler import cache_key as cache_keys
from gptrs.kernels.compiler import codegen, isa, loaded_object
from gptrs.kernels.compiler.cache_key import Code, cache_key
from gptrs.kernels.compiler.codegen import KernelError
from gptrs.kernels.compiler.compile import compile_functions, compile_ir, compile_source
from gptrs.kernels.compiler.symbols import ALLOWED, undefined_symbols
from tests.support import ROOT
from tests.support.kernels import DOUBLE_IR, SCALE, run

pytestmark = pytest.mark.usefixtures("fresh_kernels")

LEVELS = [level.name for level in isa.host_levels()]
X86 = isa.host()[0].startswith("x86_64")


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


def test_one_kernel_is_compiled_once() -> None:
    kernels = {compile_ir(DOUBLE_IR, "double").address for _ in range(3)}
    assert len(kernels) == 1
    fresh = DOUBLE_IR + "; by eight threads\n"
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(compile_ir, fresh, "double") for _ in range(8)]
        found = {job.result().library for job in jobs}
    assert len(found) == 1
    assert found.pop() is not compile_ir(DOUBLE_IR, "double").library


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


BUILDS = """
import sys
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_source
from tests.kernels.compiler.test_compile import resident
code = compile_source(sys.stdin.read(), "scale").code
target = isa.target(isa.current())
for _ in range(5):
    code.build(target)
before = resident()
for _ in range(30):
    code.build(target)
print(resident() - before)
"""
"""In a process of its own: a heap that thousands of tests have used grows by its gaps as well."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_compilation_keeps_no_memory() -> None:
    source = SCALE.replace("+ x[0]", "+ cos32(exp32(x[0]))")
    command = [sys.executable, "-c", BUILDS]
    done = subprocess.run(
        command, cwd=ROOT, input=source, capture_output=True, text=True, check=True
    )
    kept = int(done.stdout)
    assert kept < 10 * 2**20, "30 runs of LLVM's passes would be 29 MB, and keep 5"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_requests() -> None:
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
        module = codegen.optimised(codegen.parse(text), {"f": "f"}, target)
        data = codegen.emit_object(module, target, ALLOWED | {"foreign"})
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

    assert cache_keys.numba_version() == numba.__version__
    monkeypatch.setattr(numba, "__version__", "0.0")
    keys.append(cache_key(Code("python", SCALE, ("scale",)), target))
    monkeypatch.undo()
    source: Callable[[str], bytes] = cache_keys._source  # pyright: ignore[reportPrivateUsage]
    digest_of = cache_keys._digest_of  # pyright: ignore[reportPrivateUsage]
    for changed in (
        "compile_job.py",
        "numba_lowering.py",
        "codegen.py",
        "vector_math.py",
        "reduce.py",
        "ir_builder.py",
        "interleaving.py",
    ):

        def edited(path: str, changed: str = changed) -> bytes:
            return source(path) + changed.encode() * (Path(path).name == changed)

        digest_of.cache_clear()
        monkeypatch.setattr(cache_keys, "_source", edited)
        keys.append(cache_key(Code("python", SCALE, ("scale",)), target))
    assert len(set(keys)) == len(keys)
    monkeypatch.undo()
    digest_of.cache_clear()
    assert cache_key(Code("python", SCALE, ("scale",)), target) == keys[0]


LOAD_ONLY = """
import sys
import gptrs
assert "llvmlite" not in sys.modules, "importing the package is light"
from gptrs.kernels.compiler import cache_key, compile
version = cache_key.numba_version()
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


@pytest.mark.slow
def test_a_second_process_needs_no_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_object, "_libraries", {})
    assert not compile_source(SCALE, "scale").library.cached
    done = subprocess.run(
        [sys.executable, "-c", LOAD_ONLY], cwd=ROOT, input=SCALE, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
