"""Numbers that depend on symbolic sizes: their values, and whether one program serves all sizes."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import gptrs
from gptrs import ptir
from gptrs.torch.compiled import noted_calls
from gptrs.torch.dynamo import gptrs as backend

ONE_PROGRAM: dict[str, Callable[[Any], Any]] = {
    "a mean": lambda x: x.sum() / x.shape[0],
    "a scale": lambda x: x * x.shape[0] ** -0.5,
    "a root": lambda x: x / math.sqrt(x.shape[0]),
    "a multiple": lambda x: x * (0.5 * x.shape[0] - 1),
    "a fraction": lambda x: x + torch.arange(x.shape[0]) / x.shape[0],
    "an exponent": lambda x: x.abs() ** (1 / x.shape[0]),
    "a mask": lambda x: (x > 0) * x.shape[0],
    "integers": lambda x: (x > 0).long() * (x.shape[0] / 2),
    "a half": lambda x: x[: int(x.shape[0] / 2)],
    "the greater half": lambda x: x[: math.ceil(x.shape[0] / 2)],
    "a turn": lambda x: x.roll(x.shape[0] // 2),
    "a pooled plane": lambda x: nn.functional.max_pool2d((x[:, None] * x)[None], 2),
    "two results": lambda x: (x * 2, x.shape[0] * 2),
}
A_PROGRAM_EACH: dict[str, Callable[[Any], Any]] = {
    "a result": lambda x: (x * 2, x.shape[0] / 2),
    "a logarithm": lambda x: x * math.log(x.shape[0]),
    "an attribute": lambda x: torch.add(x, x, alpha=x.shape[0] / 2),
    "elements": lambda x: torch.full((x.shape[0],), x.shape[0] / 3),
    "of unknown sign": lambda x: x * int((x.shape[0] - 10) / 2),
    "the greater one": lambda x: x * max(x.shape[0], 8),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()  # pyright: ignore[reportPrivateUsage]
    yield
    torch._dynamo.reset()  # pyright: ignore[reportPrivateUsage]


def hold(function: Callable[[Any], Any]) -> int:
    """Compare results with torch's for three sizes. How many programs there are."""
    quick = cast("Any", torch.compile(function, backend=backend, dynamic=True))
    with noted_calls() as calls:
        for length in (7, 12, 9):
            x = torch.randn(length)
            assert_close(quick(x), function(x))
    assert not any(call.fallbacks for call in calls)
    return len({call.function for call in calls})


@pytest.mark.parametrize("name", ONE_PROGRAM, ids=str)
def test_one_program(name: str) -> None:
    assert hold(ONE_PROGRAM[name]) == 1


@pytest.mark.parametrize("name", A_PROGRAM_EACH, ids=str)
def test_a_program_for_each_size(name: str) -> None:
    assert hold(A_PROGRAM_EACH[name]) == 3


@pytest.mark.parametrize("name", ONE_PROGRAM | A_PROGRAM_EACH, ids=str)
def test_op_by_op(name: str) -> None:
    with ptir.eager():
        hold((ONE_PROGRAM | A_PROGRAM_EACH)[name])


def test_exported() -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * x.shape[0] ** -0.5

    size = torch.export.Dim("size", min=2)
    exported = gptrs.from_torch(Scaled(), (torch.ones(4),), dynamic_shapes=({0: size},))
    for length in (3, 8):
        x = torch.randn(length)
        assert_close(torch.as_tensor(exported(x).numpy()), x * length**-0.5)
