"""The backend that is taken: by name, by preference, by memory; probes of broken drivers."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir, settings
from gptrs.backends import discovery, probe, selection
from gptrs.backends.base import Availability, DeviceInfo
from gptrs.backends.probe import Probed
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.backends.selection import backend_status
from gptrs.errors import ArgumentError, BackendWarning
from tests.support import device_backends
from tests.support.cli import in_process

MODULE = device_backends.__name__
X = np.arange(6, dtype=np.float32)
Offer = Callable[..., None]


def double(backend: str | None = None) -> Any:
    """A function of its own, so that its programs are."""

    @ptir.jit(backend=backend)
    def doubled(x: Any) -> Any:
        return x * 2

    return doubled


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a test registers and selects is forgotten after it; no driver has answered yet."""
    for module, table in (
        (discovery, "BACKENDS"),
        (discovery, "_registered"),
        (discovery, "_instances"),
    ):
        monkeypatch.setattr(module, table, dict(vars(module)[table]))
    for name in ("opencl", "webgpu", "nvrtc", "hiprtc"):  # no driver of this machine counts
        del discovery.BACKENDS[name]
        discovery._instances.pop(name, None)  # pyright: ignore[reportPrivateUsage]
    discovery.BACKENDS["cuda"] = "gptrs.backends.torch.backend:CudaBackend"
    discovery.BACKENDS["rocm"] = "gptrs.backends.torch.backend:RocmBackend"
    monkeypatch.setattr(selection, "BACKENDS", discovery.BACKENDS)
    monkeypatch.setattr(selection, "_answers", {})
    monkeypatch.setenv(settings.backend.name, "faer")
    selection._automatic.cache_clear()  # pyright: ignore[reportPrivateUsage]
    yield
    selection._automatic.cache_clear()  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Builds backends in; drivers answer in this process."""

    def found(path: str, seconds: float = 0) -> Probed:
        return probe.ask(getattr(device_backends, path.rpartition(":")[2]))

    def add(*classes: type[discovery.Backend]) -> None:
        for each in classes:
            discovery.BACKENDS[each.name] = f"{MODULE}:{each.__name__}"

    monkeypatch.setattr(selection, "probe", found)
    return add


def test_the_processor_is_there() -> None:
    found = {status.name: status for status in gptrs.discover_backends()}
    names = ["cuda", "rocm", "metal", "opencl", "webgpu", "faer", "reference", "torch", "xpu"]
    assert list(found) == names
    (device,) = found["faer"].devices
    assert device.unified_memory
    assert 0 < device.room <= device.total_memory
    assert not found["opencl"].availability
    assert "no package" in found["opencl"].availability.reason


def test_the_processor_is_taken_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gptrs.init_backend().name == "faer"
        assert gptrs.best_available_backend(required="1MB") == "faer"


def test_a_device_is_taken_before_the_processor(offer: Offer) -> None:
    offer(device_backends.Cuda)
    assert gptrs.best_available_backend() == "cuda"
    assert gptrs.init_backend("auto", required="6GB").name == "cuda"
    assert os.environ[settings.backend.name] == "cuda"
    doubled = double()
    assert doubled(X).numpy().tolist() == (X * 2).tolist()
    assert doubled.explain(X).kernels == {}  # as the reference has none


def test_too_little_memory_falls_back_and_says_so(offer: Offer) -> None:
    offer(device_backends.Cuda)
    with pytest.warns(BackendWarning, match=r"'faer' is taken: cuda: GPU has 6.0 GB free, and 7.0"):
        assert gptrs.init_backend(required=7 * 10**9).name == "faer"
    with pytest.raises(ArgumentError, match=r"7.0 GB are needed, .*: cuda: GPU has 6.0 GB free"):
        gptrs.init_backend_with_memory_check("cuda", "7GB")
    with pytest.raises(ArgumentError, match=r"cuda: GPU has 6.0 GB free; faer: .* free"):
        gptrs.init_backend(required="900TB")


def test_the_processor_goes_before_what_it_plays(offer: Offer) -> None:
    offer(device_backends.Software)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is the same device
        assert gptrs.best_available_backend() == "faer"
    assert gptrs.init_backend("opencl").name == "opencl"


@pytest.mark.slow
def test_a_model_is_run_where_it_fits(offer: Offer, good: Path, monkeypatch: Any) -> None:
    offer(device_backends.Cuda)
    plans: list[str] = []
    plan = ReferenceBackend.plan

    def counted(self: ReferenceBackend, program: Any, *, precise: bool = False) -> ReferencePlan:
        plans.append(program.name)
        return plan(self, program, precise=precise)

    monkeypatch.setattr(device_backends.Cuda, "plan", counted)
    model = gptrs.load(good, backend="auto")
    assert (model.backend, gptrs.load(good).backend, plans) == ("cuda", None, [])
    text = model.generate("once", max_tokens=3)
    assert plans == ["gpt2"]
    assert model.session().generate("once", max_tokens=3) == text
    monkeypatch.setattr(DeviceInfo, "room", 6)
    with pytest.raises(ArgumentError, match=r"are needed, .* GPU has 6 B free; faer: .* 6 B free"):
        gptrs.load(good, backend="auto")


def test_what_is_missing_is_an_error_by_name(offer: Offer) -> None:
    with pytest.raises(ArgumentError, match="'opencl' is not available: no package") as raised:
        gptrs.init_backend("opencl")
    assert "entry point" in raised.value.fix
    offer(device_backends.Missing, device_backends.Without)
    with pytest.raises(ArgumentError, match="'metal' is not available: this is no Mac") as raised:
        gptrs.init_backend("metal")
    assert raised.value.fix == "buy one"
    with pytest.raises(ArgumentError, match="'rocm' is not available: there is no device for it"):
        gptrs.init_backend("rocm")
    with pytest.raises(ArgumentError, match="there is no backend 'tpu'"):
        gptrs.init_backend("tpu")
    with pytest.raises(ArgumentError, match="'webgpu' is not available"), ptir.backend("webgpu"):
        pass
    with pytest.raises(ArgumentError, match="'webgpu' is not available"):
        double("webgpu")


def test_names_that_stand_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    doubled = double()
    expected = doubled(X).numpy().tolist()
    for name in ("cpu", "auto"):
        with ptir.backend(name):
            assert doubled(X).numpy().tolist() == expected
        monkeypatch.setenv(settings.backend.name, name)
        assert doubled(X).numpy().tolist() == expected
        assert double(name)(X).numpy().tolist() == expected
    assert doubled.cache_info().currsize == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Crashing", "asking it ended the process with SIGABRT"),
        ("Ending", "asking it ended the process with status 3: no symbol cuInit"),
        ("Hanging", "its driver gave no answer in 3 s"),
        ("Failing", "asking it fails: OSError: PLATFORM_NOT_FOUND_KHR"),
        ("Explaining", "libcuda.so is too old"),
    ],
)
def test_broken_drivers_are_reasons(name: str, reason: str) -> None:
    found = probe.probe(f"{MODULE}:{name}", seconds=3 if name == "Hanging" else 60)
    assert not found.availability
    assert found.availability.reason.startswith(reason)


@pytest.mark.slow
def test_a_driver_is_asked_once_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    discovery.BACKENDS["cuda"] = f"{MODULE}:Cuda"
    first = backend_status("cuda")
    assert first.devices == (DeviceInfo(0, "GPU", 8 * 10**9, 6 * 10**9, "9.0"),)
    monkeypatch.setattr(selection, "probe", None)
    assert backend_status("cuda") is first


def test_the_table(
    offer: Offer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(device_backends.Cuda, device_backends.Missing)
    gptrs.print_backend_summary()
    lines = capsys.readouterr().out.splitlines()
    assert "  ✓ cuda       [0] GPU: 8.0 GB, 6.0 GB free, compute capability 9.0" in lines
    assert "  ✗ metal      this is no Mac" in lines
    assert lines[-1] == "recommended: cuda"
    cli = in_process(monkeypatch, capsys, "backends")
    done = cli("--json")
    report = json.loads(done.out[done.out.index("{") :])
    assert report["recommended"] == "cuda"
    assert next(row["name"] for row in report["backends"] if row["available"]) == "cuda"
    assert "recommended: cuda" in cli().out


def test_a_backend_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Availability("'cuda' cannot be loaded", "mend it")

    def refuse(name: str) -> Any:
        raise ArgumentError(broken.reason, fix=broken.fix)

    discovery.BACKENDS["cuda"] = "nowhere:Cuda"
    monkeypatch.setattr(selection, "backend_class", refuse)
    assert backend_status("cuda").availability == broken
