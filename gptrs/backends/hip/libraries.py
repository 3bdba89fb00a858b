"""The libraries of ROCm: the runtime ``amdhip64`` and the compiler ``hiprtc``, through `ctypes`.

They are where the loader looks, or in ``lib`` of ``ROCM_PATH`` (``/opt/rocm``). Bindings of AMD's
own are no package of PyPI, and the two dozen calls that are needed take plain numbers and pointers.
"""

from __future__ import annotations

import ctypes
import os
from ctypes.util import find_library
from functools import cache
from pathlib import Path
from typing import Any

from gptrs.errors import PtirError


@cache
def library(name: str) -> Any:
    """The library of this name, loaded; None where there is none or it cannot be loaded."""
    folder = Path(os.environ.get("ROCM_PATH") or "/opt/rocm") / "lib"
    for path in (find_library(name), str(folder / f"lib{name}.so")):
        if path is not None:
            try:
                return ctypes.CDLL(path)
            except OSError:  # not there, or something that it needs
                continue
    return None


def call(name: str, *given: Any) -> None:
    """A call of the runtime; arguments are values of `ctypes`. Raises `PtirError` where it
    fails."""
    if status := status_of(name, *given):
        text = library("amdhip64").hipGetErrorString
        text.restype = ctypes.c_char_p
        told: bytes = text(status)
        raise PtirError(f"HIP fails in {name}: {told.decode()}")


def status_of(name: str, *given: Any) -> int:
    """What a call of the runtime returns, 0 where it succeeds."""
    return getattr(library("amdhip64"), name)(*given)
