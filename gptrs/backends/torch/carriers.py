"""Carriers: the torch dtype whose elements stand for those of a PTIR dtype on a device.

torch computes with few unsigned integers and with no 4-bit ones, so a wider integer carries them,
in the range of the dtype:

    si4, ui4        int8, uint8
    ui16, ui32      int32, int64
    ui64            int64 with the same 64 bits
    fp8             uint8 with the same 8 bits: elements move as bits, arithmetic widens them

All others are torch's own.
"""

from __future__ import annotations

from gptrs.ir.types import DTYPES, DType

_NAMES = {
    "i1": "bool",
    "si4": "int8",
    "ui4": "uint8",
    "si8": "int8",
    "ui8": "uint8",
    "si16": "int16",
    "ui16": "int32",
    "si32": "int32",
    "ui32": "int64",
    "si64": "int64",
    "ui64": "int64",
    "fp8_e4m3": "uint8",
    "fp8_e5m2": "uint8",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "cf32": "complex64",
    "cf64": "complex128",
}
CARRIERS: dict[DType, str] = {DTYPES[name]: carrier for name, carrier in _NAMES.items()}
"""The names in torch, by dtype."""
FP8 = {DTYPES["fp8_e4m3"]: "float8_e4m3fn", DTYPES["fp8_e5m2"]: "float8_e5m2"}
"""torch's own name of the dtypes that are carried as bits."""


def is_wider(dtype: DType) -> bool:
    """Whether the carrier of an integer has more values than the dtype: results are wrapped."""
    return dtype.is_integer and (dtype.bits == 4 or (dtype.kind == "uint" and 8 < dtype.bits < 64))


def is_narrow(dtype: DType) -> bool:
    """Whether arithmetic on a float widens it to f32 and rounds the result once."""
    return dtype.compute is not dtype
