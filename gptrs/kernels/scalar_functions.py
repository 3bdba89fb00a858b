"""Functions of one number for loops that LLVM vectorises: an LLVM function on a scalar, and its
variants on vectors.

exp, log, tanh, erf and pow have no branch. They are inlined, and become vectors with the loop
around them. sin and cos take a branch where |x| is large. Such a function is called, and for each
number of lanes the module has a variant, which the attribute ``vector-function-abi-variant`` names:

    scalar.sin64(x):     near |x| ≤ limit: the formula; else the C library's
    vector.sin64.8(x):   y = the formula on all lanes
                         if any lane is beyond: y[lane] = the C library's for those lanes

LLVM's loop vectoriser calls the variant that has as many lanes as its vectors;
`gptrs.kernels.compiler.codegen` keeps the variants until then and inlines those that are called. An
element has the same bits by each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from gptrs.kernels import (
    exponentials,
    inverse_trigonometry,
    logarithms,
    roots,
    trigonometry,
    vector_math,
    vector_math64,
    vector_power,
)
from gptrs.kernels.compiler.codegen import VARIANT
from gptrs.kernels.compiler.ir_builder import F32, F64, I1, Builder, i64

_OF_TWO = frozenset(["atan2", "hypot", "pow"])
_LANES = (2, 4, 8, 16)

Formula = Callable[..., Any]

_OF_BOTH_TYPES: dict[str, Formula] = {
    "expm1": exponentials.expm1,
    "exp2": exponentials.exp2,
    "sinh": exponentials.sinh,
    "cosh": exponentials.cosh,
    "log1p": logarithms.log1p,
    "log2": logarithms.log2,
    "log10": logarithms.log10,
    "asinh": logarithms.asinh,
    "acosh": logarithms.acosh,
    "atanh": logarithms.atanh,
    "asin": inverse_trigonometry.asin,
    "acos": inverse_trigonometry.acos,
    "atan": inverse_trigonometry.atan,
    "atan2": inverse_trigonometry.atan2,
    "hypot": roots.hypot,
    "cbrt": roots.cbrt,
}
"""Formulas that serve f32 and f64."""
_DIRECT: dict[str, tuple[Any, Formula]] = {
    "exp32": (F32, vector_math.exp),
    "log32": (F32, vector_math.log),
    "tanh32": (F32, vector_math.tanh),
    "erf32": (F32, vector_math.erf),
    "exp64": (F64, vector_math64.exp),
    "log64": (F64, vector_math64.log),
    "tanh64": (F64, vector_math64.tanh),
    "erf64": (F64, vector_math64.erf),
    "pow64": (F64, vector_power.power_of_doubles),
    "pow32": (F32, vector_power.power_of_floats),
    **{f"{name}32": (F32, formula) for name, formula in _OF_BOTH_TYPES.items()},
    **{f"{name}64": (F64, formula) for name, formula in _OF_BOTH_TYPES.items()},
}
_BRANCHING: dict[str, tuple[Any, Formula, str]] = {
    "sin32": (F32, trigonometry.sin, "sin"),
    "cos32": (F32, trigonometry.cos, "cos"),
    "sin64": (F64, trigonometry.sin, "sin"),
    "cos64": (F64, trigonometry.cos, "cos"),
    "tan32": (F32, trigonometry.tan, "tan"),
    "tan64": (F64, trigonometry.tan, "tan"),
}
"""By name: the type, the formula for moderate numbers, the C library's function on f64."""

NAMES: dict[str, Any] = {name: kind for name, (kind, *_) in (_DIRECT | _BRANCHING).items()}
"""The functions, by name: their type."""


def operands(name: str) -> int:
    """How many numbers the function takes."""
    return 2 if name[:-2] in _OF_TWO else 1


def scalar_function(module: Any, name: str) -> Any:
    """One of `NAMES` as an LLVM function in ``module``.

    It is written at the first request. Its text is the same for all vector levels.
    """
    if (found := module.globals.get(f"scalar.{name}")) is not None:  # no kernel is called so
        return found
    if name in _BRANCHING:
        return _branching(module, name)
    kind, formula = _DIRECT[name]
    made = ir.Function(module, ir.FunctionType(kind, [kind] * operands(name)), f"scalar.{name}")
    made.linkage = "internal"
    made.attributes.add("alwaysinline")
    f = Builder(made.append_basic_block("entry"))
    f.ret(formula(f, *made.args))
    return made


def _branching(module: Any, name: str) -> Any:
    kind, formula, library = _BRANCHING[name]
    made = ir.Function(module, ir.FunctionType(kind, [kind]), f"scalar.{name}")
    made.linkage = "linkonce_odr"
    _add_attributes(made, "noinline", "readnone", "nounwind", "willreturn", _abi_of(name))
    f = Builder(made.append_basic_block("entry"))
    (x,) = made.args
    with f.if_then(f.not_(trigonometry.moderate(f, x))):
        f.ret(_by_library(f, library, x))
    f.ret(formula(f, x))
    for lanes in _LANES:
        _variant(module, name, lanes)
    return made


def _by_library(f: Builder, name: str, x: Any) -> Any:
    """A function of the C library on f64, of a scalar."""
    module, type_of = f.module, ir.FunctionType(F64, [F64])
    function = module.globals.get(name) or ir.Function(module, type_of, name)
    if x.type == F64:
        return f.call(function, [x])
    return f.fptrunc(f.call(function, [f.fpext(x, F64)]), x.type)


def _variant(module: Any, name: str, lanes: int) -> None:
    """The function on vectors."""
    kind, formula, library = _BRANCHING[name]
    vector = ir.VectorType(kind, lanes)
    made = ir.Function(module, ir.FunctionType(vector, [vector]), f"{VARIANT}{name}.{lanes}")
    made.linkage = "weak_odr"  # a function that is not called yet is kept
    _add_attributes(made, "alwaysinline", "readnone", "nounwind", "willreturn")
    f = Builder(made.append_basic_block("entry"))
    (x,) = made.args
    y = formula(f, x)
    far = f.not_(trigonometry.moderate(f, x))
    any_far = f.call(f.intrinsic(f"vector.reduce.or.v{lanes}i1", I1, far.type), [far])
    entry, block, end = f.block, f.append_basic_block("far"), f.append_basic_block("end")
    f.cbranch(any_far, block, end)
    f.position_at_end(block)
    with f.loop(i64(0), i64(lanes), carried=[y]) as lane:
        near = f.extract_element(y, lane.index)
        one = _by_library(f, library, f.extract_element(x, lane.index))
        one = f.select(f.extract_element(far, lane.index), one, near)
        lane.values = [f.insert_element(lane.values[0], one, lane.index)]
    slow = f.block
    f.branch(end)
    f.position_at_end(end)
    result = f.phi(vector)
    result.add_incoming(y, entry)
    result.add_incoming(lane.values[0], slow)
    f.ret(result)


def _abi_of(name: str) -> str:
    """The attribute that names the variants of a function."""
    variants = [f"_ZGV_LLVM_N{n}v_scalar.{name}({VARIANT}{name}.{n})" for n in _LANES]
    return f'"vector-function-abi-variant"="{",".join(variants)}"'


def _add_attributes(function: Any, *attributes: str) -> None:
    """llvmlite's own method knows no attribute with a value."""
    set[str].update(function.attributes, attributes)
