"""The suite runs for each backend, or for the one that ``--backend`` names, then in full."""

from __future__ import annotations

import pytest

from gptrs.backends.base import Backend
from gptrs.backends.discovery import get_backend
from tests.support.backends import chosen
from tests.support.rows import rows


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    option: str | None = metafunc.config.getoption("backend")
    names = chosen(option)
    if "case" in metafunc.fixturenames:
        made = [
            pytest.param(name, case, dtype, samples, id=f"{name}-{label}")
            for name in names
            for case, dtype, samples, label in rows(name, everything=option is not None)
        ]
        arguments = ("backend", "case", "dtype", "samples")
        metafunc.parametrize(arguments, made, indirect=["backend"])
    elif "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", names, indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    """The backend under test."""
    found = get_backend(request.param)
    if request.config.getoption("backend") is None and not (there := found.is_available()):
        pytest.skip(f"{found.name}: {there.reason}")
    return found
