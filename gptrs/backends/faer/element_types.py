"""Element types in kernel source: the pointer, the loads, the stores and the numbers of each dtype.

In memory, truth values are bytes, 4-bit integers the lower half of a byte, and floats of 8 and 16
bits their bits. In arithmetic, narrow floats are f32 and 4-bit integers 8-bit ones.
"""

from __future__ import annotations

import math

from gptrs.ir.types import DType, f64
from gptrs.kernels.ordering.keys import (
    KeyType,
    float_keys,
    integer_keys,
    nibble_keys,
    unsigned_keys,
)

POINTERS = {
    "i1": "uint8s",
    "si4": "uint8s",
    "ui4": "uint8s",
    "si8": "int8s",
    "si16": "int16s",
    "si32": "int32s",
    "si64": "words",
    "ui8": "uint8s",
    "ui16": "uint16s",
    "ui32": "uint32s",
    "ui64": "uint64s",
    "fp8_e4m3": "uint8s",
    "fp8_e5m2": "uint8s",
    "bf16": "uint16s",
    "f16": "uint16s",
    "f32": "floats",
    "f64": "doubles",
    "cf32": "complex64s",
    "cf64": "complex128s",
}
"""The pointer type of each dtype in memory."""
HALVES = frozenset(["f16", "fp8_e4m3", "fp8_e5m2"])
"""The dtypes that are converted by way of f16, by instructions that not every CPU has."""

KEYS: dict[str, KeyType] = {
    "si4": nibble_keys("si4", signed=True),
    "ui4": nibble_keys("ui4", signed=False),
    **{
        name: integer_keys(name, POINTERS[name], 64 if name == "si64" else 32)
        for name in ("i1", "si8", "si16", "si32", "si64", "ui8", "ui16")
    },
    "ui32": unsigned_keys("ui32", POINTERS["si32"], 32),
    "ui64": unsigned_keys("ui64", POINTERS["si64"], 64),
    "fp8_e4m3": float_keys("fp8_e4m3", POINTERS["fp8_e4m3"], 8, 0x7E, 32),
    "fp8_e5m2": float_keys("fp8_e5m2", POINTERS["fp8_e5m2"], 8, 0x7C, 32),
    "bf16": float_keys("bf16", POINTERS["bf16"], 16, 0x7F80, 32),
    "f16": float_keys("f16", POINTERS["f16"], 16, 0x7C00, 32),
    "f32": float_keys("f32", POINTERS["si32"], 32, 0x7F80_0000, 32),
    "f64": float_keys("f64", POINTERS["si64"], 64, 0x7FF0_0000_0000_0000, 64),
}
"""The order of each real dtype, as integers."""


_NEGATIVE_NAN = -(1 << 51)


def local_pointer(dtype: DType) -> str:
    """The pointer type of values in arithmetic on ``dtype``."""
    return "int8s" if dtype.bits == 4 else POINTERS[dtype.compute.name]


def convert(dtype: DType, text: str) -> str:
    """A number as the type that arithmetic on ``dtype`` has."""
    if dtype.is_bool:
        return f"{text} != 0"
    if dtype.name == "si4":
        return f"int8(((int64({text}) & 15) ^ 8) - 8)"
    if dtype.name == "ui4":
        return f"int8(int64({text}) & 15)"
    return f"{dtype.compute.numpy.name}({text})"


def signed(value: int) -> int:
    """The 64 bits of an integer as a signed one."""
    return (value + 2**63) % 2**64 - 2**63


def literal(dtype: DType, value: bool | int | float | complex) -> str:
    """A constant of ``dtype``."""
    if dtype.is_bool:
        return repr(bool(value))
    if dtype.is_complex:
        number = complex(value)
        parts = ", ".join(literal(f64, part) for part in (number.real, number.imag))
        return convert(dtype, f"complex({parts})")
    assert not isinstance(value, complex)
    if dtype.bits == 4:
        return f"int8({int(value)})"
    if not dtype.is_float:
        return convert(dtype, repr(int(value)))
    number = float(value)
    if math.isfinite(number):
        return convert(dtype, repr(number))
    return convert(dtype, not_finite(number))


def not_finite(number: float) -> str:
    """NaN or an infinity in f64, the sign of NaN by its bits: arithmetic does not promise it."""
    if number != number:
        return "math.nan" if math.copysign(1.0, number) > 0 else f"bits_double({_NEGATIVE_NAN})"
    return "math.inf" if number > 0 else "-math.inf"


def loaded(dtype: DType, text: str) -> str:
    """A loaded element, converted for arithmetic."""
    match dtype.name:
        case "i1":
            return f"{text} != 0"
        case "si4" | "ui4":
            return convert(dtype, text)
        case "bf16":
            return f"bits_float(int32(uint32({text}) << 16))"
        case "f16":
            return f"half_float({text})"
        case "fp8_e4m3":
            return f"float_of_e4m3({text})"
        case "fp8_e5m2":
            return f"float_of_e5m2({text})"
        case _:
            return text


def stored(dtype: DType, x: str) -> str:
    """A value converted for storing; ``x`` is a name. Narrow floats round to nearest even,
    NaN keeps its sign."""
    match dtype.name:
        case "i1":
            return f"uint8({x})"
        case "si4" | "ui4":
            return f"uint8(int64({x}) & 15)"
        case "bf16":
            bits = f"float_bits({x})"
            rounded = f"uint16(({bits} + 32767 + (({bits} >> 16) & 1)) >> 16)"
            return f"{rounded} if {x} == {x} else uint16(({bits} >> 16) | 64)"
        case "f16":
            return f"float_half({x})"
        case "fp8_e4m3":
            return f"e4m3_of_float({x})"
        case "fp8_e5m2":
            return f"e5m2_of_float({x})"
        case _:
            return x


def rounded(dtype: DType, x: str) -> str:
    """f32 rounded to a narrow dtype."""
    bits = stored(dtype, x)
    return loaded(dtype, f"({bits})" if dtype.name == "bf16" else bits)
