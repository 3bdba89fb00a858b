"""Some modules of ``torch.nn`` and their gradients; all by ``python -m tests.torch.nn_modules``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gptrs import ptir
from tests.torch.nn_modules import MODULES, check, name_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def eagerly() -> Iterator[None]:
    """What modules give, without compiling the kernels of each."""
    with ptir.eager():
        yield


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("AdaptiveAvgPool2d", "AdaptiveMaxPool2d", "AvgPool2d", "LPPool2d", "MaxPool3d"),
        *("ConvTranspose2d", "Bilinear", "ReplicationPad2d"),
    ],
)
def test_a_module_and_its_gradients_are_right_without_torch(name: str) -> None:
    found = check(next(module for module in MODULES if name_of(module) == name))
    assert found.error == ""
    assert found.fallbacks == ()
    assert found.samples
