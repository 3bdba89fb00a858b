"""A program run op by op through torch; ops without a counterpart there by their NumPy meaning.

Narrow floats are widened to f32 and rounded once, as NumPy's meaning does. torch is optional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from string import ascii_letters
from typing import Any, cast

import numpy as np

from gptrs.extras import needed_for
from gptrs.ir.operands import map_operand, rounded, several
from gptrs.ir.operands import widened as computed_in
from gptrs.ir.ops.control import Control
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.sizes import apply, filled
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array

_SAME_NAME = frozenset(
    [
        *("abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos"),
        *("cosh", "erf", "exp", "exp2", "expm1", "floor", "hypot", "log", "log10", "log1p", "log2"),
        *("maximum", "minimum", "mul", "neg", "pow", "reciprocal", "round", "rsqrt", "sigmoid"),
        *("sin", "sinh", "sqrt", "sub", "tan", "tanh"),
    ]
)
"""Functions of torch with the name and the operands of an op on floats."""


def through_torch(
    program: Program, given: Sequence[Array | Parameter], sizes: Mapping[str, int]
) -> tuple[Array, ...]:
    """The results of ``program``. Raises `MissingPackageError` where torch is not installed."""
    with needed_for("comparing with torch"):
        import torch  # optional, and slow to import

    program = cast("Program", filled(program, sizes)) if sizes else program
    arrays = [x.numpy() if isinstance(x, Parameter) else x for x in given]
    values: dict[Value, Array] = dict(zip(program.params, arrays, strict=True))
    with torch.no_grad():
        for instruction in program.body:
            operands = [_replaced(o, values) for o in instruction.operands]
            found = _by_torch(torch, instruction, operands)
            if found is None:
                found = apply(instruction, operands, instruction.attrs)
            values |= zip(instruction.results, found, strict=True)
    return tuple(np.array(values[result]) for result in program.results)


def has_counterpart(instruction: Instruction) -> bool:
    """Whether torch computes it."""
    name = instruction.op.name
    is_float = all(result.type.dtype.is_float for result in instruction.results)
    return is_float and (name in _SAME_NAME or name in _COUNTERPARTS)


def _by_torch(
    torch: Any, instruction: Instruction, operands: Sequence[Any]
) -> tuple[Array, ...] | None:
    if isinstance(instruction.op, Control) or not has_counterpart(instruction):
        return None
    wide = [map_operand(computed_in, operand) for operand in operands]
    tensors = [map_operand(partial(_tensor, torch), operand) for operand in wide]
    name = instruction.op.name
    if name in _SAME_NAME:
        like = next(o for o in tensors if isinstance(o, torch.Tensor))
        given = [o if isinstance(o, torch.Tensor) else like.new_tensor(o) for o in tensors]
        found = getattr(torch, name)(*given)
    else:
        found = _COUNTERPARTS[name](torch, *tensors, **instruction.attrs)
    pairs = zip(several(found), instruction.results, strict=True)
    return tuple(rounded(tensor.numpy(), result.type) for tensor, result in pairs)


def _tensor(torch: Any, operand: Any) -> Any:
    if not isinstance(operand, np.ndarray):
        return operand
    return torch.from_numpy(np.array(cast("Array", operand), order="C"))


def _replaced(operand: Any, values: Mapping[Value, Array]) -> Any:
    return map_operand(lambda o: values[o] if isinstance(o, Value) else o, operand)


def _norm(torch: Any, x: Any, weight: Any = None, bias: Any = None, *, eps: float) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def _linear(torch: Any, x: Any, weight: Any, bias: Any = None, *, transposed: bool) -> Any:
    return torch.nn.functional.linear(x, weight.mT if transposed else weight, bias)


def _sum(torch: Any, x: Any, *, axes: tuple[int, ...], keepdims: bool, **_: Any) -> Any:
    return x.sum(axes, keepdim=keepdims) if axes else x.clone()


def _extreme(name: str) -> Callable[..., Any]:
    def extreme(torch: Any, x: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
        return getattr(torch, name)(x, axes, keepdim=keepdims) if axes else x.clone()

    return extreme


def _dot(torch: Any, lhs: Any, rhs: Any, **attrs: Any) -> Any:
    """Batch axes, then what remains of each operand, as an einsum."""
    batch, contract = (
        (attrs[f"{what}_lhs"], attrs[f"{what}_rhs"]) for what in ("batch", "contract")
    )
    letters = iter(ascii_letters)
    left, right = [""] * lhs.ndim, [""] * rhs.ndim
    for pairs in (batch, contract):
        for i, j in zip(*pairs, strict=True):
            left[i] = right[j] = next(letters)
    shared = "".join(left[i] for i in batch[0])
    rest = ""
    for part in (left, right):
        for axis, letter in enumerate(part):
            if not letter:
                part[axis] = next(letters)
                rest += part[axis]
    return torch.einsum(f"{''.join(left)},{''.join(right)}->{shared}{rest}", lhs, rhs)


def _activation(name: str, **options: Any) -> Callable[..., Any]:
    def activation(torch: Any, x: Any) -> Any:
        return getattr(torch.nn.functional, name)(x, **options)

    return activation


def _function(name: str) -> Callable[..., Any]:
    def function(torch: Any, *operands: Any) -> Any:
        return getattr(torch, name)(*operands)

    return function


def _along(name: str) -> Callable[..., Any]:
    def along(torch: Any, x: Any, *, axis: int) -> Any:
        return getattr(torch, name)(x, axis)

    return along


_COUNTERPARTS: dict[str, Callable[..., Any]] = {
    "div": _function("div"),
    "dot_general": _dot,
    "gelu": _activation("gelu"),
    "gelu_tanh": _activation("gelu", approximate="tanh"),
    "layer_norm": _norm,
    "linear": _linear,
    "log_softmax": _along("log_softmax"),
    "matmul": _function("matmul"),
    "reduce_max": _extreme("amax"),
    "reduce_min": _extreme("amin"),
    "reduce_sum": _sum,
    "relu": _activation("relu"),
    "silu": _activation("silu"),
    "softmax": _along("softmax"),
}
"""Counterparts that take the operands and attributes of the op."""
