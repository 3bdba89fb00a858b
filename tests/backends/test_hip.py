"""HIP: kernels compiled by clang for GPUs of AMD, and the calls of ROCm's libraries, which the
processor plays.

Nothing here runs on a GPU. What an emulated run shows is the text of the dialect, the arguments of
kernels, memory and the order of calls.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.backends import discovery
from gptrs.backends.base import Availability
from gptrs.backends.c_family.gpu_dialect import source
from gptrs.backends.hip import backend, driver, hiprtc, libraries
from gptrs.backends.hip.backend import HiprtcBackend
from gptrs.backends.hip.device import HipGpu
from gptrs.backends.torch import devices
from gptrs.backends.torch.backend import RocmBackend as TorchRocmBackend
from gptrs.backends.triton import compiler
from gptrs.backends.triton.compiler import Target
from tests.backends.test_cuda import drawn, kernels
from tests.support import ROOT
from tests.support.cuda_emulator import Emulator
from tests.support.hip_emulator import HipEmulator
from tests.support.rows import check_sample

ARCHITECTURES = ("gfx90a", "gfx942", "gfx1100")
_RUN = 180  # one row in so many runs

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
needs_clang = pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed")


@pytest.fixture
def rocm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HipEmulator:
    """The backend ``hiprtc`` with emulated libraries."""
    found = HipEmulator(Emulator(tmp_path))
    for module in (libraries, hiprtc, driver):
        monkeypatch.setattr(module, "library", found.library)
    monkeypatch.setattr(compiler, "has_triton", lambda: False)
    monkeypatch.setitem(discovery._instances, "hiprtc", HiprtcBackend())  # pyright: ignore[reportPrivateUsage]
    return found


@needs_clang
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_compile(architecture: str, tmp_path: Path) -> None:
    prelude = (ROOT / "tests" / "support" / "hip_prelude.h").read_text()
    text, code = tmp_path / "kernels.hip", tmp_path / "kernels.o"
    text.write_text(f"{prelude}\n{source(kernels())}")
    clang = (sys.executable, "-m", "ziglang", "clang", "-cc1", "-triple", "amdgcn-amd-amdhsa")
    flags = ("-x", "hip", "-fcuda-is-device", "-std=c++17", "-O1", "-ffp-contract=off", "-w")
    places = ("-target-cpu", architecture, "-emit-obj", "-o", str(code), str(text))
    done = subprocess.run((*clang, *flags, *places), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert code.read_bytes().startswith(b"\x7fELF")


@needs_gcc
def test_calls_of_the_driver(rocm: HipEmulator) -> None:
    function = ptir.jit(lambda x, y: (x @ y * 2, x), backend="hiprtc", dynamic={"x": {0: "N"}})  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownVariableType]
    rng = np.random.default_rng(5)
    y = rng.standard_normal((37, 66)).astype(np.float32)
    for rows in (3, 70):
        x = rng.standard_normal((rows, 37)).astype(np.float32)
        rocm.calls.clear()
        first, second = cast("tuple[Any, Any]", function(x, y))
        assert "hipMemcpyDtoHAsync" not in rocm.calls
        assert first.device == second.device == "hiprtc"
        assert np.allclose(first, x @ y * 2, rtol=1e-5, atol=1e-5)
        assert second.tolist() == x.tolist()
    assert rocm.calls.count("hipMemcpyDtoHAsync") == 2  # for each result that was read
    del first, second
    function(x, y)
    assert "hipFreeAsync" in rocm.calls


@needs_gcc
@pytest.mark.slow
def test_rows_on_the_emulator(rocm: HipEmulator) -> None:
    rows = list(drawn(_RUN))
    assert len(rows) > 8
    for case, dtype, number in rows:
        check_sample(case, number, dtype, discovery.get_backend("hiprtc"))


@needs_gcc
@pytest.mark.slow
def test_a_language_model_takes_the_same_tokens(rocm: HipEmulator) -> None:
    model = gptrs.load("stories")
    told: list[str] = []
    for name in ("hiprtc", "faer"):
        with ptir.backend(name):
            told.append(str(model.generate("Once upon a time", max_tokens=4, temperature=0)))
    assert told[0] == told[1]


def test_what_is_found(rocm: HipEmulator) -> None:
    (device,) = HiprtcBackend().devices()
    assert (device.name, device.total_memory) == ("Emulated GPU", 2**33)
    assert device.compute_capability == "9.4"
    assert HipGpu().target() == Target("hip", "gfx942", 64)
    rocm.devices = 0
    found = HiprtcBackend().is_available()
    assert found.is_absent
    assert "no driver has an AMD GPU" in found.reason
    assert HiprtcBackend().devices() == ()


def test_what_fails_is_told(rocm: HipEmulator) -> None:
    with pytest.raises(gptrs.PtirError, match="hipRTC does not compile a kernel: error: y is not"):
        hiprtc.compiled("__global__ void f() { y = 1; }")
    with pytest.raises(gptrs.PtirError, match="HIP fails in hipDeviceGetName: error 101"):
        driver.info(4)


def test_without_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "library", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert "install ROCm" in HiprtcBackend.missing().fix
    assert not HiprtcBackend().is_available()


@pytest.mark.parametrize(
    ("runtime", "torch", "name"),
    [(True, False, "_RocmKernels"), (True, True, "RocmBackend"), (False, False, "RocmBackend")],
)
def test_what_rocm_stands_for(
    runtime: bool, torch: bool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = Availability("not here", is_absent=True)
    monkeypatch.setattr(driver, "missing", lambda: Availability() if runtime else absent)
    monkeypatch.setattr(devices, "missing", lambda build: Availability() if torch else absent)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    found = backend.chosen_rocm()
    assert found.__name__ == name
    assert found.name == "rocm"
    assert issubclass(found, HiprtcBackend | TorchRocmBackend)


def test_libraries_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libnothing_here.so").write_text("no library")
    assert libraries.library.__wrapped__("nothing_here") is None
    assert libraries.library.__wrapped__("absent") is None
