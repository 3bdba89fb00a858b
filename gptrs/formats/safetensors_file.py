"""Reader of safetensors files (huggingface.co/docs/safetensors, "Format").

Little-endian, a JSON header, then row-major tensors without gaps::

    header_len u64   header[header_len]   data ...
    header: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
             "__metadata__": {"format": "pt"}}

The whole header is checked at opening: names, dtypes, shapes, and that tensors fill the file.
"""

from __future__ import annotations

import math
from operator import attrgetter
from pathlib import Path
from reprlib import Repr
from typing import cast

from gptrs.errors import LoadError
from gptrs.formats.json_text import RepeatedName, decoded, members
from gptrs.formats.stored_tensor import MOST_AXES, MOST_NAME, StoredTensor, TensorFile
from gptrs.ir import types
from gptrs.ir.types import DType, shape_text

SUFFIX = ".safetensors"
DOWNLOAD_AGAIN = "download the model again"
LENGTH_BYTES = 8  # of header_len
_MOST_ELEMENTS = 2**59  # NumPy's limit for elements of 8 bytes, with each extent 0 counted as 1
METADATA = "__metadata__"
MOST_HEADER = 100_000_000  # bytes: the limit of other readers
_SHOWN = 100  # letters of a value, in errors
_REPR = Repr()
_REPR.maxstring = _REPR.maxlong = _SHOWN
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
"""Names of dtypes in headers → dtypes of this package."""
_OTHERS = {
    "C64": 64,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F4": 4,
}
_BITS = {name: 8 * dtype.numpy.itemsize for name, dtype in DTYPES.items()} | _OTHERS


class SafetensorsFile(TensorFile):
    """A safetensors file, whose header is checked."""

    fix = DOWNLOAD_AGAIN

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            length = self._header_length()
            text = decoded(self.file.read(LENGTH_BYTES, length), self.file.memory)
            for key, entry in members(text):
                if key in self.tensors:
                    raise RepeatedName(key)
                if key == METADATA:
                    _check_metadata(entry)
                else:
                    self.tensors[key] = self._tensor(key, entry, LENGTH_BYTES + length)
            self._check_places(LENGTH_BYTES + length)
        except (ValueError, RecursionError) as error:
            if isinstance(error, LoadError):
                raise
            raise LoadError(
                f"{path} is no complete safetensors file: {error}", fix=DOWNLOAD_AGAIN
            ) from None

    def _tensor(self, key: str, entry: object, begin: int) -> StoredTensor:
        """A tensor by its header entry; the data begin at ``begin``. Raises `ValueError`."""
        if len(key) > MOST_NAME:
            raise ValueError(f"header: a name has {len(key)} letters, expected at most {MOST_NAME}")
        if not key.isascii():
            key.encode()  # raises for a lone surrogate
        fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        spelled, shape = fields.get("dtype"), _counts(fields.get("shape"))
        place = _counts(fields.get("data_offsets"))
        if not isinstance(spelled, str) or shape is None or place is None:
            raise _wrong(key, cast("object", entry), "an object of dtype, shape and data_offsets")
        if spelled not in _BITS:
            raise _wrong(f"{key}: dtype", spelled, f"one of {', '.join(_BITS)}")
        if len(place) != 2:
            raise _wrong(f"{key}: data_offsets", place, "begin and end")
        if len(shape) > MOST_AXES:
            raise self._shape_that_no_array_has(key, shape)
        elements, length = math.prod(shape), place[1] - place[0]
        if elements * _BITS[spelled] != 8 * length:
            expected = f"{spelled}{shape_text(tuple(shape))}"
            raise _wrong(f"{key}: data_offsets", place, f"the bytes of {expected}")
        # A tensor with elements is bounded by the file already.
        if not elements and math.prod(max(extent, 1) for extent in shape) > _MOST_ELEMENTS:
            raise self._shape_that_no_array_has(key, shape)
        at = begin + place[0]
        return StoredTensor(self.file, key, tuple(shape), DTYPES.get(spelled), spelled, at, length)

    def _shape_that_no_array_has(self, key: str, shape: list[int]) -> LoadError:
        return LoadError(
            f"{self.path}: {key!r} has shape {shape_text(tuple(shape))}, expected at most"
            f" {MOST_AXES} axes and a size that memory can have",
            fix=DOWNLOAD_AGAIN,
        )

    def _check_places(self, end: int) -> None:
        """Raise `ValueError` unless tensors follow each other from ``end`` to the file's end."""
        for tensor in sorted(self.tensors.values(), key=attrgetter("offset", "length")):
            if tensor.offset != end:
                raise ValueError(f"{tensor.key!r} begins at byte {tensor.offset}, expected {end}")
            end += tensor.length
        if end != self.file.size:
            raise ValueError(f"it has {self.file.size} bytes, expected {end} by its header")

    def _header_length(self) -> int:
        """The checked ``header_len``. Raises `ValueError`."""
        if self.file.size < LENGTH_BYTES:
            raise ValueError(f"it has {self.file.size} bytes, expected at least {LENGTH_BYTES}")
        length = int.from_bytes(self.file.read(0, LENGTH_BYTES), "little")
        most = min(self.file.size - LENGTH_BYTES, MOST_HEADER)
        if length > most:
            raise ValueError(f"header_len is {length}, expected at most {most}")
        return length


def _counts(values: object) -> list[int] | None:
    """``values`` if it is a list of integers from 0 up (booleans are not), else None."""
    if not isinstance(values, list):
        return None
    for value in cast("list[object]", values):
        if type(value) is not int or value < 0:
            return None
    return cast("list[int]", values)


def _check_metadata(entry: object) -> None:
    """Raise `ValueError` unless it is an object of strings, or null."""
    given = cast("dict[str, object]", entry if isinstance(entry, dict) else {"": entry})
    if entry is not None and not all(isinstance(value, str) for value in given.values()):
        raise _wrong(METADATA, cast("object", entry), "an object of strings")


def _wrong(what: str, found: object, expected: str) -> ValueError:
    shown = (
        found if isinstance(found, str) else _REPR.repr(found)
    )  # shortened before it is formatted
    return ValueError(f"header: {what} is {shown[:_SHOWN]}, expected {expected}")
