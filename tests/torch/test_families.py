"""A few families of transformers; all of them by ``python -m tests.torch.families``."""

from __future__ import annotations

import pytest

from tests.torch.families import compare

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:copyreg")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Bert", "Llama", "T5", "Swin", "ConvNext"])
def test_a_family_is_one_graph_without_torch(name: str) -> None:
    found = compare(name)
    assert found.error < 1e-5
    assert found.graphs == 1
    assert found.fallbacks == ()
