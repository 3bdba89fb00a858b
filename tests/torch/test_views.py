"""Results that are views of operands or of other results, for fixed and for symbolic sizes."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import torch
from torch.testing import assert_close
from torch.utils import _pytree

from gptrs.torch.dynamo import gptrs as backend

VIEWS: dict[str, Callable[[Any], Any]] = {
    "a part": lambda x: x[2:],
    "parts": lambda x: x.split([2, x.shape[0] - 2]),
    "every second": lambda x: x[1::2],
    "transposed": lambda x: x.T,
    "diagonal": lambda x: x[: x.shape[0] // 2].T[1:],
    "one axis more": lambda x: x[:, None].expand(-1, 2, -1),
    "of a result": lambda x: ((y := x * 2), y[1:], y.T),
    "of something else": lambda x: (x * 2)[1:].T,
    "of a row": lambda x: (x[x.shape[0] - 2], x[-1].sum()),
    "beside others": lambda x: (x + 1, x[1:], x[:, 0] * 2, x.unbind(1)),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()  # pyright: ignore[reportPrivateUsage]
    yield
    torch._dynamo.reset()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("name", VIEWS, ids=str)
def test_views(name: str, dynamic: bool) -> None:
    function = VIEWS[name]
    quick = cast("Any", torch.compile(function, backend=backend, dynamic=dynamic))
    for length in (5, 8):
        x = torch.randn(length, 3)
        pairs = zip(*map(_pytree.tree_leaves, (quick(x), function(x))), strict=True)
        for made, wanted in pairs:
            assert_close(made, wanted)
            shares = wanted.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
            if shares:
                assert made.data_ptr() == wanted.data_ptr()
                assert made.stride() == wanted.stride()


def test_a_view_is_written_into() -> None:
    def rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[1:], x * 2

    x = torch.zeros(4, 3)
    row, _ = cast("Any", torch.compile(rows, backend=backend, dynamic=True))(x)
    row += 1
    assert x.sum() == 9


def test_gradients_of_views() -> None:
    def parts(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x * 3)[1:].T, x[: x.shape[0] // 2]

    quick = cast("Any", torch.compile(parts, backend=backend, dynamic=True))
    for length in (4, 7):
        x, y = (torch.ones(length, 3, requires_grad=True) for _ in range(2))
        for function, operand in ((parts, x), (quick, y)):
            first, second = function(operand)
            (first.square().sum() + second.square().sum()).backward()
        assert_close(y.grad, x.grad)
