"""The first GPU of AMD's driver, and its calls."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p
from typing import Any

from gptrs.backends.c_family.gpu import Gpu, Shape
from gptrs.backends.hip.driver import architecture
from gptrs.backends.hip.hiprtc import compiled
from gptrs.backends.hip.libraries import call
from gptrs.backends.triton.compiler import Target

_NON_BLOCKING = 1  # a stream that does not wait for the default one


class HipGpu(Gpu):
    """Its primary context, which torch has too, and a stream."""

    def __init__(self) -> None:
        call("hipInit", c_uint(0))
        self.enter()
        self._stream = c_void_p()
        call("hipStreamCreateWithFlags", byref(self._stream), c_uint(_NON_BLOCKING))

    def enter(self) -> None:
        call("hipSetDevice", c_int(0))

    def target(self) -> Target:
        name = architecture(0)
        return Target("hip", name, 64 if name.startswith("gfx9") else 32)

    def compiled(self, text: str) -> bytes:
        return compiled(text)

    def load(self, code: bytes) -> c_void_p:
        module = c_void_p()
        call("hipModuleLoadData", byref(module), code)
        return module

    def function(self, module: c_void_p, name: str, shared: int) -> c_void_p:
        found = c_void_p()
        call("hipModuleGetFunction", byref(found), module, name.encode())
        return found

    def launch(
        self, function: Any, shape: Shape, values: Sequence[int], kinds: Sequence[Any]
    ) -> None:
        held = [kind(value) for kind, value in zip(kinds, values, strict=True)]
        given = (c_void_p * len(held))(*(ctypes.addressof(value) for value in held))
        sizes = [c_uint(n) for n in (shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared)]
        call("hipModuleLaunchKernel", function, *sizes, self._stream, given, None)

    def allocate(self, size: int) -> int:
        address = c_void_p()
        call("hipMallocAsync", byref(address), c_size_t(size), self._stream)
        return address.value or 0

    def free(self, address: int) -> None:
        call("hipFreeAsync", c_void_p(address), self._stream)

    def upload(self, address: int, source: int, size: int) -> None:
        # HIP does not say that memory that is not pinned is copied before the call returns.
        self._move("hipMemcpyHtoDAsync", address, source, size)
        self.wait()

    def download(self, target: int, address: int, size: int) -> None:
        self._move("hipMemcpyDtoHAsync", target, address, size)

    def copy(self, address: int, source: int, size: int) -> None:
        self._move("hipMemcpyDtoDAsync", address, source, size)

    def _move(self, name: str, target: int, source: int, size: int) -> None:
        call(name, c_void_p(target), c_void_p(source), c_size_t(size), self._stream)

    def wait(self) -> None:
        call("hipStreamSynchronize", self._stream)
