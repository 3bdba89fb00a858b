"""Backends by name: built-in, registered, and offered by installed packages."""

from __future__ import annotations

import importlib.metadata
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends import discovery
from gptrs.backends.base import Backend, DeviceInfo, Plan
from gptrs.backends.discovery import GROUP, get_backend, known_backends
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.errors import ArgumentError
from gptrs.ir.program import Instruction, Program
from gptrs.ir.types import Array
from tests.support.packages import install

X = np.arange(3, dtype=np.float32)


class Counting(ReferenceBackend):
    """The reference, with a count of the plans that it makes."""

    name = "counting"

    def __init__(self) -> None:
        self.plans = 0

    def plan(self, program: Program, *, precise: bool = False) -> ReferencePlan:
        self.plans += 1
        return super().plan(program, precise=precise)


class Unnamed(Backend):
    def claims(self, instruction: Instruction) -> bool:
        return False

    def plan(self, program: Program, *, precise: bool = False) -> Plan:
        return ReferencePlan(program)

    def devices(self) -> tuple[DeviceInfo, ...]:
        return ()


class Unfinished(Backend):
    name = "unfinished"

    def claims(self, instruction: Instruction) -> bool:
        return False


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    for table in ("_registered", "_instances"):
        monkeypatch.setattr(discovery, table, dict(vars(discovery)[table]))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


SOURCE = """
from gptrs.backends.reference import ReferenceBackend


class Installed(ReferenceBackend):
    name = "installed"
"""


def twice(x: Any) -> Any:
    return x * 2


def double(backend: str | None = None) -> Any:
    return ptir.jit(backend=backend)(twice)


def tensor_of(result: Any) -> Array:
    return result.numpy()


def refused(message: str, name: Any, backend: Any) -> None:
    with pytest.raises(ArgumentError, match=message):
        ptir.register_backend(name, backend)


def test_built_in() -> None:
    assert {"faer", "reference"} <= set(known_backends())
    for name in ("faer", "reference"):
        assert get_backend(name).name == name
        assert get_backend(name) is get_backend(name)


def test_unknown() -> None:
    ptir.register_backend("counting", Counting)
    with pytest.raises(ArgumentError) as error:
        double("countin")
    text = str(error.value)
    assert "there is no backend 'countin'" in text
    assert "counting, cuda, faer, hiprtc, metal, nvrtc, opencl, reference" in text
    assert "ptir.register_backend" in text


def test_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ptir.register_backend("counting", Counting) is Counting
    backend = get_backend("counting")
    assert isinstance(backend, Counting)
    assert tensor_of(double("counting")(X)).tolist() == [0, 2, 4]
    with ptir.backend("counting"):
        double()(X)
    monkeypatch.setenv("GPTRS_BACKEND", "counting")
    double()(X)
    assert backend.plans == 3


def test_threads_get_one_instance() -> None:
    class Slow(Counting):
        def __init__(self) -> None:
            super().__init__()
            time.sleep(0.02)  # the others come meanwhile

    ptir.register_backend("counting", Slow)
    barrier = Barrier(4)

    def get(_: int) -> Backend:
        barrier.wait(timeout=30)
        return get_backend("counting")

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(get, range(4), timeout=60)
    assert all(other is first for other in others)


def test_a_class_may_be_registered_again_another_may_not() -> None:
    ptir.register_backend("counting", Counting)
    ptir.register_backend("counting", Counting)

    class Other(Counting):
        pass

    refused("there is a backend 'counting' already: .*test_discovery:Counting", "counting", Other)
    assert isinstance(get_backend("counting"), Counting)


def test_a_built_in_name_is_taken() -> None:
    class Faster(ReferenceBackend):
        name = "faer"

    refused(r"there is a backend 'faer' already: gptrs\.backends\.faer", "faer", Faster)


@pytest.mark.parametrize(
    ("message", "name", "backend"),
    [
        ("no class of a backend", "counting", Counting()),
        ("no class of a backend", "int", int),
        ("no class of a backend", "f", lambda: None),
        ("Unfinished has no devices, plan", "unfinished", Unfinished),
        ("Unnamed calls itself None, expected 'unnamed'", "unnamed", Unnamed),
        ("Counting calls itself 'counting', expected 'other'", "other", Counting),
        ("a backend's name is a word, found ''", "", Counting),
        ("a backend's name is a word, found 3", 3, Counting),
    ],
)
def test_what_cannot_be_registered(message: str, name: Any, backend: Any) -> None:
    refused(message, name, backend)


def test_installed(site: Path) -> None:
    install(site, "offers", GROUP, "installed = offers:Installed", source=SOURCE)
    assert "installed" in known_backends()
    assert tensor_of(double("installed")(X)).tolist() == [0, 2, 4]
    assert type(get_backend("installed")).__module__ == "offers"


def test_an_installed_name_is_taken(site: Path) -> None:
    install(site, "takes", GROUP, "counting = takes:Installed")
    refused("there is a backend 'counting' already: takes:Installed", "counting", Counting)


def test_packages_are_looked_at_for_unknown_names_only(monkeypatch: pytest.MonkeyPatch) -> None:
    ptir.register_backend("counting", Counting)

    def slow(**_: Any) -> Any:
        raise AssertionError("packages were looked at")

    monkeypatch.setattr(importlib.metadata, "entry_points", slow)
    for name in ("reference", "counting"):
        assert tensor_of(double(name)(X)).tolist() == [0, 2, 4]
    with pytest.raises(AssertionError, match="looked at"):
        get_backend("nobody")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("absent = broken:Absent", r"broken:Absent \(broken 1\.0\): AttributeError: .*'Absent'"),
        ("absent = no_such_module:Absent", r"no_such_module:Absent \(broken 1\.0\): Module"),
        ("absent = broken:Installed", "Installed calls itself 'installed', expected 'absent'"),
        ("absent = broken:__name__", "'broken' is no class of a backend"),
    ],
)
def test_broken_packages(entry: str, message: str, site: Path) -> None:
    install(site, "broken", GROUP, entry, source=SOURCE)
    with pytest.raises(ArgumentError, match=message):
        get_backend("absent")


def test_two_packages_offer_one_name(site: Path) -> None:
    install(site, "one", GROUP, "both = one:Installed", source=SOURCE)
    install(site, "two", GROUP, "both = two:Installed", source=SOURCE)
    both = r"offer a backend 'both': one:Installed \(one 1\.0\), two:Installed \(two 1\.0\)"
    with pytest.raises(ArgumentError, match=both):
        get_backend("both")
