"""The table of operators against torch's own samples; all of them by ``tests.torch.opinfo``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gptrs import ptir
from gptrs.torch.aten import TABLE
from tests.torch.opinfo import OPERATORS, check, name_of

SHARES = 12
LEFT = {
    "allclose": "its result is a Python bool",
    "combinations": "the number of results depends on values",
    "corrcoef": "it asks for values while tracing",
    "cov": "it asks for values while tracing",
    "equal": "its result is a Python bool",
    "item": "its result is a Python number",
    "sparse.mm.reduce": "sparse tensors",
    "sparse.sampled_addmm": "sparse tensors",
}
"""Operators that aot_autograd cannot trace, of f32, with the reason."""


@pytest.fixture(autouse=True)
def eagerly() -> Iterator[None]:
    """What operators mean, without compiling each."""
    with ptir.eager():
        yield


def operators(share: int) -> list[Any]:
    found = [op for op in OPERATORS if torch.float32 in op.dtypes and name_of(op) not in LEFT]
    return found[share::SHARES]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("share", range(SHARES))
def test_operators_are_right_or_run_by_torch(share: int) -> None:
    reports = [check(operator, torch.float32, 1) for operator in operators(share)]
    assert {r.name: r.error for r in reports if r.error} == {}


def test_the_table_has_names_of_torch() -> None:
    for name in TABLE:
        space, _, rest = name.rpartition("prims.")
        packet, overload = rest.split(".")
        namespace = torch.ops.prims if space or name.startswith("prims.") else torch.ops.aten
        assert hasattr(getattr(namespace, packet), overload), name
