"""LLVM code generation: parse and optimise LLVM IR, emit object code, check it, link it.

Input is the text or module of a `CompileJob`; output is object code and, after `load`, addresses in
this process. The optimiser runs at level 3 with loop and SLP vectorisation for the target of a
vector level. Functions that are not exported become internal. `emit_object` refuses code that calls
anything but the allowed symbols (`gptrs.kernels.compiler.symbols`). Object code is linked with
LLJIT and stays loaded until the process ends.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import (  # pyright: ignore[reportMissingTypeStubs]
    NewPassManager,
)

from gptrs.errors import PtirError
from gptrs.kernels.compiler.isa import Target
from gptrs.kernels.compiler.symbols import undefined_symbols
from gptrs.locks import hold_at_forks, new_lock

OPTIMISATION = 3
VARIANT = "vector."
"""How the names of vector variants of functions begin (`gptrs.kernels.scalar_functions`)."""
_PYTHON = ("PyErr_", "PyUnicode_")
"""How the names of the functions begin by which Numba reports errors."""
_link_lock = new_lock()
_numbers = count()

# A compiling thread takes these locks in this order, and is inside LLVM with the second one only.
hold_at_forks("numba.core.compiler_lock", "global_compiler_lock._lock")
hold_at_forks("llvmlite.binding.ffi", "lib._lock._lock")


class KernelError(PtirError, RuntimeError):
    """A kernel cannot be compiled, or it calls functions that kernels must not call."""


@cache
def _initialized() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # for inline assembly


def version() -> str:
    """The versions of llvmlite and of its LLVM."""
    return f"llvmlite {llvmlite.__version__} LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


def parse(text: str) -> Any:
    """The module that LLVM IR describes. Raises `KernelError` when it describes none."""
    _initialized()
    try:
        return llvm.parse_assembly(text)
    except RuntimeError as error:
        raise KernelError(f"the LLVM IR cannot be read: {error}") from None


def machine(target: Target) -> Any:
    """LLVM's code generator for ``target``."""
    _initialized()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=OPTIMISATION, jit=True
    )


def check_function(module: Any, name: str, signature: str) -> None:
    """Raise `KernelError` unless ``module`` defines ``name`` with this signature ("" is any)."""
    found = next((f for f in module.functions if f.name == name and not f.is_declaration), None)
    if found is None:
        raise KernelError(f"the LLVM IR defines no function @{name}")
    if signature and str(found.global_value_type) != signature:
        raise KernelError(f"@{name} is {found.global_value_type}, expected {signature}")


def optimised(module: Any, exports: Mapping[str, str], target: Target) -> Any:
    """``module`` optimised for ``target``; functions not in ``exports`` (name → symbol) are hidden.

    Raises `KernelError` when LLVM finds the module malformed.
    """
    generator = machine(target)
    # Text built with llvmlite names no triple, and Numba's names no CPU.
    module.triple = target.triple
    module.data_layout = str(generator.target_data)
    for function in module.functions:
        if function.is_declaration:
            continue
        public = exports.get(function.name)
        if function.name.startswith(VARIANT):
            continue
        function.linkage = "internal" if public is None else "external"
        if public is not None:
            function.name = public
    try:
        module.verify()
    except RuntimeError as error:
        raise KernelError(f"LLVM finds the kernel malformed: {error}") from None
    options = llvm.create_pipeline_tuning_options(speed_level=OPTIMISATION)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(generator, options)
    run_passes(builder.getModulePassManager(), module, builder)
    _inline_variants(module, builder)
    _drop_error_handling(module, builder)
    return module


def _inline_variants(module: Any, builder: Any) -> None:
    """Inline the vector variants of functions that the vectoriser called, and drop the others."""
    variants = [f for f in module.functions if f.name.startswith(VARIANT)]
    if not variants:
        return
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_new_gvn_pass()
    passes.add_instruction_combine_pass()
    run_passes(passes, module, builder)
    for function in variants:
        if not function.is_declaration:
            function.linkage = "available_externally"  # no code is emitted


def _drop_error_handling(module: Any, builder: Any) -> None:
    """Drop what handles errors of a loop that has none. LLVM knows only after it has inlined all
    that the loop calls, and does not look at its callers again if it is too long to be inlined."""
    if not any(f.is_declaration and f.name.startswith(_PYTHON) for f in module.functions):
        return
    passes = llvm.create_new_module_pass_manager()
    passes.add_ipsccp_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    run_passes(passes, module, builder)


def run_passes(passes: Any, code: Any, builder: Any) -> None:
    """Run ``passes`` on a module or a function, and free them.

    llvmlite would keep them for ever, up to 46 KB for a run and a megabyte for a kernel that calls
    functions: of the two classes that its pass managers derive from, the first one's `_dispose`
    does nothing.
    """
    passes.run(code, builder)
    NewPassManager._dispose(passes)
    passes.detach()


def emit_object(module: Any, target: Target, calls: frozenset[str]) -> bytes:
    """The object code of an optimised module.

    Raises `KernelError` when it needs symbols from outside that are not among ``calls``.
    """
    data: bytes = machine(target).emit_object(module)
    if foreign := sorted(undefined_symbols(data) - calls):
        raise KernelError(
            f"it needs {_some(foreign)}, which no kernel may call",
            fix="use arithmetic, math functions and pointers alone: nothing that raises, allocates "
            "or is a Python object, and no half precision where the CPU has none",
        )
    return data


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def emit_assembly(module: Any, target: Target) -> str:
    """The assembly text of an optimised module."""
    return machine(target).emit_assembly(module)


@cache
def _linker() -> Any:
    _initialized()
    # Errors come back as exceptions instead of on stderr. MCJIT would leave unknown symbols null.
    linker = llvm.create_lljit_compiler(suppress_errors=True)
    linker._owned = False  # never taken down: threads may run kernels while the interpreter leaves
    return linker


def load(data: bytes, symbols: Sequence[str]) -> dict[str, int]:
    """The addresses of ``symbols`` in object code, which stays loaded until the process ends.

    Raises `KernelError` when it cannot be linked.
    """
    with _link_lock:
        builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        try:
            library = builder.link(_linker(), f"gptrs-{next(_numbers)}")
        except RuntimeError as error:
            raise KernelError(f"the object code cannot be linked: {error}") from None
        library.detach()
        return {symbol: library[symbol] for symbol in symbols}
