"""Errors for formats that are not loaded: pickles, GGUF, quantised weights, each with its remedy.

Imported on error paths only. Detection is by suffix, first bytes, tensor names and dtypes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from gptrs.errors import LoadError, shown
from gptrs.formats.byte_file import begins_with

GGUF = ".gguf"
PICKLES = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")
_PICKLED = (b"PK\x03\x04", b"\x80")  # the zip file that torch.save writes, and a bare pickle
_QUANTISED = (  # how GPTQ, AWQ, bitsandbytes, compressed-tensors and fp8 checkpoints call tensors
    *(".qweight", ".qzeros", ".scales", ".g_idx", ".SCB", ".absmax", ".quant_map"),
    *(".weight_packed", ".weight_scale", ".weight_scale_inv"),
)
_NARROW = ("I4", "U4", "I8", "U8", "I16", "U16", "I32", "U32", "F8_", "F6_", "F4")
SAFETENSORS = (
    'save safetensors, in Python: safetensors.torch.save_model(module, "model.safetensors"), or'
    " module.save_pretrained(directory, safe_serialization=True)"
)
ORIGINAL = "load the model that it was quantised from: its page names it as base model"


def check_file(file: Path) -> None:
    """Raise `LoadError` for a pickle or a GGUF file, detected by its suffix or first bytes."""
    if file.suffix == GGUF or begins_with(file, b"GGUF"):
        raise LoadError(
            f"{file} is a GGUF file, the form of llama.cpp, which is not read here",
            fix="load the Hugging Face directory that it was made from: config.json,"
            " model.safetensors, tokenizer.json",
        )
    zipped = file.suffix == ".npz"  # begins as what torch.save writes
    if file.suffix in PICKLES or (not zipped and any(begins_with(file, b) for b in _PICKLED)):
        raise LoadError(
            f"{file} is a pickle, which may run any program and is never opened", fix=SAFETENSORS
        )


def check_directory(directory: Path) -> None:
    """Raise `LoadError` for a directory whose weights are GGUF files or pickles alone."""
    names = sorted(path.name for path in directory.iterdir())
    if not any(name.endswith(".safetensors") for name in names):
        for name in names:
            if name.endswith((GGUF, *PICKLES)):
                check_file(directory / name)


def quantised(given: object, file: Path) -> LoadError:
    """The error for a configuration in which ``quantization_config`` is ``given``."""
    method: object = cast("Any", given).get("quant_method") if isinstance(given, dict) else given
    return LoadError(
        f"{file}: quantization_config says that the weights are quantised ({shown(method)}),"
        " expected f32, f16 or bf16",
        fix=ORIGINAL,
    )


def quantised_tensor(place: Path, names: Iterable[str]) -> LoadError | None:
    """The error where a tensor's name is that of a quantised weight; else None."""
    for name in names:
        if name.endswith(_QUANTISED):
            return LoadError(
                f"{place}: {name!r} belongs to a weight that is quantised (as by GPTQ, AWQ,"
                " bitsandbytes or in fp8), expected weights of f32, f16 or bf16",
                fix=ORIGINAL,
            )
    return None


def is_narrow(dtype: str) -> bool:
    """Whether weights of a safetensors file that have this ``dtype`` are quantised."""
    return dtype.startswith(_NARROW)
