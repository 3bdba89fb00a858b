"""The compiler of CUDA C, NVRTC, which needs no driver and no GPU."""

from __future__ import annotations

from typing import Any

from gptrs.errors import PtirError
from gptrs.locks import late_import

_OPTIONS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space")


def nvrtc() -> Any:
    """The bindings of NVRTC."""
    return late_import("cuda.bindings.nvrtc")


def has_compiler() -> bool:
    """Whether the bindings and the library of the compiler are installed."""
    try:
        status, *_ = nvrtc().nvrtcVersion()
    except (ImportError, RuntimeError):
        return False
    return status == nvrtc().nvrtcResult.NVRTC_SUCCESS


def compiled(text: str, architecture: str) -> bytes:
    """The code of ``text`` for an architecture, such as ``sm_90``.

    Products and sums round by themselves but where the text says ``fmaf``. Raises `PtirError` with
    what the compiler says.
    """
    lib = nvrtc()
    program = _value(lib.nvrtcCreateProgram(text.encode(), b"kernels.cu", 0, [], []))
    try:
        options = [f"--gpu-architecture={architecture}", *_OPTIONS]
        (status,) = lib.nvrtcCompileProgram(
            program, len(options), [option.encode() for option in options]
        )
        if status != lib.nvrtcResult.NVRTC_SUCCESS:
            log = b" " * _value(lib.nvrtcGetProgramLogSize(program))
            _value(lib.nvrtcGetProgramLog(program, log))
            raise PtirError(f"NVRTC does not compile a kernel: {log.decode().strip(chr(0))}")
        code = b" " * _value(lib.nvrtcGetCUBINSize(program))
        _value(lib.nvrtcGetCUBIN(program, code))
        return code
    finally:
        lib.nvrtcDestroyProgram(program)


def _value(answer: tuple[Any, ...]) -> Any:
    """What a call gives beside its status."""
    status, *values = answer
    if status != nvrtc().nvrtcResult.NVRTC_SUCCESS:
        raise PtirError(f"NVRTC fails: {status!r}")
    return values[0] if values else None
