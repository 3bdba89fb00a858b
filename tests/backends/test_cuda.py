"""CUDA C: rows of the op table and whole programs compiled by NVRTC for several architectures, and
the calls of the driver, whose GPU is emulated by the processor.

Nothing here runs on a GPU. What an emulated run shows is the text of the dialect, the arguments of
kernels, memory and the order of calls.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.backends import discovery
from gptrs.backends.base import Availability
from gptrs.backends.c_family.gpu_dialect import source
from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.c_family.kernels import PARALLEL_KERNELS, PLAIN_KERNELS
from gptrs.backends.c_family.schedule import DTYPES, KernelStep, claims, schedule_of
from gptrs.backends.cuda import backend, driver, nvrtc
from gptrs.backends.cuda.backend import NvrtcBackend
from gptrs.backends.reference import ReferenceBackend
from gptrs.backends.torch import devices
from gptrs.backends.torch.backend import CudaBackend as TorchCudaBackend
from gptrs.ir.program import Instruction, Program
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.backend_suite.test_backend_programs import PROGRAMS, SYMBOLIC, recorded
from tests.cases import CASES
from tests.cases.sample import inputs, is_symbolic
from tests.support.cuda_emulator import Emulator, emulated
from tests.support.rows import check_sample, trace

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
_SHARE = 24  # one row in so many is compiled
_RUN = 180  # and one in so many run on the emulator

needs_nvrtc = pytest.mark.skipif(not nvrtc.has_compiler(), reason="NVRTC is not installed")
needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")


class LoweredAsOnDevices(ReferenceBackend):
    """What the passes ask: claims as devices have them."""

    def claims(self, instruction: Instruction) -> bool:
        return claims(instruction)


def drawn(share: int) -> Iterator[tuple[Any, str, int]]:
    """Rows of the op table with a dtype and the number of a sample, always the same."""
    for number, case in enumerate(CASES):
        for dtype in case.dtypes:
            seed = zlib.crc32(f"{number} {dtype} cuda".encode())
            if not seed % share:
                yield case, dtype, seed // share % len(case.samples)


def kernels_of(program: Program) -> list[Kernel]:
    lowered = lower(program, Context(LoweredAsOnDevices(), precise=True), check=False)
    steps = [
        step
        for makers in (PARALLEL_KERNELS, PLAIN_KERNELS)
        for grouped in (True, False)
        for step in schedule_of(lowered, DTYPES, makers, grouped=grouped).steps
    ]
    return [call.kernel for step in steps if isinstance(step, KernelStep) for call in step.calls]


@cache
def kernels() -> tuple[Kernel, ...]:
    """The kernels of rows and of the programs of the shared suite, each once."""
    programs = [recorded(function, types) for function, types in (PROGRAMS | SYMBOLIC).values()]
    for case, dtype, number in drawn(_SHARE):
        sample = case.samples[number]
        programs.append(trace(case, inputs(sample, dtype, symbolic=is_symbolic(sample))))
    return tuple(dict.fromkeys(kernel for p in programs for kernel in kernels_of(p)))


@needs_nvrtc
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_compile(architecture: str) -> None:
    found = kernels()
    assert len(found) > 80
    assert any(kernel.group for kernel in found)
    code = nvrtc.compiled(source(found), architecture)
    assert code.startswith(b"\x7fELF")


@needs_nvrtc
def test_what_does_not_compile_is_told() -> None:
    with pytest.raises(gptrs.PtirError, match="NVRTC does not compile a kernel"):
        nvrtc.compiled("__global__ void f() { y = 1; }", "sm_90")


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """The backend ``nvrtc`` with a driver that is emulated."""
    return emulated(tmp_path, monkeypatch)


@needs_gcc
def test_calls_of_the_driver(emulator: Emulator) -> None:
    function = ptir.jit(lambda x, y: (x @ y * 2, x), backend="nvrtc", dynamic={"x": {0: "N"}})  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownVariableType]
    rng = np.random.default_rng(5)
    y = rng.standard_normal((37, 66)).astype(np.float32)
    for rows in (3, 70):
        x = rng.standard_normal((rows, 37)).astype(np.float32)
        emulator.calls.clear()
        first, second = cast("tuple[Any, Any]", function(x, y))
        assert "cuStreamSynchronize" not in emulator.calls
        assert first.device == second.device == "nvrtc"
        assert np.allclose(first, x @ y * 2, rtol=1e-5, atol=1e-5)
        assert second.tolist() == x.tolist()
    assert emulator.calls.count("cuStreamSynchronize") == 2  # for each result that was read


@needs_gcc
@pytest.mark.slow
def test_rows_on_the_emulator(emulator: Emulator) -> None:
    rows = list(drawn(_RUN))
    assert len(rows) > 8
    for case, dtype, number in rows:
        check_sample(case, number, dtype, discovery.get_backend("nvrtc"))


@needs_gcc
@pytest.mark.slow
def test_a_language_model_takes_the_same_tokens(emulator: Emulator) -> None:
    model = gptrs.load("stories")
    told: list[str] = []
    for name in ("nvrtc", "faer"):
        with ptir.backend(name):
            told.append(str(model.generate("Once upon a time", max_tokens=4, temperature=0)))
    assert told[0] == told[1]


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "missing", Availability)
    monkeypatch.setattr(driver, "device_count", lambda: 0)
    found = NvrtcBackend().is_available()
    assert found.is_absent
    assert "no driver has an NVIDIA GPU" in found.reason
    assert NvrtcBackend().devices() == ()


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert "gptrs[cuda]" in NvrtcBackend.missing().fix
    assert not NvrtcBackend().is_available()


@pytest.mark.parametrize(
    ("bindings", "torch", "name"),
    [
        (True, False, "_CudaKernels"),
        (True, True, "CudaBackend"),
        (False, False, "CudaBackend"),
    ],
)
def test_what_cuda_stands_for(
    bindings: bool, torch: bool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = Availability("not here", is_absent=True)
    monkeypatch.setattr(driver, "missing", lambda: Availability() if bindings else absent)
    monkeypatch.setattr(devices, "missing", lambda build: Availability() if torch else absent)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    found = backend.chosen_cuda()
    assert found.__name__ == name
    assert found.name == "cuda"
    assert issubclass(found, NvrtcBackend | TorchCudaBackend)
