"""The table of operators against torch's own samples; all of them by ``tests.torch.opinfo``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gptrs import ptir
from gptrs.torch.aten import TABLE
from tests.torch.opinfo import OPERATORS, check, name_of

SHARES = 6
LEFT = ("jiterator", "sparse", "to_sparse", "as_strided.partial_views", "chalf")
"""Operators that torch itself does not run on a CPU, or that aot_autograd cannot trace."""
BY_COMMAND = ("linalg", "fft", "special", "masked", "signal", "torch.ops", *LEFT)
"""What `tests.torch.opinfo` alone goes through, as other rows have the operators beneath."""


@pytest.fixture(autouse=True)
def eagerly() -> Iterator[None]:
    """What operators mean, without compiling each."""
    with ptir.eager():
        yield


def operators(share: int) -> list[Any]:
    found = [op for op in OPERATORS if torch.float32 in op.dtypes]
    return [op for op in found if not name_of(op).startswith(BY_COMMAND)][share::SHARES]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("share", range(SHARES))
def test_operators_are_right_or_run_by_torch(share: int) -> None:
    reports = [check(operator, torch.float32, 1) for operator in operators(share)]
    assert {r.name: r.error for r in reports if r.error} == {}


def test_the_table_has_names_of_torch() -> None:
    spaces = {True: torch.ops.prims, False: torch.ops.aten}
    for name in TABLE:
        packet, overload = name.removeprefix("prims.").split(".")
        assert hasattr(getattr(spaces[name.startswith("prims.")], packet), overload), name
