"""The tutorial's backend is short, frees values and passes the shared suite."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends import discovery
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.cases.programs import record
from tests.support import ROOT

PAGE = (ROOT / "docs" / "backend.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)


SOURCE = "\n\n".join(blocks("python"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's file is."""
    made = tmp_path_factory.mktemp("mine")
    (made / "numpy_backend.py").write_text(SOURCE, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def module(folder: Path) -> Iterator[ModuleType]:
    """The page's file, imported; what it registers is forgotten afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder), *sys.path])
        for table in ("_registered", "_instances"):
            patch.setattr(discovery, table, dict(vars(discovery)[table]))
        yield importlib.import_module("numpy_backend")
        del sys.modules["numpy_backend"]


def test_it_is_short() -> None:
    assert len([line for line in SOURCE.splitlines() if line.strip()]) < 100
    assert max(map(len, SOURCE.splitlines())) <= 100


def test_values_are_freed_after_their_last_use(module: ModuleType) -> None:
    def chain(x: ptir.Tensor) -> ptir.Tensor:
        for n in range(12):
            x = x * (1.0 + n / 100)
        return x

    backend = discovery.get_backend("numpy")
    plan = backend.plan(lower(record(chain, "f32[1000,1000]"), Context(backend)))
    x = np.ones((1000, 1000), np.float32)
    tracemalloc.start()
    plan.run([x], {})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2.1 * x.nbytes


@pytest.mark.slow
@pytest.mark.parametrize("given", ["numpy_backend:NumpyBackend"])
def test_it_passes_the_suite(given: str, folder: Path) -> None:
    """All that every backend must do; of the table's rows those in f32 and some integers."""
    command = [sys.executable, "-m", "pytest", "--backend", given, "-p", "no:cacheprovider"]
    rows = "not test_row or -f32- or -si8- or -i1-"
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*command, "-k", rows],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped" not in done.stdout
