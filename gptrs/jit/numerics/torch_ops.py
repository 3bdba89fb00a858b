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
from gptrs.ir.ops import composite, contract, elementary, elementwise, reduce
from gptrs.ir.ops.control import Control
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.sizes import apply, filled
from gptrs.ir.types import Array


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
    is_float = all(result.type.dtype.is_float for result in instruction.results)
    return is_float and instruction.op in _COUNTERPARTS


def _by_torch(
    torch: Any, instruction: Instruction, operands: Sequence[Any]
) -> tuple[Array, ...] | None:
    if isinstance(instruction.op, Control) or not has_counterpart(instruction):
        return None
    wide = [map_operand(computed_in, operand) for operand in operands]
    tensors = [map_operand(partial(_tensor, torch), operand) for operand in wide]
    found = _COUNTERPARTS[instruction.op](torch, *tensors, **instruction.attrs)
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
    """A function of torch on the operands, numbers among them."""

    def function(torch: Any, *operands: Any) -> Any:
        like = next(o for o in operands if isinstance(o, torch.Tensor))
        given = [o if isinstance(o, torch.Tensor) else like.new_tensor(o) for o in operands]
        return getattr(torch, name)(*given)

    return function


def _along(name: str) -> Callable[..., Any]:
    def along(torch: Any, x: Any, *, axis: int) -> Any:
        return getattr(torch, name)(x, axis)

    return along


_SAME_NAME: tuple[Any, ...] = (
    *(elementwise.abs_, elementwise.add, elementwise.ceil, elementwise.cos, elementwise.div),
    *(elementwise.erf, elementwise.exp, elementwise.floor, elementwise.log, elementwise.maximum),
    *(elementwise.minimum, elementwise.mul, elementwise.neg, elementwise.pow_),
    *(elementwise.reciprocal, elementwise.round_, elementwise.rsqrt, elementwise.sin),
    *(elementwise.sqrt, elementwise.sub, elementwise.tanh),
    *(elementary.acos, elementary.acosh, elementary.asin, elementary.asinh, elementary.atan),
    *(elementary.atan2, elementary.atanh, elementary.cosh, elementary.exp2, elementary.expm1),
    *(elementary.hypot, elementary.log10, elementary.log1p, elementary.log2, elementary.sinh),
    *(elementary.tan, composite.matmul, composite.sigmoid),
)
"""Ops whose name and operands on floats are those of a function of torch."""
_COUNTERPARTS: dict[Any, Callable[..., Any]] = {
    **{op: _function(op.name) for op in _SAME_NAME},
    contract.dot_general: _dot,
    composite.gelu: _activation("gelu"),
    composite.gelu_tanh: _activation("gelu", approximate="tanh"),
    composite.layer_norm: _norm,
    composite.linear: _linear,
    composite.log_softmax: _along("log_softmax"),
    reduce.reduce_max: _extreme("amax"),
    reduce.reduce_min: _extreme("amin"),
    reduce.reduce_sum: _sum,
    composite.relu: _activation("relu"),
    composite.silu: _activation("silu"),
    composite.softmax: _along("softmax"),
}
"""Counterparts take the operands and attributes of the op."""
