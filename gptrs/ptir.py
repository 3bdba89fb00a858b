"""``ptir``, the public namespace: ``from gptrs import ptir``.

``ptir.jit`` compiles functions; every op of the table ``OPS`` is an attribute by its name
(``ptir.softmax``, ``ptir.take``, ``ptir.slice``, ...), and every dtype (``ptir.f32``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gptrs.ir.ops.bitcast as bitcast_ops
import gptrs.ir.ops.complex_numbers as complex_ops
import gptrs.ir.ops.composite as composite_ops
import gptrs.ir.ops.contract as contract_ops
import gptrs.ir.ops.control as control_ops
import gptrs.ir.ops.custom as custom_ops
import gptrs.ir.ops.dynamic as dynamic_ops
import gptrs.ir.ops.effects as effect_ops
import gptrs.ir.ops.elementary as elementary_ops
import gptrs.ir.ops.elementwise as elementwise_ops
import gptrs.ir.ops.experts as expert_ops
import gptrs.ir.ops.fft as fft_ops
import gptrs.ir.ops.index as index_ops
import gptrs.ir.ops.language as language_ops
import gptrs.ir.ops.linalg as linalg_ops
import gptrs.ir.ops.literal as literal_ops
import gptrs.ir.ops.quantize as quantize_ops
import gptrs.ir.ops.random as random_ops
import gptrs.ir.ops.reduce as reduce_ops
import gptrs.ir.ops.segment as segment_ops
import gptrs.ir.ops.shape as shape_ops
import gptrs.ir.ops.sort as sort_ops
import gptrs.ir.ops.vision as vision_ops
import gptrs.ir.ops.window as window_ops
from gptrs.backends.discovery import register_backend
from gptrs.deprecated import renamed
from gptrs.ir import op_namespace as ops
from gptrs.ir.composites import composite
from gptrs.ir.dims import dim
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.implementations.kernels import kernel, remove_kernel
from gptrs.ir.implementations.registry import implementation
from gptrs.ir.names import unknown_name
from gptrs.ir.op import Op
from gptrs.ir.parameter import Parameter
from gptrs.ir.parsing import parse
from gptrs.ir.primitives import elementwise, primitive
from gptrs.ir.program import Program
from gptrs.ir.registry import RESERVED, remove
from gptrs.ir.rewrite import Rule
from gptrs.ir.tensor import Tensor
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
from gptrs.jit.decorator import jit
from gptrs.jit.fast_path.assume_unchanged import assume_unchanged
from gptrs.jit.function import JitFunction
from gptrs.jit.modes import backend, eager
from gptrs.jit.no_retrace import no_retrace
from gptrs.jit.overrides import overrides
from gptrs.locks import late_import
from gptrs.numpy_api import NAMES as FUNCTION_NAMES
from gptrs.numpy_api.constants import VALUES
from gptrs.numpy_api.einops_backend import introduce_tensors
from gptrs.passes.rule_samples import check_rule
from gptrs.passes.user_rules import remove_rule, rewrite

if TYPE_CHECKING:
    import os

    from gptrs.jit.ahead_of_time import Compiled

if TYPE_CHECKING:  # at run time `__getattr__` finds them
    from gptrs.ir.ops.complex_numbers import *
    from gptrs.ir.ops.complex_numbers import complex_ as complex
    from gptrs.ir.ops.composite import *
    from gptrs.ir.ops.contract import *
    from gptrs.ir.ops.control import *
    from gptrs.ir.ops.custom import *
    from gptrs.ir.ops.dynamic import *
    from gptrs.ir.ops.elementary import *
    from gptrs.ir.ops.elementwise import *
    from gptrs.ir.ops.elementwise import abs_ as abs
    from gptrs.ir.ops.elementwise import pow_ as pow
    from gptrs.ir.ops.elementwise import round_ as round
    from gptrs.ir.ops.experts import *
    from gptrs.ir.ops.fft import *
    from gptrs.ir.ops.index import *
    from gptrs.ir.ops.language import *
    from gptrs.ir.ops.linalg import *
    from gptrs.ir.ops.literal import *
    from gptrs.ir.ops.quantize import *
    from gptrs.ir.ops.random import *
    from gptrs.ir.ops.reduce import *
    from gptrs.ir.ops.segment import *
    from gptrs.ir.ops.shape import *
    from gptrs.ir.ops.shape import slice_ as slice
    from gptrs.ir.ops.sort import *
    from gptrs.ir.ops.vision import *
    from gptrs.ir.ops.window import *
    from gptrs.jit.numerics.compare import compare
    from gptrs.jit.numerics.nans import debug_nans
    from gptrs.jit.vmap import vmap
    from gptrs.numpy_api.effects import print
    from gptrs.numpy_api.element_views import bitcast as bitcast
    from gptrs.numpy_api.scattering import gather as gather
    from gptrs.numpy_api.scattering import scatter_add as scatter_add
    from gptrs.numpy_api.scattering import scatter_reduce as scatter_reduce
    from gptrs.numpy_api.searching import searchsorted as searchsorted
    from gptrs.numpy_api.taking import take as take

__all__: list[str] = [
    "DType",
    "JitFunction",
    "Parameter",
    "Program",
    "Tensor",
    "Type",
    "assume_unchanged",
    "backend",
    "bf16",
    "cf32",
    "cf64",
    "check_rule",
    "compare",
    "composite",
    "debug_nans",
    "dim",
    "eager",
    "elementwise",
    "f16",
    "f32",
    "f64",
    "fp8_e4m3",
    "fp8_e5m2",
    "i1",
    "implementation",
    "jit",
    "kernel",
    "load_compiled",
    "no_retrace",
    "ops",
    "overrides",
    "parse",
    "primitive",
    "register_backend",
    "rewrite",
    "si4",
    "si8",
    "si16",
    "si32",
    "si64",
    "tensor",
    "ui4",
    "ui8",
    "ui16",
    "ui32",
    "ui64",
    "unregister",
    "vmap",
]
__all__ += ["abs", "complex", "pow", "print", "round", "slice"]
__all__ += bitcast_ops.__all__
__all__ += complex_ops.__all__
__all__ += composite_ops.__all__
__all__ += contract_ops.__all__
__all__ += control_ops.__all__
__all__ += custom_ops.__all__
__all__ += dynamic_ops.__all__
__all__ += elementary_ops.__all__
__all__ += effect_ops.__all__
__all__ += elementwise_ops.__all__
__all__ += expert_ops.__all__
__all__ += fft_ops.__all__
__all__ += index_ops.__all__
__all__ += language_ops.__all__
__all__ += linalg_ops.__all__
__all__ += literal_ops.__all__
__all__ += quantize_ops.__all__
__all__ += random_ops.__all__
__all__ += reduce_ops.__all__
__all__ += segment_ops.__all__
__all__ += shape_ops.__all__
__all__ += sort_ops.__all__
__all__ += vision_ops.__all__
__all__ += window_ops.__all__


_LATER = {
    "compare": "gptrs.jit.numerics.compare",
    "debug_nans": "gptrs.jit.numerics.nans",
    "vmap": "gptrs.jit.vmap",
    "load_compiled": "gptrs.formats.compiled_file",
}  # names whose modules are imported on first use
_NAMESPACES = {  # as well
    "fft": "gptrs.numpy_api.fft",
    "linalg": "gptrs.numpy_api.linalg",
    "nn": "gptrs.numpy_api.nn",
    "random": "gptrs.numpy_api.random",
    "signal": "gptrs.numpy_api.signal",
}
_RENAMED = {"Steady": "assume_unchanged"}


RESERVED.update(__all__)


def unregister(thing: Op[..., Any] | Rule | Callable[..., Any]) -> None:
    """Take an op, a rewrite rule or a kernel of yours out again. Raises `ArgumentError` for what is
    not registered."""
    if isinstance(thing, Rule):
        remove_rule(thing)
    elif isinstance(thing, Op):
        remove(thing)
    else:
        remove_kernel(thing)


def tensor(data: object, dtype: object = None) -> Tensor:
    """A Tensor of ``data``: an array (shared, not copied), a number, or nested lists of them."""
    return Tensor(data, dtype)


def load_compiled(path: str | os.PathLike[str]) -> Compiled:
    """The function that ``f.lower(...).compile().save(path)`` wrote to a file, ready to be called.

    It neither traces nor compiles, on a CPU and with a version of this package like those that
    wrote the file; on others it compiles from the program in the file, with a `RecompileWarning`.
    Machine code of the file is run, so load only what you would run. Raises `LoadError` for a file
    that is missing, damaged, of another version, or no such file.
    """
    return late_import("gptrs.formats.compiled_file").load(path)  # the layer above


def __getattr__(name: str) -> Any:
    """The function, op or dtype called ``name``."""
    if name in FUNCTION_NAMES:
        return FUNCTIONS[name]
    if name in VALUES:
        return VALUES[name]
    if name in OPS:
        return OPS[name]
    if name in _NAMESPACES:
        return late_import(_NAMESPACES[name])
    if name in _LATER:
        return getattr(late_import(_LATER[name]), name)
    if name in _RENAMED:
        return renamed(__name__, name, _RENAMED)
    raise unknown_name("ptir", name)


def __dir__() -> list[str]:
    return sorted({*__all__, *OPS, *FUNCTION_NAMES, *VALUES, *_NAMESPACES})


introduce_tensors()
