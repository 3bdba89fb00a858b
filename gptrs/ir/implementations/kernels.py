"""``ptir.kernel``: a Numba function as the kernel of an op, where it may be used.

A kernel takes arrays and fills arrays. It stands in the place that a backend's own kernel has: an
op with one that fits stays whole, and ``force=portable`` in `overrides` opens a composite
nevertheless. Backends that run kernels ask `kernel_for`; eager mode, the reference backend and
precise programs run the NumPy meaning, or the definition.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from gptrs.errors import ArgumentError, DimError
from gptrs.ir.dispatch import OPS
from gptrs.ir.implementation import KERNEL, Implementation
from gptrs.ir.implementations.registry import check_predicate
from gptrs.ir.kinds import OpKind
from gptrs.ir.op import Op
from gptrs.ir.program import Instruction
from gptrs.ir.registry import changed

F = TypeVar("F", bound=Callable[..., Any])
_DTYPES = frozenset(
    [
        *("i1", "si8", "ui8", "si16", "ui16", "si32", "ui32", "si64", "ui64"),
        *("f32", "f64", "cf32", "cf64"),
    ]
)
"""The dtypes of arrays that Numba knows."""


def kernel(op: Op[..., Any], *, when: Callable[..., bool] | None = None) -> Callable[[F], F]:
    """Register the decorated Numba function (or a plain one, which is compiled) as a kernel of
    ``op``.

    It takes, by name, operands as arrays that it must not write, attributes, and ``out``, an array
    of the result's type whose elements it sets; of an op with several results ``out0``, ``out1``...
    ``when(x, axis)`` says for which operands (given as `Type`, ``None`` where absent) and
    attributes it may be used; it takes those that it names. Arrays of bf16, f16, fp8 and of 4 bits
    are never given. The kernel that was registered first, of those that fit, is used; one that is
    registered again at the same place replaces itself.

    Raises `ArgumentError` for parameters that the op does not have.
    """
    if not isinstance(op, Op) or op.kind in (OpKind.CONTROL, OpKind.CALL):  # pyright: ignore[reportUnnecessaryIsInstance]
        fix = "ptir.kernel(ptir.softmax)"
        raise ArgumentError(f"ptir.kernel takes an op, found {op!r}", fix=fix)

    def register(function: F) -> F:
        plain = python_function(function)
        names = parameters_of(function)
        known = {*op.operand_names, *op.attr_defaults}
        unknown = [n for n in names if n not in known and not _is_result(n)]
        if unknown or not any(map(_is_result, names)):
            raise ArgumentError(
                f"kernel {plain.__name__} of {op.name} takes ({', '.join(names)})",
                fix=f"name operands and attributes ({', '.join(known)}), and the result: out",
            )
        if when is not None:
            check_predicate(op, when, KERNEL)
        made = Implementation(KERNEL, function, when, 0)
        others = [k for k in op.kernels if _place(k.function) != _place(function)]
        op.kernels = (*others, made)
        changed()
        return function

    return register


def remove_kernel(function: Callable[..., Any]) -> None:
    """Have no op use the kernel ``function`` any longer. Raises `ArgumentError` if none does."""
    ops = [op for op in OPS.values() if any(k.function is function for k in op.kernels)]
    if not ops:
        raise ArgumentError(f"{function!r} is registered as no kernel")
    for op in ops:
        op.kernels = tuple(k for k in op.kernels if k.function is not function)
    changed()


def kernel_for(instruction: Instruction) -> Implementation | None:
    """The user's kernel that is to compute ``instruction``."""
    op = instruction.op
    if not op.kernels or not isinstance(op, Op):
        return None
    values = (*instruction.values(), *instruction.results)
    if any(value.type.dtype.name not in _DTYPES for value in values):
        return None
    given = op.named(instruction.operands, instruction.attrs)
    return next((each for each in op.kernels if _fits(each, given)), None)


def _fits(each: Implementation, given: dict[str, Any]) -> bool:
    try:
        return each.fits(given)
    except DimError:  # the program runs at all sizes
        return False


def python_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a function of Numba was compiled from; another function itself."""
    return getattr(function, "py_func", function)


def code_text(function: Callable[..., Any]) -> str:
    """What a kernel does, as a text by which it is told from others."""
    code = python_function(function).__code__
    return f"{code.co_code.hex()} {code.co_consts} {code.co_names}"


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters of a kernel."""
    return tuple(inspect.signature(python_function(function)).parameters)


def _is_result(name: str) -> bool:
    return name == "out" or (name.startswith("out") and name[3:].isdigit())


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    plain = python_function(function)
    return plain.__module__, plain.__qualname__
