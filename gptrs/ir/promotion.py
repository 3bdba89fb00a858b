"""Type promotion: the dtype that operands of different dtypes share, and their casts to it.

| operands | the dtype they share |
|---|---|
| bool and any other | the other |
| integers, both signed or both unsigned | the wider |
| signed and unsigned integer | the narrowest signed one that holds both; with ui64 f32 |
| integer and float or complex | the float or complex |
| floats | the wider; f16 and bf16 give f32; fp8 and any other float share none |
| float and complex | cf64 where one of them has 64 bits a part, else cf32 |
| Python number | the dtype of the tensors, where it is of the same or a higher kind |
| bool tensor and Python int | si64 |
| bool or integer tensor and Python float (complex) | f32 (cf32) |

The rows about one kind are those of the array API standard, the others those of JAX and torch. A
weak tensor (made of a Python number) counts as a Python number. The result does not depend on the
order of the operands. `Op.prepare` records the casts; nothing is promoted where `is_strict`:
inside ``ptir.jit(strict_dtypes=True)`` or under ``GPTRS_STRICT_DTYPES=1``, where type rules raise
`DTypeError` as they do where there is no common dtype.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import numpy as np

from gptrs import settings
from gptrs.ir.dims import Dim
from gptrs.ir.dispatch import OPS
from gptrs.ir.operands import map_operand, tensors_in
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, KIND_RANK, DType, Kind, cf32, cf64, f32, i1, si64

NUMBERS = (bool, int, float, complex, Dim)
DEFAULT_FLOAT, DEFAULT_INTEGER, DEFAULT_COMPLEX = f32, si64, cf32
DEFAULTS: dict[Kind, DType] = {
    "bool": i1,
    "int": DEFAULT_INTEGER,
    "float": DEFAULT_FLOAT,
    "complex": DEFAULT_COMPLEX,
}
"""The dtype of a Python number that stands alone, by its kind."""

_strict: ContextVar[bool | None] = ContextVar("gptrs_strict_dtypes", default=None)


def is_strict() -> bool:
    """Whether operands of different dtypes are an error here."""
    chosen = _strict.get()
    return settings.strict_dtypes() if chosen is None else chosen


@contextmanager
def strictness(strict: bool | None) -> Generator[None]:
    """Whether operands of different dtypes are an error inside the block; None leaves it to the
    setting."""
    token = _strict.set(strict)
    try:
        yield
    finally:
        _strict.reset(token)


def promoted_dtype(dtypes: Iterable[DType]) -> DType | None:
    """The dtype that arrays of ``dtypes`` share; None where there is none."""
    distinct = dict.fromkeys(dtypes)
    if len(distinct) == 1:
        return next(iter(distinct))
    kinds = {dtype.kind for dtype in distinct}
    if "complex" in kinds:
        wide = any(d.bits >= (128 if d.is_complex else 64) for d in distinct if not d.is_integer)
        return cf64 if wide else cf32
    if "float" in kinds:
        return _common_float([d for d in distinct if d.is_float])
    return _common_integer([d for d in distinct if d.is_integer])


def _common_float(dtypes: Sequence[DType]) -> DType | None:
    if len(dtypes) == 1:
        return dtypes[0]
    if any(dtype.bits < 16 for dtype in dtypes):
        return None  # as in JAX: no float holds both formats of 8 bits, and wider ones hide a cast
    widest = max(dtypes, key=lambda dtype: dtype.bits)
    return f32 if widest.bits == 16 else widest


def _common_integer(dtypes: Sequence[DType]) -> DType:
    signed = max((d.bits for d in dtypes if d.kind == "int"), default=0)
    unsigned = max((d.bits for d in dtypes if d.kind == "uint"), default=0)
    if not signed:
        return DTYPES[f"ui{unsigned}"]
    bits = max(signed, 2 * unsigned)
    return DTYPES[f"si{bits}"] if bits <= 64 else DEFAULT_FLOAT


def kind_of(scalar: object) -> Kind:
    """The kind of a Python number or a symbolic size."""
    if isinstance(scalar, bool):
        return "bool"
    if isinstance(scalar, int | Dim):
        return "int"
    return "float" if isinstance(scalar, float) else "complex"


def weak_tensor(number: bool | int | float | complex | Dim) -> Tensor:
    """A Python number as a Tensor of rank 0 that takes the dtype of other operands."""
    dtype = DEFAULTS[kind_of(number)]
    if isinstance(number, Dim):
        tensor: Tensor = OPS["add"](OPS["full"](shape=(), value=0, dtype=dtype), number)
        tensor.weak = True
        return tensor
    return Tensor.of_array(np.asarray(number, dtype.numpy), weak=True)


def with_scalar(dtype: DType, kind: Kind) -> DType:
    """The dtype of an array of ``dtype`` combined with a Python number of ``kind``."""
    if KIND_RANK[kind] <= KIND_RANK[dtype.kind]:
        return dtype
    if kind == "int":
        return DEFAULT_INTEGER
    if kind == "float":
        return DEFAULT_FLOAT
    return cf64 if dtype.is_float and dtype.bits == 64 else cf32


def result_dtype(operands: Iterable[Any]) -> DType | None:
    """The dtype that tensors, dtypes and Python numbers share; None where there is none.

    Numbers alone have the default dtype of their kind.
    """
    strong: list[DType] = []
    weak: list[DType] = []
    kinds: list[Kind] = []
    for operand in operands:
        if isinstance(operand, DType):
            strong.append(operand)
        elif isinstance(operand, Tensor):
            (weak if operand.weak else strong).append(operand.dtype)
        else:
            kinds.append(kind_of(operand))
    if strong:
        for dtype in weak:
            kinds.append(dtype.kind)
    base = strong or weak
    shared = promoted_dtype(base) if base else i1
    for kind in kinds:
        if shared is not None:
            shared = with_scalar(shared, kind)
    return shared


def promote(operands: tuple[Any, ...], kinds: Sequence[Kind] = ()) -> tuple[Any, ...]:
    """``operands`` (tensors, numbers, None and tuples of them) in the dtype that they share.

    With ``kinds`` integers and bools become f32 for an op that takes floats alone. What shares no
    dtype is returned as it is: the type rule says what is wrong.
    """
    leaves = list(_leaves(operands))
    dtype = result_dtype(leaves) if any(isinstance(o, Tensor) for o in leaves) else None
    if dtype is None:
        return operands
    only_floats = "float" in kinds and "int" not in kinds and "uint" not in kinds
    if only_floats and dtype.kind in ("bool", "int", "uint"):
        dtype = DEFAULT_FLOAT

    def in_dtype(operand: Any) -> Any:
        if isinstance(operand, Tensor):
            return operand if operand.dtype is dtype else OPS["cast"](operand, dtype=dtype)
        is_number = isinstance(operand, bool) and not dtype.is_bool
        return int(operand) if is_number else operand

    return cast("tuple[Any, ...]", map_operand(in_dtype, operands))


def settle_weak(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Without promotion: weak tensors take the dtype of the others if it can hold them."""
    tensors = tensors_in(operands)
    if not any(t.weak for t in tensors):
        return operands
    leading = [t for t in tensors if not t.weak] or tensors
    dtype = max((t.dtype for t in leading), key=lambda dtype: KIND_RANK[dtype.kind])
    return tuple(
        OPS["cast"](o, dtype=dtype)
        if isinstance(o, Tensor)
        and o.weak
        and o.dtype is not dtype
        and KIND_RANK[o.dtype.kind] <= KIND_RANK[dtype.kind]
        else o
        for o in operands
    )


def _leaves(operand: Any) -> Iterable[Any]:
    if isinstance(operand, tuple):
        for part in cast("tuple[Any, ...]", operand):
            yield from _leaves(part)
    elif operand is not None:
        yield operand
