"""safetensors files (huggingface.co/docs/safetensors, "Format"): a header in JSON, then bytes.

Little-endian, tensors row-major, without gaps::

    header_len u64   header[header_len]   data ...
    header: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
             "__metadata__": {"format": "pt"}}
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from gptrs.errors import LoadError
from gptrs.ir import types
from gptrs.ir.types import DType, shape_text
from gptrs.runtime.stored import MOST_AXES, StoredTensor, TensorFile

SUFFIX = ".safetensors"
DOWNLOAD_AGAIN = "download the model again"
LENGTH_BYTES = 8  # of header_len
_MOST_ELEMENTS = 2**59  # that NumPy counts, of 8 bytes each, with each extent 0 taken as 1
METADATA = "__metadata__"
MOST_HEADER = 100_000_000  # bytes, that other readers accept too
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
            length = self._header_length()
            with safe_open(path, framework="numpy"):
                pass  # checks the header
            text = self.file.read(LENGTH_BYTES, length)
            header: dict[str, Any] = json.loads(text, object_pairs_hook=_once)
        except (SafetensorError, ValueError) as error:
            if isinstance(error, LoadError):
                raise
            raise LoadError(
                f"{path} is no complete safetensors file: {error}", fix=DOWNLOAD_AGAIN
            ) from None
        header.pop(METADATA, None)
        for key, entry in header.items():
            self._add(key, entry, LENGTH_BYTES + length)

    def _add(self, key: str, entry: dict[str, Any], begin: int) -> None:
        """Take a tensor by its entry in the header; data lie from ``begin`` on."""
        (first, last), spelled = entry["data_offsets"], entry["dtype"]
        shape, known = tuple(entry["shape"]), DTYPES.get(spelled)
        if len(shape) > MOST_AXES or math.prod(max(n, 1) for n in shape) > _MOST_ELEMENTS:
            raise LoadError(
                f"{self.path}: {key!r} has shape {shape_text(shape)}, expected at most {MOST_AXES}"
                " axes and a size that memory can have",
                fix=DOWNLOAD_AGAIN,
            )
        place = begin + first, last - first
        self.tensors[key] = StoredTensor(self.file, key, shape, known, spelled, *place)

    def _header_length(self) -> int:
        """What ``header_len`` says. Raises `ValueError`."""
        if self.file.size < LENGTH_BYTES:
            raise ValueError(f"it has {self.file.size} bytes, expected at least {LENGTH_BYTES}")
        length = int.from_bytes(self.file.read(0, LENGTH_BYTES), "little")
        most = min(self.file.size - LENGTH_BYTES, MOST_HEADER)
        if length > most:
            raise ValueError(f"header_len is {length}, expected at most {most}")
        return length


def _once(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that has each name once: readers differ in which of two counts."""
    found: dict[str, Any] = {}
    for name, value in entries:
        if name in found:
            raise ValueError(f"header: the name {name!r} is there twice, expected once")
        found[name] = value
    return found
