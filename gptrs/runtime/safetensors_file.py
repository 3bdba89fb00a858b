"""safetensors files (huggingface.co/docs/safetensors, "Format"): a header in JSON, then bytes.

Little-endian, tensors row-major, without gaps::

    header_len u64   header[header_len]   data ...
    header: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
             "__metadata__": {"format": "pt"}}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from gptrs.errors import LoadError
from gptrs.ir import types
from gptrs.ir.types import DType
from gptrs.runtime.stored import StoredTensor, TensorFile

SUFFIX = ".safetensors"
DOWNLOAD_AGAIN = "download the model again"
LENGTH_BYTES = 8  # of header_len
METADATA = "__metadata__"
DTYPES: dict[str, DType] = {
    "F64": types.f64,
    "F32": types.f32,
    "F16": types.f16,
    "BF16": types.bf16,
    "I64": types.si64,
    "I32": types.si32,
    "I16": types.si16,
    "I8": types.si8,
    "U64": types.ui64,
    "U32": types.ui32,
    "U16": types.ui16,
    "U8": types.ui8,
    "BOOL": types.i1,
    "F8_E4M3": types.fp8_e4m3,
    "F8_E5M2": types.fp8_e5m2,
}
"""The dtypes that have a name here, as headers spell them."""


class SafetensorsFile(TensorFile):
    """A safetensors file, whose header is checked."""

    fix = DOWNLOAD_AGAIN

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            with safe_open(path, framework="numpy"):
                pass  # checks the header
        except SafetensorError as error:
            raise LoadError(
                f"{path} is no complete safetensors file: {error}", fix=DOWNLOAD_AGAIN
            ) from None
        length = int.from_bytes(self.file.read(0, LENGTH_BYTES), "little")
        begin = LENGTH_BYTES + length
        header: dict[str, Any] = json.loads(self.file.read(LENGTH_BYTES, length))
        header.pop(METADATA, None)
        for key, entry in header.items():
            (first, last), spelled = entry["data_offsets"], entry["dtype"]
            shape, known = tuple(entry["shape"]), DTYPES.get(spelled)
            place = begin + first, last - first
            self.tensors[key] = StoredTensor(self.file, key, shape, known, spelled, *place)
