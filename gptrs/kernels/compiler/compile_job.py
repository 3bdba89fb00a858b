"""A compile job: source text and target, serialisable, so that a worker process can compile it.

Made by `gptrs.kernels.compiler.cache_key.Code.job`; compiled in this process or, as a line of JSON,
in one of `gptrs.kernels.compiler.compile_processes`. `module` lowers Python source with Numba or
parses LLVM IR and optimises it; `object_code` emits and checks the object code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from gptrs.kernels.compiler import codegen
from gptrs.kernels.compiler.isa import ISAS, Target
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import late_import_that_logs


@dataclass(frozen=True)
class CompileJob:
    """Source text (LLVM IR, or the Python of `numba_lowering`), its exports, and the target."""

    language: Literal["llvm", "python"]
    text: str
    exports: Mapping[str, str]
    """Exported functions: name → symbol."""
    signature: str
    """Required signature of the exported functions; "" is any."""
    calls: frozenset[str]
    """Symbols of this process that they may call."""
    target: Target

    def module(self) -> Any:
        """The LLVM module, optimised. Raises `KernelError`."""
        if self.language == "python":
            with late_import_that_logs():
                from gptrs.kernels.compiler import (
                    numba_lowering,  # needs Numba: half a second to import
                )

            ((name, symbol),) = self.exports.items()
            module, entry = numba_lowering.lower(self.text, name)
            return codegen.optimised(module, {entry: symbol}, self.target)
        module = codegen.parse(self.text)
        for name in self.exports:
            codegen.check_function(module, name, self.signature)
        return codegen.optimised(module, self.exports, self.target)

    def object_code(self) -> bytes:
        """The object code. Raises `KernelError`."""
        return codegen.emit_object(self.module(), self.target, self.calls)

    def to_json(self) -> str:
        """All of it, as `from_json` reads it."""
        at = self.target
        return json.dumps(
            {
                **{name: getattr(self, name) for name in ("language", "text", "exports")},
                "signature": self.signature,
                "calls": sorted(self.calls),
                "target": [at.isa.name, at.triple, at.cpu, at.features],
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> CompileJob:
        """The job that `to_json` wrote."""
        fields = json.loads(text)
        isa, *words = fields.pop("target")
        calls = frozenset(fields.pop("calls"))
        return cls(**fields, calls=calls, target=Target(ISAS[isa], *words))
