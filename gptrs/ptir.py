"""``ptir``, the public namespace: ``from gptrs import ptir``.

``ptir.jit`` compiles functions; every op of the table ``OPS`` is an attribute by its name
(``ptir.softmax``, ``ptir.take``, ``ptir.slice``, ...), and every dtype (``ptir.f32``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gptrs.backends.discovery import register_backend
from gptrs.deprecated import renamed
from gptrs.ir.composites import composite
from gptrs.ir.dims import dim
from gptrs.ir.dispatch import OPS
from gptrs.ir.implementations.kernels import kernel, remove_kernel
from gptrs.ir.implementations.registry import implementation
from gptrs.ir.op import Op
from gptrs.ir.operators import stack
from gptrs.ir.parsing import parse
from gptrs.ir.primitives import elementwise, primitive
from gptrs.ir.printing import array
from gptrs.ir.program import Program
from gptrs.ir.registry import RESERVED, remove
from gptrs.ir.rewrite import Rule
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
from gptrs.passes.rule_samples import check_rule
from gptrs.passes.user_rules import remove_rule, rewrite

if TYPE_CHECKING:  # at run time `__getattr__` finds them
    from gptrs.ir.ops.composite import (
        attention,
        embedding,
        gelu,
        gelu_quick,
        gelu_tanh,
        layer_norm,
        linear,
        log_softmax,
        matmul,
        mean,
        relu,
        sigmoid,
        silu,
        softmax,
        var,
    )
    from gptrs.ir.ops.contract import dot_general
    from gptrs.ir.ops.control import cond, scan, while_loop
    from gptrs.ir.ops.custom import custom_call
    from gptrs.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
    from gptrs.ir.ops.elementwise import abs_ as abs
    from gptrs.ir.ops.elementwise import (
        add,
        bit_and,
        bit_not,
        bit_or,
        bit_xor,
        cast,
        ceil,
        clamp,
        cos,
        div,
        equal,
        erf,
        exp,
        floor,
        floor_divide,
        greater,
        greater_equal,
        is_finite,
        less,
        less_equal,
        log,
        logical_and,
        logical_not,
        logical_or,
        maximum,
        minimum,
        mul,
        neg,
        not_equal,
        reciprocal,
        remainder,
        rsqrt,
        select,
        shift_left,
        shift_right,
        sign,
        sin,
        sqrt,
        stop_gradient,
        sub,
        tanh,
    )
    from gptrs.ir.ops.elementwise import pow_ as pow
    from gptrs.ir.ops.elementwise import round_ as round
    from gptrs.ir.ops.index import gather, scatter_add, scatter_reduce, take
    from gptrs.ir.ops.language import cross_entropy, rms_norm, rotary
    from gptrs.ir.ops.literal import constant, full, iota
    from gptrs.ir.ops.quantize import dequantize, quantize, requantize
    from gptrs.ir.ops.random import rng_normal, rng_uniform
    from gptrs.ir.ops.reduce import (
        argmax,
        argmin,
        cumsum,
        reduce_all,
        reduce_any,
        reduce_max,
        reduce_min,
        reduce_prod,
        reduce_sum,
    )
    from gptrs.ir.ops.segment import segment_reduce
    from gptrs.ir.ops.shape import broadcast_to, concat, pad, reshape, tile, transpose
    from gptrs.ir.ops.shape import slice_ as slice
    from gptrs.ir.ops.sort import sort, top_k
    from gptrs.ir.ops.vision import (
        avg_pool2d,
        batch_norm,
        conv2d,
        depthwise_conv2d,
        global_avg_pool2d,
        max_pool2d,
        relu6,
    )
    from gptrs.ir.ops.window import extract_patches, reduce_window

__all__ = [
    "DType",
    "JitFunction",
    "Parameter",
    "Program",
    "Tensor",
    "Type",
    "abs",
    "add",
    "argmax",
    "argmin",
    "array",
    "assume_unchanged",
    "attention",
    "avg_pool2d",
    "backend",
    "batch_norm",
    "bf16",
    "bit_and",
    "bit_not",
    "bit_or",
    "bit_xor",
    "broadcast_to",
    "cast",
    "ceil",
    "cf32",
    "cf64",
    "check_rule",
    "clamp",
    "composite",
    "concat",
    "cond",
    "constant",
    "conv2d",
    "cos",
    "cross_entropy",
    "cumsum",
    "custom_call",
    "depthwise_conv2d",
    "dequantize",
    "dim",
    "div",
    "dot_general",
    "dynamic_slice",
    "dynamic_update_slice",
    "eager",
    "elementwise",
    "embedding",
    "equal",
    "erf",
    "exp",
    "extract_patches",
    "f16",
    "f32",
    "f64",
    "floor",
    "floor_divide",
    "fp8_e4m3",
    "fp8_e5m2",
    "full",
    "gather",
    "gelu",
    "gelu_quick",
    "gelu_tanh",
    "global_avg_pool2d",
    "greater",
    "greater_equal",
    "i1",
    "implementation",
    "iota",
    "is_finite",
    "jit",
    "kernel",
    "layer_norm",
    "less",
    "less_equal",
    "linear",
    "log",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "matmul",
    "max_pool2d",
    "maximum",
    "mean",
    "minimum",
    "mul",
    "neg",
    "not_equal",
    "overrides",
    "pad",
    "parse",
    "pow",
    "primitive",
    "quantize",
    "reciprocal",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reduce_window",
    "register_backend",
    "relu",
    "relu6",
    "remainder",
    "requantize",
    "reshape",
    "rewrite",
    "rms_norm",
    "rng_normal",
    "rng_uniform",
    "rotary",
    "round",
    "rsqrt",
    "scan",
    "scatter_add",
    "scatter_reduce",
    "segment_reduce",
    "select",
    "shift_left",
    "shift_right",
    "si4",
    "si8",
    "si16",
    "si32",
    "si64",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "slice",
    "softmax",
    "sort",
    "sqrt",
    "stack",
    "stop_gradient",
    "sub",
    "take",
    "tanh",
    "tensor",
    "tile",
    "top_k",
    "transpose",
    "ui4",
    "ui8",
    "ui16",
    "ui32",
    "ui64",
    "unregister",
    "var",
    "while_loop",
]


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


def __getattr__(name: str) -> Any:
    """The op called ``name``."""
    if name in OPS:
        return OPS[name]
    if name in _RENAMED:
        return renamed(__name__, name, _RENAMED)
    raise AttributeError(f"ptir has no op or name {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *OPS})
