"""Functions of integers: least common multiples, numbers of bits."""

from __future__ import annotations

from typing import Any

from gptrs.errors import DTypeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor, public

__all__ = ["bitwise_count", "lcm"]

Operand = Any
"""A Tensor, an array or a Python number."""


@public(op="gcd")
def lcm(x: Operand, y: Operand) -> Tensor:
    """The least positive integer that both divide, 0 where one of them is 0; wraps."""
    x, y = promote((as_tensor(x), as_tensor(y)))
    divisor = OPS["gcd"](x, y)
    divisor = OPS["select"](OPS["equal"](divisor, 0), 1, divisor)
    return OPS["mul"](OPS["div"](OPS["abs"](x), divisor), OPS["abs"](y))


@public(op="bit_and")
def bitwise_count(x: Operand) -> Tensor:
    """How many bits of |x| are set, ui8."""
    x = as_tensor(x)
    if not x.dtype.is_integer:
        raise DTypeError(f"found dtype {x.dtype}, expected integers")
    if x.dtype.kind == "int":
        x = OPS["cast"](OPS["abs"](x), dtype=f"ui{x.dtype.bits}")
    bits = 64 if x.dtype.bits == 64 else 32
    x = OPS["cast"](x, dtype=f"ui{bits}")
    # Sums of neighbours: of bits, of pairs, of four; then of all bytes by one product.
    pairs, fours, bytes_, ones = (byte * (2**bits // 255) for byte in (0x55, 0x33, 0x0F, 0x01))
    x = OPS["sub"](x, _and(_right(x, 1), pairs))
    x = OPS["add"](_and(x, fours), _and(_right(x, 2), fours))
    x = _and(OPS["add"](x, _right(x, 4)), bytes_)
    return OPS["cast"](_right(OPS["mul"](x, ones), bits - 8), dtype="ui8")


def _and(x: Tensor, mask: int) -> Tensor:
    return OPS["bit_and"](x, mask)


def _right(x: Tensor, places: int) -> Tensor:
    return OPS["shift_right"](x, places)
