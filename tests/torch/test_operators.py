"""The table of operators against torch's own samples; all of them by ``tests.torch.opinfo``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from gptrs import ptir
from gptrs.torch.aten import TABLE
from tests.torch.opinfo import OPERATORS, check

SHARES = 4
space: Any = torch  # its stubs leave much out
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


def compiled(function: Callable[..., Any], *operands: Any) -> Any:
    """``function`` by the table, without torch."""
    compiler: Any = space.compile
    return compiler(function, backend="gptrs", options={"strict": True})(*operands)


@pytest.mark.parametrize("find", [torch.median, torch.nanmedian])
def test_medians_go_by_nan(find: Callable[..., Any]) -> None:
    nan = float("nan")
    x = torch.tensor([[3.0, nan, 1.0, 2.0], [4.0, 3.0, 1.0, 2.0], [nan, nan, nan, nan]])
    made, wanted = compiled(find, x, 1), find(x, 1)
    torch.testing.assert_close(made.values, wanted.values, equal_nan=True)
    assert torch.equal(made.indices[:2], wanted.indices[:2])
    torch.testing.assert_close(compiled(find, x), find(x), equal_nan=True)


def test_scalars_are_gathered_and_scattered() -> None:
    x, at, source = torch.tensor(5.0), torch.tensor([0]), torch.tensor([2.0])
    assert compiled(torch.gather, x, 0, at).tolist() == [5.0]
    assert compiled(torch.scatter_add, x, 0, at, source).item() == 7.0
    assert compiled(torch.index_fill, x, 0, at, 1.0).item() == 1.0


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_a_dtype_that_arrays_have_not_is_left_to_torch() -> None:
    x = torch.tensor([1 + 2j], dtype=torch.complex32)
    compiler: Any = space.compile
    assert compiler(torch.clone, backend="gptrs")(x).to(torch.complex64).tolist() == [1 + 2j]


def test_integers_divided_without_rounding_are_fractions() -> None:
    divide: Any = torch.ops.aten.div

    def quotients(x: Any, y: Any) -> Any:
        return divide(x, y, rounding_mode=None), divide(x, 4, rounding_mode=None)

    made = compiled(quotients, torch.tensor([-7, 5]), torch.tensor([2, 4]))
    assert [each.tolist() for each in made] == [[-3.5, 1.25], [-1.75, 1.25]]


def test_integers_to_negative_powers_are_without_fractions() -> None:
    x, y = torch.tensor([-2, -1, -1, 0, 1, 3]), torch.tensor([-1, -2, -3, -1, -5, 2])
    made = compiled(torch.pow, x, y)
    assert torch.equal(made, torch.pow(x, y))
    assert made.tolist() == [0, 1, -1, 0, 1, 9]
    most = torch.tensor([127, -127, -128], dtype=torch.int8)  # the squares of two of them wrap to 1
    assert compiled(torch.pow, most, torch.full_like(most, -1)).tolist() == [0, 0, 0]


def test_factors_of_integers_are_without_fractions() -> None:
    a = torch.arange(9).reshape(3, 3)

    def add(x: torch.Tensor) -> torch.Tensor:
        return space.addmm(x, x, x, beta=2.7, alpha=-1.6)

    assert torch.equal(compiled(add, a), 2 * a - a @ a)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_ranges_of_integers_from_fractions(dtype: torch.dtype) -> None:
    def ranges(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.arange(-1.5, 5.2, 1.3, dtype=dtype) + x,
            torch.linspace(4.3, -3, 9, dtype=dtype) + x,
            torch.linspace(4.3, -3, 1, dtype=dtype) + x,
        )

    zero = torch.zeros((), dtype=dtype)
    for made, wanted in zip(compiled(ranges, zero), ranges(zero), strict=True):
        assert torch.equal(made, wanted)
