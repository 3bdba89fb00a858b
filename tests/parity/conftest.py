"""Parity holds against torch's own kernels: on some CPUs oneDNN's gelu of infinity is NaN."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def own_kernels() -> Iterator[None]:
    """torch computes without oneDNN. Its context manager warns, as it sets other flags too."""
    flags: Any = import_module("torch._C")
    before = flags._get_mkldnn_enabled()
    flags._set_mkldnn_enabled(False)
    yield
    flags._set_mkldnn_enabled(before)
