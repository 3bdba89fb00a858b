"""The vocabulary: ``from gptrs import ptir``.

``ptir.jit`` compiles functions; every op of the table is here by its name (``ptir.softmax``,
``ptir.take``, ``ptir.slice``, ...), and every dtype (``ptir.f32``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptrs.backends.discovery import register_backend
from gptrs.deprecated import renamed
from gptrs.ir.dims import dim
from gptrs.ir.dispatch import OPS
from gptrs.ir.implementations.registry import implementation
from gptrs.ir.operators import stack
from gptrs.ir.parsing import parse
from gptrs.ir.printing import array
from gptrs.ir.program import Program
from gptrs.ir.tensor import Parameter, Tensor
from gptrs.ir.types import (
    DType,
    Type,
    bf16,
    cf32,
    cf64,
    f16,
    f32,
    f64,
    fp8_e4m3,
    fp8_e5m2,
    i1,
    si4,
    si8,
    si16,
    si32,
    si64,
    ui4,
    ui8,
    ui16,
    ui32,
    ui64,
)
from gptrs.jit.fast_path.assume_unchanged import assume_unchanged
from gptrs.jit.function import JitFunction, jit
from gptrs.jit.modes import backend, eager
from gptrs.jit.overrides import overrides

if TYPE_CHECKING:
    from gptrs.ir.ops.composite import *
    from gptrs.ir.ops.contract import *
    from gptrs.ir.ops.control import *
    from gptrs.ir.ops.custom import *
    from gptrs.ir.ops.dynamic import *
    from gptrs.ir.ops.elementwise import *
    from gptrs.ir.ops.index import *
    from gptrs.ir.ops.language import *
    from gptrs.ir.ops.literal import *
    from gptrs.ir.ops.quantize import *
    from gptrs.ir.ops.random import *
    from gptrs.ir.ops.reduce import *
    from gptrs.ir.ops.segment import *
    from gptrs.ir.ops.shape import *
    from gptrs.ir.ops.sort import *
    from gptrs.ir.ops.vision import *
    from gptrs.ir.ops.window import *

__all__ = [
    "DType",
    "JitFunction",
    "Parameter",
    "Program",
    "Tensor",
    "Type",
    "array",
    "assume_unchanged",
    "backend",
    "bf16",
    "cf32",
    "cf64",
    "dim",
    "eager",
    "f16",
    "f32",
    "f64",
    "fp8_e4m3",
    "fp8_e5m2",
    "i1",
    "implementation",
    "jit",
    "overrides",
    "parse",
    "register_backend",
    "si4",
    "si8",
    "si16",
    "si32",
    "si64",
    "stack",
    "tensor",
    "ui4",
    "ui8",
    "ui16",
    "ui32",
    "ui64",
]


_RENAMED = {"Steady": "assume_unchanged"}


def tensor(data: object, dtype: object = None) -> Tensor:
    """A Tensor of ``data``: an array (shared, not copied), a number, or nested lists of them."""
    return Tensor(data, dtype)


def __getattr__(name: str) -> Any:
    """The op called ``name``."""
    if name in OPS:
        return OPS[name]
    if name in _RENAMED:
        return renamed(__name__, name, _RENAMED)
    raise AttributeError(f"ptir has no op or name {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *OPS})
