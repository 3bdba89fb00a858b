"""The libraries of ROCm, whose GPU is the processor: the calls of `gptrs.backends.hip` get pointers
as C functions do, and give back what AMD's libraries would.

Kernels are compiled and run as in `tests.support.cuda_emulator`. It says nothing of AMD's compiler
or of a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Any

from tests.support.cuda_emulator import Emulator

_SIZE = ctypes.sizeof(c_void_p)


class HipEmulator:
    """The functions of a library by their names, of `libraries.library`."""

    def __init__(self, gpu: Emulator) -> None:
        self._gpu = gpu
        self.calls: list[str] = []
        self._modules: list[Any] = []
        self._code = b""
        self.devices = 1
        self._functions: dict[str, tuple[Callable[..., int | None], tuple[Any, ...]]] = {
            "hipInit": (self._nothing, (c_uint,)),
            "hipSetDevice": (self._nothing, (c_int,)),
            "hipGetDeviceCount": (self._device_count, (c_void_p,)),
            "hipDeviceGetName": (self._device_name, (c_void_p, c_int, c_int)),
            "hipDeviceTotalMem": (self._memory, (c_void_p, c_int)),
            "hipDeviceComputeCapability": (self._capability, (c_void_p, c_void_p, c_int)),
            "hipGetDevicePropertiesR0600": (self._properties, (c_void_p, c_int)),
            "hipStreamCreateWithFlags": (self._handle, (c_void_p, c_uint)),
            "hipStreamSynchronize": (self._nothing, (c_void_p,)),
            "hipModuleLoadData": (self._load, (c_void_p, c_char_p)),
            "hipModuleGetFunction": (self._function, (c_void_p, c_void_p, c_char_p)),
            "hipModuleLaunchKernel": (
                self._launch,
                (c_void_p, *(c_uint,) * 7, c_void_p, ctypes.POINTER(c_void_p), c_void_p),
            ),
            "hipMallocAsync": (self._allocate, (c_void_p, c_size_t, c_void_p)),
            "hipFreeAsync": (self._free, (c_void_p, c_void_p)),
            **{
                f"hipMemcpy{ends}Async": (self._move, (c_void_p, c_void_p, c_size_t, c_void_p))
                for ends in ("HtoD", "DtoH", "DtoD")
            },
            "hiprtcCreateProgram": (
                self._create,
                (c_void_p, c_char_p, c_char_p, c_int, c_void_p, c_void_p),
            ),
            "hiprtcCompileProgram": (
                self._compile,
                (c_void_p, c_int, ctypes.POINTER(c_char_p)),
            ),
            "hiprtcGetCodeSize": (self._code_size, (c_void_p, c_void_p)),
            "hiprtcGetCode": (self._get_code, (c_void_p, c_void_p)),
            "hiprtcGetProgramLogSize": (self._code_size, (c_void_p, c_void_p)),
            "hiprtcGetProgramLog": (self._get_code, (c_void_p, c_void_p)),
            "hiprtcDestroyProgram": (self._nothing, (c_void_p,)),
        }
        self._made: dict[str, Any] = {}

    def library(self, name: str) -> Any:
        """The library; all are this one."""
        assert name in ("amdhip64", "hiprtc")
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "hipGetErrorString":
            return ctypes.CFUNCTYPE(c_void_p, c_int)(self._text_of)
        if name not in self._functions:
            raise AttributeError(name)
        self.calls.append(name)
        if name not in self._made:
            function, kinds = self._functions[name]
            self._made[name] = ctypes.CFUNCTYPE(c_int, *kinds)(lambda *given: function(*given) or 0)
        return self._made[name]

    def _text_of(self, status: int) -> int:
        self._told = ctypes.create_string_buffer(f"error {status}".encode())
        return ctypes.addressof(self._told)

    def _nothing(self, *_: Any) -> None:
        pass

    def _device_count(self, place: int) -> None:
        c_int.from_address(place).value = self.devices

    def _device_name(self, place: int, length: int, device: int) -> int | None:
        if device >= self.devices:
            return 101  # hipErrorInvalidDevice
        ctypes.memmove(place, b"Emulated GPU\0", 13)
        return None

    def _memory(self, place: int, device: int) -> None:
        c_size_t.from_address(place).value = 2**33

    def _capability(self, major: int, minor: int, device: int) -> None:
        c_int.from_address(major).value, c_int.from_address(minor).value = 9, 4

    def _properties(self, place: int, device: int) -> None:
        ctypes.memmove(place + 1160, b"gfx942:sramecc+:xnack-\0", 23)

    def _handle(self, place: int, flags: int) -> None:
        assert flags == 1
        c_void_p.from_address(place).value = 0x5EA

    def _load(self, place: int, code: bytes) -> None:
        self._modules.append(ctypes.CDLL(code.decode()))
        c_void_p.from_address(place).value = len(self._modules)

    def _function(self, place: int, module: int, name: bytes) -> None:
        found = self._modules[module - 1][f"unpack_{name.decode()}"]
        c_void_p.from_address(place).value = ctypes.cast(found, c_void_p).value

    def _launch(self, function: int, *given: Any) -> None:
        blocks, _, _, threads, _, _, shared, stream, arguments, extra = given
        assert (shared, stream, extra) == (0, 0x5EA, None)
        kind = ctypes.CFUNCTYPE(None, c_uint, c_uint, ctypes.POINTER(c_void_p))
        kind(function)(blocks, threads, arguments)

    def _allocate(self, place: int, size: int, stream: int) -> None:
        assert stream == 0x5EA
        c_void_p.from_address(place).value = self._gpu.call("cuMemAllocAsync", size, stream)

    def _free(self, address: int, stream: int) -> None:
        self._gpu.call("cuMemFreeAsync", address, stream)

    def _move(self, target: int, source: int, size: int, stream: int) -> None:
        assert stream == 0x5EA
        ctypes.memmove(target, source, size)

    def _create(self, place: int, text: bytes, name: bytes, *headers: Any) -> None:
        self._text = text.decode()
        c_void_p.from_address(place).value = 7

    def _compile(self, program: int, count: int, options: Any) -> int | None:
        told = [options[number] for number in range(count)]
        assert b"-ffp-contract=off" in told
        if "y = 1" in self._text:
            self._code = b"error: y is not declared\0"
            return 6  # HIPRTC_ERROR_COMPILATION
        self._code = self._gpu.compiled(self._text, "") + b"\0"
        return None

    def _code_size(self, program: int, place: int) -> None:
        c_size_t.from_address(place).value = len(self._code)

    def _get_code(self, program: int, place: int) -> None:
        ctypes.memmove(place, self._code, len(self._code))
