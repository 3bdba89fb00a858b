"""Numba's compilation pipeline with six changes: LLVM values carry the names of the variables
that hold them, results are known not to overlap what a loop reads, no function is compiled
further than to LLVM IR, passes that a kernel's source has no use for do not run, those of LLVM are
freed, and the type of an operation is looked for once in a process.

Numba numbers its values (``%.163``). With the name of the variable that each is assigned to
(``%exp0``), the LLVM IR of a kernel reads like its source. Names do not change the code.

Parameters with names like `RESULT` are ``noalias``: LLVM vectorises its loops without a check, at
each entry, that the array is apart from all others.

Numba would optimise each function that a kernel calls and generate machine code for it, with a
wrapper for Python and one for C, though the kernel is linked from the LLVM IR. That would be half
of the time of a kernel of many functions.

Numba has some twenty passes more, for closures, ``with``, array expressions, literal loops and the
like, which a kernel cannot contain, and checks a function's graph after each. For each operator it
tries all signatures, and words an error for each that does not fit. Without these an equal module
takes a fifth less time.
"""

# Numba and llvmlite have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedClassDecorator=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import (
    BaseNativeLowering,
    BaseTypeInference,
    IRLegalization,
    NoPythonBackend,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, IRProcessing, ReconstructSSA, TranslateByteCode

from gptrs.kernels.compiler.codegen import run_passes

RESULT = re.compile(r"out\d*")
"""The names of pointers to memory that no other parameter points to."""


class _NamedLower(Lower):
    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        for name, argument in zip(
            fndesc.args, self.call_conv.get_arguments(self.function), strict=True
        ):
            if RESULT.fullmatch(name) and isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        # A name with a $ is that of an intermediate result.
        if isinstance(value, ir.Instruction) and value.name.startswith(".") and "$" not in name:
            value.name = name
        super().storevar(value, name, argidx)


_signatures: dict[Any, Any] = {}
"""Of operators and functions of Numba, by their type and those of the operands."""


class _Typing:
    """Numba's typing context, which looks for the signature of an operation once in a process."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, keywords: Any) -> Any:
        resolve = self._context.resolve_function_type
        if keywords or not isinstance(function, types.Function):
            return resolve(function, arguments, keywords)
        key = function, tuple(arguments)
        if key not in _signatures:
            _signatures[key] = resolve(function, arguments, keywords)
        return _signatures[key]


@register_pass(mutates_CFG=True, analysis_only=False)
class _Inference(BaseTypeInference):
    _name = "gptrs_type_inference"

    def run_pass(self, state: Any) -> Any:
        context = state.typingctx
        state.typingctx = _Typing(context)
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = context


@register_pass(mutates_CFG=True, analysis_only=False)
class _NamedLowering(BaseNativeLowering):
    _name = "gptrs_named_lowering"

    @property
    def lowering_class(self) -> Any:
        return _NamedLower

    def run_pass(self, state: Any) -> Any:
        flags = state.flags
        called = not flags.no_compile
        state.library = _TextLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        flags.no_compile = flags.no_cpython_wrapper = True
        flags.no_cfunc_wrapper |= called
        super().run_pass(state)
        if called:
            # Its callers look it up by an entry point, which has to be a built-in function of its
            # own and is never called.
            entry = [state.library].append
            state.targetctx.insert_user_function(entry, state.cr.fndesc, [state.library])
            state["cr"] = state.cr._replace(cfunc=entry)
        return True


class _TextLibrary(JITCodeLibrary):
    """The LLVM IR of a function and, once it is finalised, of those that it calls."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = str(self.codegen.target_data)
        builder = self.codegen._pass_builder()
        for function in ll_module.functions:
            if not function.name.startswith("scalar."):  # those need none
                run_passes(builder.getFunctionPassManager(), function, builder)

    def finalize(self) -> None:
        missing = {f.name for f in self._final_module.functions if f.is_declaration}
        for library in dict.fromkeys(self._linking_libraries):
            part = library._get_module_for_linking()
            if missing & {f.name for f in part.functions if not f.is_declaration}:
                self._final_module.link_in(part, preserve=True)
        self._finalized = True


_PASSES = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    ReconstructSSA,
    _Inference,
    PreLowerStripPhis,
    IRLegalization,
    _NamedLowering,
    NoPythonBackend,
)


class _Passes(PassManager):
    _ENFORCING = False  # a check of the function's graph after each pass


class NamedCompiler(CompilerBase):
    """For ``pipeline_class``."""

    def define_pipelines(self) -> list[Any]:
        pipeline = _Passes("gptrs")
        for each in _PASSES:
            pipeline.add_pass(each, each.__name__)
        pipeline.finalize()
        return [pipeline]
