"""Numba's compilation pipeline with two changes: LLVM values carry the names of the variables that
hold them, and results are known not to overlap what a loop reads.

Numba numbers its values (``%.163``). With the name of the variable that each is assigned to
(``%exp0``), the LLVM IR of a kernel reads like its source. Names do not change the code.

Parameters with names like `RESULT` are ``noalias``: LLVM vectorises its loops without a check, at
each entry, that the array is apart from all others.
"""

# Numba and llvmlite have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedClassDecorator=false

from __future__ import annotations

import re
from typing import Any

from llvmlite import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NativeLowering

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


@register_pass(mutates_CFG=True, analysis_only=False)
class _NamedLowering(BaseNativeLowering):
    _name = "gptrs_named_lowering"

    @property
    def lowering_class(self) -> Any:
        return _NamedLower


class NamedCompiler(CompilerBase):
    """For ``pipeline_class``."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes = pipeline.passes
        pipeline.passes = [(_NamedLowering if p is NativeLowering else p, d) for p, d in passes]
        pipeline.finalize()
        return [pipeline]
