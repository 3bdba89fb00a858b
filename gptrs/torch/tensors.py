"""torch's tensors as arrays and back, without copies; torch's types and sizes in PTIR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import torch

from gptrs.errors import DimError, DTypeError
from gptrs.ir.dims import DimLike, dim
from gptrs.ir.types import Array, DType, Type, as_dtype

Sizes = Mapping[str, int]
"""Numbers in place of torch's symbols."""
_torch: Any = torch  # its stubs leave much out
_BITS = {torch.bfloat16: (torch.int16, ml_dtypes.bfloat16)}
_FROM_BITS = {np.dtype(ml_dtypes.bfloat16): (np.int16, torch.bfloat16)}


def array_of(tensor: torch.Tensor) -> Array:
    """The memory of ``tensor`` as an array; where it is not one, its elements. Raises `DTypeError`
    for a dtype that arrays have not."""
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    try:
        if (bits := _BITS.get(tensor.dtype)) is not None:
            return tensor.view(bits[0]).numpy().view(bits[1])
        return tensor.numpy()
    except TypeError:
        raise DTypeError(f"arrays have no {tensor.dtype}") from None
    except RuntimeError:
        if not _torch._is_zerotensor(tensor):  # zeros without memory, as gradients may be
            raise
        return array_of(_torch.zeros(tensor.shape, dtype=tensor.dtype))


def tensor_of(array: Array) -> torch.Tensor:
    """``array`` as a tensor of the same memory."""
    if (bits := _FROM_BITS.get(array.dtype)) is not None:
        return _torch.from_numpy(array.view(bits[0])).view(bits[1])
    return _torch.from_numpy(array)


def dtype_of(dtype: torch.dtype) -> DType:
    """The dtype of PTIR. Raises `DTypeError` for one that there is not."""
    return as_dtype(dtype)


def type_of(fake: torch.Tensor, sizes: Sizes) -> Type:
    """The type of a tensor, whose extents may be symbols; those in ``sizes`` are numbers."""
    return Type((dim_of(n, sizes) for n in fake.shape), dtype_of(fake.dtype))


def dim_of(size: Any, sizes: Sizes) -> DimLike:
    """A size of torch, as an integer or a symbolic dimension, with the numbers of ``sizes`` filled
    in. Raises `DimError` for what is no polynomial of symbols and floor divisions."""
    if isinstance(size, int):
        return size
    if isinstance(size, torch.SymInt):
        symbolic: Any = size
        expression = symbolic.node.expr
        known = {s: sizes[str(s)] for s in expression.free_symbols if str(s) in sizes}
        return _dim_of_expression(expression.subs(known) if known else expression)
    raise DimError(f"{size!r} is no size")


def symbols_in(fake: Any, value: Any) -> Iterator[tuple[str, int]]:
    """The symbols that are sizes of ``fake``, or are it, with what ``value`` has in their place."""
    if isinstance(fake, torch.Tensor):
        for size, extent in zip(fake.shape, value.shape, strict=True):
            yield from symbols_in(size, extent)
    elif isinstance(fake, torch.SymInt):
        symbolic: Any = fake
        if symbolic.node.expr.is_Symbol:
            yield str(symbolic.node.expr), int(value)


_ROUNDED = ("TruncToInt", "FloorToInt", "CeilToInt")


def _rounded(name: str, expression: Any) -> DimLike:
    """A fraction of sizes as a whole number: ``int(n / 2)``, ``math.ceil(n / 2)``."""
    if type(expression).__name__ != "IntTrueDiv":
        raise DimError(f"{expression} is no polynomial of sizes")
    above, below = expression.args
    if name == "TruncToInt" and not (above.is_nonnegative and below.is_positive):
        raise DimError(f"the sign of {expression} is not known")
    part, whole = _dim_of_expression(above), _dim_of_expression(below)
    return -(-part // whole) if name == "CeilToInt" else part // whole


def _dim_of_expression(expression: Any) -> DimLike:
    """A sympy expression as a dimension."""
    name = type(expression).__name__
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return dim(str(expression))
    if name in _ROUNDED:
        return _rounded(name, expression.args[0])
    parts = [_dim_of_expression(part) for part in expression.args]
    if name == "Add":
        return sum(parts[1:], parts[0])
    if name == "Mul":
        total = parts[0]
        for part in parts[1:]:
            total = total * part
        return total
    if name in ("FloorDiv", "CleanDiv"):
        return parts[0] // parts[1]
    if name in ("Mod", "PythonMod"):
        return parts[0] % parts[1]
    if name == "Pow" and isinstance(parts[1], int) and 0 < parts[1] < 16:
        total = parts[0]
        for _ in range(parts[1] - 1):
            total = total * parts[0]
        return total
    raise DimError(f"{expression} is no polynomial of sizes")
