"""What all tests share: one empty folder for compiled kernels, and the option ``--backend``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gptrs import ptir
from gptrs.errors import PtirError
from gptrs.kernels import isa
from tests.backends import chosen
from tests.kernels import LEVELS

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
    try:
        if (option := config.getoption("backend")) is not None:
            chosen(option)
    except PtirError as error:
        raise pytest.UsageError(f"--backend: {error}") from error


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``--backend`` only the suite is looked at."""
    apart = not (collection_path == SUITE or SUITE in collection_path.parents)
    other = collection_path.suffix == ".py" and apart
    return True if config.getoption("backend") and other else None


@pytest.fixture(scope="session", autouse=True)
def kernel_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels are compiled once a session, and none come from the user's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPTRS_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


@pytest.fixture
def reference() -> Iterator[None]:
    """Programs run on the reference backend, whose results have the bits of eager mode."""
    with ptir.backend("reference"):
        yield


@pytest.fixture(params=LEVELS, ids=lambda level: f"{level[1]}-on-{level[0]}")
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> isa.Isa:
    """A vector level, for which kernels are compiled from now on, and kept nowhere."""
    target, shape = request.param
    monkeypatch.setenv("GPTRS_ISA", target)
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
    return isa.ISAS[shape]
