"""Functions of numbers for loops that LLVM vectorises: an LLVM function on scalars, and its
variants on vectors.

exp, log, tanh, erf and the like have no branch. They are inlined, and become vectors with the loop
around them. sin, cos and tan take a branch where |x| is large, pow where its numbers are unusual,
remainders and floored quotients where the quotient is large or infinite. Such a function is called,
and for each number of lanes the module has a variant, which the attribute
``vector-function-abi-variant`` names:

    scalar.sin64(x):     near |x| ≤ limit: the formula; else the C library's
    vector.sin64.8(x):   y = the formula on all lanes
                         if any lane is beyond: y[lane] = the C library's for those lanes

LLVM's loop vectoriser calls the variant that has as many lanes as its vectors;
`gptrs.kernels.compiler.codegen` keeps the variants until then and inlines those that are called. An
element has the same bits by each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels import (
    exponentials,
    float_division,
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

_OF_TWO = frozenset(["atan2", "floor_divide", "hypot", "pow", "remainder"])
_LANES = (2, 4, 8, 16)
_RARELY = (1, 1000)
"""How often a branch is taken and not: registers are kept for the other one."""

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
    **{f"{name}32": (F32, formula) for name, formula in _OF_BOTH_TYPES.items()},
    **{f"{name}64": (F64, formula) for name, formula in _OF_BOTH_TYPES.items()},
}
INLINED = frozenset(_DIRECT)
"""The functions without a branch."""


class _Branching(NamedTuple):
    """A function that takes a branch where its formula does not hold."""

    kind: Any
    near: Callable[..., tuple[Any, Any]]
    """The formula's result, and where it holds."""
    far: Callable[..., Any]
    """Of the operands, the formula's result and where it does not hold: the right one."""


def _trigonometric(kind: Any, formula: Formula, library: str) -> _Branching:
    """``library`` is the C library's function on f64."""

    def near(f: Builder, x: Any) -> tuple[Any, Any]:
        return formula(f, x), trigonometry.moderate(f, x)

    def far(f: Builder, operands: Sequence[Any], result: Any, beyond: Any) -> Any:
        by_library = _lane_by_lane(f, partial(_by_library, f, library), operands)
        return f.select(beyond, by_library, result)

    return _Branching(kind, near, far)


def _division(kind: Any, formula: Formula) -> _Branching:
    """``formula`` is one of fmod(x, y)."""

    def near(f: Builder, x: Any, y: Any) -> tuple[Any, Any]:
        modulus, holds = float_division.modulus(f, x, y)
        return formula(f, x, y, modulus), holds

    def far(f: Builder, operands: Sequence[Any], result: Any, beyond: Any) -> Any:
        modulus = _lane_by_lane(f, f.frem, operands)
        return f.select(beyond, formula(f, *operands, modulus), result)

    return _Branching(kind, near, far)


def _lane_by_lane(f: Builder, function: Formula, operands: Sequence[Any]) -> Any:
    """A function of scalars, of each lane of vectors; of scalars, itself."""
    kind = operands[0].type
    if not isinstance(kind, ir.VectorType):
        return function(*operands)
    none = ir.Constant(kind, ir.Undefined)
    with f.loop(i64(0), i64(kind.count), carried=[none]) as lane:
        one = function(*(f.extract_element(x, lane.index) for x in operands))
        lane.values = [f.insert_element(lane.values[0], one, lane.index)]
    return lane.values[0]


def _power(kind: Any, usual: Callable[..., tuple[Any, Any]], formula: Formula) -> _Branching:
    def far(f: Builder, operands: Sequence[Any], result: Any, beyond: Any) -> Any:
        return f.select(beyond, formula(f, *operands), result)

    return _Branching(kind, usual, far)


_BRANCHING: dict[str, _Branching] = {
    "sin32": _trigonometric(F32, trigonometry.sin, "sin"),
    "cos32": _trigonometric(F32, trigonometry.cos, "cos"),
    "sin64": _trigonometric(F64, trigonometry.sin, "sin"),
    "cos64": _trigonometric(F64, trigonometry.cos, "cos"),
    "tan32": _trigonometric(F32, trigonometry.tan, "tan"),
    "tan64": _trigonometric(F64, trigonometry.tan, "tan"),
    "remainder32": _division(F32, float_division.remainder),
    "remainder64": _division(F64, float_division.remainder),
    "floor_divide32": _division(F32, float_division.quotient),
    "floor_divide64": _division(F64, float_division.quotient),
    "pow32": _power(F32, vector_power.usual_power_of_floats, vector_power.power_of_floats),
    "pow64": _power(F64, vector_power.usual_power_of_doubles, vector_power.power_of_doubles),
}

NAMES: dict[str, Any] = {
    **{name: kind for name, (kind, _) in _DIRECT.items()},
    **{name: branching.kind for name, branching in _BRANCHING.items()},
}
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
    made.linkage = "linkonce_odr"
    made.attributes.add("alwaysinline")
    f = Builder(made.append_basic_block("entry"))
    f.ret(formula(f, *made.args))
    return made


def _branching(module: Any, name: str) -> Any:
    kind, count = _BRANCHING[name].kind, operands(name)
    made = ir.Function(module, ir.FunctionType(kind, [kind] * count), f"scalar.{name}")
    made.linkage = "linkonce_odr"
    _add_attributes(made, "noinline", "readnone", "nounwind", "willreturn", _abi_of(name))
    _write_branches(made, name)
    for lanes in _LANES:
        vector = ir.VectorType(kind, lanes)
        type_of = ir.FunctionType(vector, [vector] * count)
        variant = ir.Function(module, type_of, f"{VARIANT}{name}.{lanes}")
        variant.linkage = "weak_odr"  # a function that is not called yet is kept
        _add_attributes(variant, "alwaysinline", "readnone", "nounwind", "willreturn")
        _write_branches(variant, name)
    return made


def _write_branches(function: Any, name: str) -> None:
    """The body of a function on vectors or scalars: the formula, then what is beyond it."""
    f = Builder(function.append_basic_block("entry"))
    near, holds = _BRANCHING[name].near(f, *function.args)
    beyond = any_beyond = f.not_(holds)
    if isinstance(beyond.type, ir.VectorType):
        reduction = f"vector.reduce.or.v{beyond.type.count}i1"
        any_beyond = f.call(f.intrinsic(reduction, I1, beyond.type), [beyond])
    entry, block, end = f.block, f.append_basic_block("far"), f.append_basic_block("end")
    f.cbranch(any_beyond, block, end).set_weights(_RARELY)
    f.position_at_end(block)
    far = _BRANCHING[name].far(f, function.args, near, beyond)
    last = f.block
    f.branch(end)
    f.position_at_end(end)
    result = f.phi(near.type)
    result.add_incoming(near, entry)
    result.add_incoming(far, last)
    f.ret(result)


def _by_library(f: Builder, name: str, x: Any) -> Any:
    """A function of the C library on f64, of a scalar."""
    module, type_of = f.module, ir.FunctionType(F64, [F64])
    function = module.globals.get(name) or ir.Function(module, type_of, name)
    if x.type == F64:
        return f.call(function, [x])
    return f.fptrunc(f.call(function, [f.fpext(x, F64)]), x.type)


def _abi_of(name: str) -> str:
    """The attribute that names the variants of a function."""
    each = "v" * operands(name)
    variants = [f"_ZGV_LLVM_N{n}{each}_scalar.{name}({VARIANT}{name}.{n})" for n in _LANES]
    return f'"vector-function-abi-variant"="{",".join(variants)}"'


def _add_attributes(function: Any, *attributes: str) -> None:
    """llvmlite's own method knows no attribute with a value."""
    set[str].update(function.attributes, attributes)
