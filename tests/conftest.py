"""What all tests share: one empty folder for compiled kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gptrs import ptir


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
