"""Element types in kernels of the C family: types in memory and in arithmetic, loads, stores,
numbers.

The functions are those of ``vocabulary.h``. In memory, truth values are bytes, 4-bit integers the
lower half of a byte, and floats of 8 and 16 bits their bits. In arithmetic, narrow floats are f32
and 4-bit integers 8-bit ones.
"""

from __future__ import annotations

import math

import numpy as np

from gptrs.ir.types import DType, f32

IN_MEMORY = {
    "i1": "u8",
    "si4": "u8",
    "ui4": "u8",
    "si8": "i8",
    "si16": "i16",
    "si32": "i32",
    "si64": "i64",
    "ui8": "u8",
    "ui16": "u16",
    "ui32": "u32",
    "ui64": "u64",
    "fp8_e4m3": "u8",
    "fp8_e5m2": "u8",
    "bf16": "u16",
    "f16": "u16",
    "f32": "f32",
    "f64": "f64",
}
"""By dtype: its type in memory. Kernels have no other dtypes."""

NARROW = {"bf16": "bf16", "f16": "f16", "fp8_e4m3": "e4m3", "fp8_e5m2": "e5m2"}
"""By dtype: what the vocabulary calls a narrow float."""

_NEGATIVE_NAN = {32: "f32_of_bits(0xffc00000u)", 64: "f64_of_bits(0xfff8000000000000u)"}


def arithmetic(dtype: DType) -> str:
    """The type of values in arithmetic on ``dtype``."""
    return "i8" if dtype.bits == 4 else IN_MEMORY[dtype.compute.name]


def work(dtype: DType) -> str:
    """The type without a sign in which integers of ``dtype`` are added and multiplied."""
    return "u64" if dtype.bits == 64 else "u32"


def convert(dtype: DType, text: str) -> str:
    """An integer, or a float for floats, as a number in arithmetic on ``dtype``, wrapped."""
    if dtype.is_bool:
        return f"(u8)(({text}) != 0)"
    if dtype.bits == 4:
        return f"{dtype.name}((u32)({text}))"
    return f"({arithmetic(dtype)})({text})"


def literal(dtype: DType, value: bool | int | float) -> str:
    """A constant of ``dtype``."""
    if dtype.is_bool:
        return "1" if value else "0"
    if dtype.is_integer:
        return integer(dtype, int(value))
    compute = dtype.compute
    number = float(value)
    if number != number:
        if math.copysign(1.0, number) < 0:
            return _NEGATIVE_NAN[compute.bits]
        return f"({compute.name})F32_NAN"
    if math.isinf(number):
        return f"({compute.name}){'-' if number < 0 else ''}F32_INFINITY"
    if compute is f32:
        with np.errstate(over="ignore"):
            text = str(np.float32(number))
        text = f"{_with_point(text)}f" if "inf" not in text else "(f32)F32_INFINITY"
    else:
        text = _with_point(repr(number))
    return f"({text})" if text.startswith("-") else text


def _with_point(text: str) -> str:
    """A number that C reads as a float."""
    if "." not in text and "e" not in text:
        text += ".0"
    return text


def integer(dtype: DType, value: int) -> str:
    """An integer constant; the least one is no literal in C."""
    kind = arithmetic(dtype)
    if dtype.kind == "uint":
        return f"({kind}){value}u" + ("l" if dtype.bits == 64 else "")
    if value == -(2**63):
        return "((i64)-9223372036854775807l - 1)"
    return f"({kind})({value}{'l' if dtype.bits == 64 else ''})"


def loaded(dtype: DType, text: str) -> str:
    """A loaded element, converted for arithmetic."""
    if dtype.bits == 4:
        return f"{dtype.name}({text})"
    if dtype.name in NARROW:
        return f"f32_of_{NARROW[dtype.name]}({text})"
    return text


def stored(dtype: DType, text: str) -> str:
    """A number in arithmetic on ``dtype``, converted for storing."""
    if dtype.bits == 4:
        return f"(u8)({text} & 15)"
    if dtype.name in NARROW:
        return f"{NARROW[dtype.name]}_of_f32({text})"
    return text


def rounded(dtype: DType, text: str) -> str:
    """f32 rounded to a narrow dtype."""
    return loaded(dtype, stored(dtype, text))
