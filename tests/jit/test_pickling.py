"""Jitted functions are pickled by reference, and are atoms to `copy`."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError
from tests.support.jitted import X, equal, plus


@ptir.jit
def doubled(x: Any) -> Any:
    return x * 2


class Model:
    @ptir.jit
    def step(self, x: Any) -> Any:
        return x + 1


renamed = ptir.jit(plus)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_function_is_pickled_by_its_name(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(doubled, protocol)) is doubled
    assert pickle.loads(pickle.dumps(Model.step, protocol)) is Model.step
    equal(pickle.loads(pickle.dumps(Model().step, protocol))(X), X + 1)
    assert b"doubled" in pickle.dumps(doubled, protocol)
    assert len(pickle.dumps(doubled, protocol)) < 100


def test_copies_are_the_function_itself() -> None:
    local: Any = ptir.jit(lambda x: x)
    functions: list[Any] = [doubled, local]
    for function in functions:
        assert copy.copy(function) is function
        assert copy.deepcopy([function]) == [function]


def test_functions_without_a_name_to_find() -> None:
    def inner(x: Any) -> Any:
        return x

    cases: list[tuple[Any, str]] = [
        (ptir.jit(lambda x: x), "is a lambda"),
        (ptir.jit(inner), "is defined inside a function"),
        (renamed, "there is another object of this name in tests.support.jitted"),
    ]
    for function, text in cases:
        with pytest.raises(ArgumentError, match=text) as error:
            pickle.dumps(function)
        assert "fix: de" in str(error.value)
