"""Shared fixtures, the folder of compiled kernels, and the option ``--backend``."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from gptrs import ptir
from gptrs.errors import PtirError
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS
from gptrs.ir.registry import changed
from gptrs.kernels.compiler import isa
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.driver import Driver
from gptrs.kernels.driver.pool_driver import PoolDriver
from gptrs.passes import user_rules
from tests.support.backends import chosen
from tests.support.kernels import LEVELS
from tests.support.marks import slow_unless
from tests.support.models import tiny_gpt2
from tests.support.scalar_operations import checked_plans
from tests.support.slow_path import SlowCalls, counted
from tests.support.steps import needs_pool

SUITE = Path(__file__).parent / "backend_suite"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        metavar="NAME",
        help="run what every backend must do, and no other test, for one backend: NAME is what"
        " GPTRS_BACKEND takes, or MODULE:CLASS",
    )


def pytest_configure(config: pytest.Config) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"  # no test fetches anything, here and in what it starts
    os.environ["GPTRS_CACHE_DIR"] = kernel_folder(config)
    os.environ["GPTRS_COMPILE_PROCESSES"] = "0"  # the tests' own processes use all cores
    try:
        if (option := config.getoption("backend")) is not None:
            chosen(option)
    except PtirError as error:
        raise pytest.UsageError(f"--backend: {error}") from error


def kernel_folder(config: pytest.Config) -> str:
    """The folder of compiled kernels, never the user's.

    It is kept between runs, since the name of a kernel's file is a digest of everything that its
    code depends on, and shared by all processes of a run. ``--cache-clear`` empties it;
    ``-p no:cacheprovider`` gives each process a temporary folder.
    """
    kept: pytest.Cache | None = getattr(config, "cache", None)
    if kept is not None:
        return str(kept.mkdir("gptrs"))
    folder = tempfile.mkdtemp(prefix="gptrs-tests-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``--backend`` only the suite is looked at."""
    apart = not (collection_path == SUITE or SUITE in collection_path.parents)
    other = collection_path.suffix == ".py" and apart
    return True if config.getoption("backend") and other else None


def pytest_collection_finish() -> None:
    """Exclude the modules and tests of the whole run from garbage collections, which many tests ask
    for and which would take half a second each."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def few_scalar_operations() -> Iterator[None]:
    """No plan of any test computes values again and again."""
    with checked_plans():
        yield


@pytest.fixture
def reference() -> Iterator[None]:
    """Programs run on the reference backend, whose results have the bits of eager mode."""
    with ptir.backend("reference"):
        yield


@pytest.fixture
def strict_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands of different dtypes are an error."""
    monkeypatch.setenv("GPTRS_STRICT_DTYPES", "1")


BEST = isa.host_levels()[0].name
BY_LEVEL = [
    pytest.param(level, id=f"{level[1]}-on-{level[0]}", marks=slow_unless(level[1] == BEST))
    for level in LEVELS
]


@pytest.fixture(params=BY_LEVEL)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> isa.Isa:
    """A vector level, for which kernels are compiled from now on: quick at this CPU's best."""
    target, shape = request.param
    monkeypatch.setenv("GPTRS_ISA", target)
    return isa.ISAS[shape]


@pytest.fixture
def fresh_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder for compiled kernels, the test's own, and this CPU's level."""
    monkeypatch.setenv("GPTRS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("GPTRS_ISA", raising=False)


@pytest.fixture(params=[pytest.param("pool", marks=needs_pool), "numba"])
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setenv("GPTRS_DRIVER", cast(str, request.param))
    chosen = current_driver()
    assert chosen.name == request.param
    return chosen


@pytest.fixture
def pool() -> Generator[PoolDriver]:
    """A pool of the test's own."""
    made = PoolDriver()
    yield made
    made.close()


@pytest.fixture
def slow_calls(monkeypatch: pytest.MonkeyPatch) -> SlowCalls:
    """How often a call takes the slow path from now on."""
    return counted(monkeypatch)


@pytest.fixture
def own_implementations(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is gone after it, and no policy comes from outside."""
    monkeypatch.delenv("GPTRS_OVERRIDES", raising=False)
    composites: list[Any] = [op for op in OPS.values() if isinstance(op, Composite)]
    before = [dict(op.implementations) for op in composites]
    yield
    for op, known in zip(composites, before, strict=True):
        op.implementations.clear()
        op.implementations.update(known)


@pytest.fixture
def own_definitions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The ops, rules and kernels that a test defines are gone after it."""
    ops, kernels = dict(OPS), {op: op.kernels for op in OPS.values()}
    monkeypatch.setattr(user_rules, "_rules", {})
    yield
    OPS.clear()
    OPS.update(ops)
    for op, registered in kernels.items():
        op.kernels = registered
    changed()


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a tiny GPT-2, which no test changes."""
    return tiny_gpt2(tmp_path_factory.mktemp("good"))


@pytest.fixture
def directory(good: Path, tmp_path: Path) -> Path:
    """A copy of a good directory, to be spoilt."""
    return shutil.copytree(good, tmp_path / "model")
