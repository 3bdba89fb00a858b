"""Names of the namespace that are no functions: dtypes by other libraries' names, and constants."""

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.types import DTYPES, DType, as_dtype

API_VERSION = "2024.12"
STANDARD_DTYPES: dict[str, DType] = {
    name: as_dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64", "complex64", "complex128"),
    )
}
"""The dtypes of the standard, by its names."""

OTHER_DTYPES: dict[str, DType] = {
    "bool_": DTYPES["i1"],
    "float16": DTYPES["f16"],
    "half": DTYPES["f16"],
    "bfloat16": DTYPES["bf16"],
    "float8_e4m3fn": DTYPES["fp8_e4m3"],
    "float8_e5m2": DTYPES["fp8_e5m2"],
    "int4": DTYPES["si4"],
    "uint4": DTYPES["ui4"],
    "double": DTYPES["f64"],
}
"""Further dtypes by NumPy's, JAX's and torch's names."""

CONSTANTS: dict[str, Any] = {
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "newaxis": None,
    "pi": math.pi,
}

VALUES: dict[str, Any] = {
    **STANDARD_DTYPES,
    **OTHER_DTYPES,
    **CONSTANTS,
    "__array_api_version__": API_VERSION,
}
