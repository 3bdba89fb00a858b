"""The compiler of HIP, hipRTC."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_size_t, c_void_p
from typing import Any

from gptrs.backends.hip.libraries import library
from gptrs.errors import PtirError

_OPTIONS = (b"-std=c++17", b"-O3", b"-ffp-contract=off")


def has_compiler() -> bool:
    """Whether the library of the compiler is installed."""
    return library("hiprtc") is not None


def compiled(text: str, architecture: str = "") -> bytes:
    """The code of ``text`` for an architecture, such as ``gfx942``; for the current GPU where it is
    not said.

    Products and sums round by themselves but where the text says ``fmaf``. Raises `PtirError` with
    what the compiler says.
    """
    lib, program = library("hiprtc"), c_void_p()
    _check("hiprtcCreateProgram", byref(program), text.encode(), b"kernels.hip", 0, None, None)
    try:
        options = [*_OPTIONS, *([f"--offload-arch={architecture}".encode()] * bool(architecture))]
        given = (c_char_p * len(options))(*options)
        if lib.hiprtcCompileProgram(program, len(options), given):
            log = _bytes(program, "ProgramLog")
            raise PtirError(f"hipRTC does not compile a kernel: {log.decode().strip(chr(0))}")
        return _bytes(program, "Code")
    finally:
        lib.hiprtcDestroyProgram(byref(program))


def _bytes(program: c_void_p, what: str) -> bytes:
    size = c_size_t()
    _check(f"hiprtcGet{what}Size", program, byref(size))
    found = ctypes.create_string_buffer(size.value)
    _check(f"hiprtcGet{what}", program, found)
    return found.raw


def _check(name: str, *given: Any) -> None:
    if status := getattr(library("hiprtc"), name)(*given):
        raise PtirError(f"hipRTC fails in {name}: status {status}")
