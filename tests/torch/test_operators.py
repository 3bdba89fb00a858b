"""The table of operators against torch's own samples; all of them by ``tests.torch.opinfo``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gptrs import ptir
from gptrs.torch.aten import TABLE
from tests.torch.opinfo import OPERATORS, check

SHARES = 4
NAMES = frozenset(name.removeprefix("prims.").partition(".")[0] for name in TABLE)


@pytest.fixture(autouse=True)
def eagerly() -> Iterator[None]:
    """What operators mean, without compiling each."""
    with ptir.eager():
        yield


def operators(share: int) -> list[Any]:
    """Those that the table has under their own names; what torch decomposes is left out."""
    found = [op for op in OPERATORS if torch.float32 in op.dtypes and op.aten_name in NAMES]
    return [op for op in found if not op.variant_test_name][share::SHARES]


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
