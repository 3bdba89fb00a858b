"""A kernel of IPython that the tests of this folder share."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.ipython_kernel import Kernel

collect_ignore_glob = [] if importlib.util.find_spec("ipykernel") else ["test_*.py"]


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """It has run two cells, which import gptrs; it shows no progress."""
    from tests.support.ipython_kernel import running_kernel  # imports ipykernel's client

    with running_kernel(tmp_path_factory.mktemp("ipython")) as running:
        begun = running.run(
            "import numpy as np, gptrs\nfrom gptrs import ptir\nX = np.ones(3, 'f4')"
        )
        running.run("import gptrs.notebook.progress as progress; progress._PATIENCE = 3600")
        assert begun.traceback == begun.errors == ""
        yield running
