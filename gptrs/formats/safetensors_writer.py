"""Writer of safetensors files; the layout is in `gptrs.formats.safetensors_file`.

Tensors with the largest elements come first, so that all are aligned.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from gptrs.errors import ArgumentError
from gptrs.formats.atomic_write import atomic_write
from gptrs.formats.byte_file import memory_for
from gptrs.formats.json_text import memory_of
from gptrs.formats.safetensors_file import DTYPES, LENGTH_BYTES, METADATA, MOST_HEADER
from gptrs.formats.tensor_writer import NewTensor, new_tensors

_ALIGNMENT = 8  # of the first tensor, in bytes
_SPELLED = {dtype: spelled for spelled, dtype in DTYPES.items()}


def write_safetensors(
    path: str | os.PathLike[str], tensors: Mapping[str, object] | Iterable[NewTensor]
) -> None:
    """Write arrays or Tensors by their names, atomically.

    Raises `ArgumentError` for a name or an element type that the format cannot hold, and where
    nothing can be written.
    """
    given = new_tensors(tensors, _SPELLED, "safetensors files")
    given.sort(key=lambda tensor: (-tensor.dtype.numpy.itemsize, tensor.name))
    header: dict[str, object] = {METADATA: {"format": "pt"}}
    end = 0
    for tensor in given:
        if tensor.name in header:
            raise ArgumentError(
                f"the name {tensor.name!r} is taken, expected one for each tensor,"
                f" and {METADATA} for none",
                fix="give it another name",
            )
        header[tensor.name] = {
            "dtype": _SPELLED[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [end, end + tensor.size],
        }
        end += tensor.size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > MOST_HEADER or memory_of(text) > memory_for(LENGTH_BYTES + len(text) + end):
        raise ArgumentError(
            f"the header of {len(given)} tensors has {len(text)} bytes, more than is read of a file"
            f" with {end} bytes of elements",
            fix="write the tensors to several files, or small ones as rows of one",
        )
    with atomic_write(Path(path)) as file:
        file.write(len(text).to_bytes(LENGTH_BYTES, "little") + text)
        for tensor in given:
            tensor.write(file)
