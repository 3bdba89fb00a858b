"""Modules and layers: checks of fields, and exports."""

# Wrong arguments are what is tested.
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pytest

import gptrs
from gptrs import Parameter, Tensor, nn, ptir
from gptrs.errors import ArgumentError
from gptrs.nn import Conv2d, Embedding, LayerNorm, Linear, Module, activations, layers

if TYPE_CHECKING:
    from decimal import Decimal


class Shouts(Protocol):
    def shout(self) -> str: ...


@dataclass(frozen=True)
class Sizes:
    width: int = 4


class Everything(Module):
    sizes: Sizes
    parts: tuple[Linear, ...]
    pair: tuple[int, str]
    named: dict[str, Linear]
    mode: Literal["last", "all"] = "all"
    activation: Callable[[Tensor], Tensor] = ptir.relu
    maybe: Linear | None = None
    anything: Any = None
    other: Shouts | None = None
    several: list[float] | float = 1.0


class Unresolved(Module):
    price: Decimal
    weight: Parameter


class Written(Module):
    weight: Parameter

    def __init__(self, size: int) -> None:
        self.weight = parameter(size)


class Scaled(Linear):
    factor: float = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) * self.factor


def parameter(*shape: int) -> Parameter:
    return Parameter(np.ones(shape, np.float32), "w")


LINEAR = Linear(parameter(3, 4))
GOOD: dict[str, Any] = {
    "sizes": Sizes(),
    "parts": (LINEAR, LINEAR),
    "pair": (1, "one"),
    "named": {"a": LINEAR},
}


def test_every_layer_is_exported() -> None:
    tree = ast.parse(Path(str(layers.__file__)).read_text())
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert classes <= set(nn.__all__)
    assert all(getattr(nn, name) is getattr(layers, name) for name in classes)
    assert gptrs.nn is nn
    assert nn.ACTIVATIONS is activations.ACTIVATIONS


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Linear(3, 4), "Linear: weight is 3, expected Parameter"),
        (lambda: Linear(parameter(3, 4), True), "Linear: bias is True, expected Parameter | None"),
        (lambda: Linear(np.ones((3, 4))), "weight is an array of float64 [3,4], expected Param"),
        (lambda: Linear(), "Linear: missing a required argument: 'weight'"),
        (lambda: Linear(parameter(3), bais=None), "got an unexpected keyword argument 'bais'"),
        (lambda: Linear(parameter(3), None, 1), "Linear: too many positional arguments"),
        (lambda: Embedding([0.0] * 99), "Embedding: weight is a list, expected Parameter"),
        (lambda: LayerNorm(parameter(3), parameter(3), "1"), "eps is '1', expected float"),
        (
            lambda: LayerNorm(parameter(3), parameter(3), parameter()),
            "eps is a Tensor (f32[]), expected float",
        ),
        (lambda: Conv2d(parameter(1, 1, 3, 3), None, 2), "strides is 2, expected tuple[int, int]"),
        (
            lambda: Conv2d(parameter(1, 1, 3, 3), None, (1, 1), "sme"),
            "padding is 'sme', expected tuple[tuple[int, int], tuple[int, int]] | Literal['same']",
        ),
        (lambda: Scaled(parameter(3), None, "2"), "Scaled: factor is '2', expected float"),
        (lambda: Scaled(3), "Scaled: weight is 3, expected Parameter"),
        (lambda: replace(LINEAR, weight=4), "Linear: weight is 4, expected Parameter"),
    ],
)
def test_wrong_arguments(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        make()
    assert said in raised.value.problem
    assert "(weight: Parameter" in raised.value.fix
    assert "gptrs.Parameter(array) makes a weight" in raised.value.fix


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sizes", 4),
        ("parts", (LINEAR, 4)),
        ("parts", LINEAR),
        ("pair", (1, 2)),
        ("pair", (1,)),
        ("named", {"a": 1}),
        ("named", [LINEAR]),
        ("mode", "first"),
        ("activation", "relu"),
        ("maybe", 0),
        ("several", "many"),
        ("several", [1, "2"]),
    ],
)
def test_a_value_of_another_type(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=f"Everything: {name} is "):
        Everything(**{**GOOD, name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("parts", []),
        ("parts", [LINEAR]),
        ("pair", (np.int64(1), "one")),
        ("mode", "last"),
        ("activation", np.tanh),
        ("anything", object()),
        ("other", object()),  # a protocol is for type checkers
        ("several", 2),
        ("several", np.float32(2)),
        ("several", (1, 2.5)),
    ],
)
def test_a_value_that_is_taken(name: str, value: Any) -> None:
    assert getattr(Everything(**{**GOOD, name: value}), name) is value


def test_types_that_only_checkers_see_are_not_checked() -> None:
    unseen: Any = 3
    assert Unresolved(unseen, unseen).price == 3


def test_a_module_that_writes_its_own() -> None:
    assert Written(3).weight.shape == (3,)


def test_layers_are_made_of_traced_values() -> None:
    @ptir.jit(dynamic={"w": {0: "N"}})
    def apply(x: Any, w: Any) -> Any:
        return Linear(w * 2)(x)

    x, w = np.ones((2, 4), np.float32), np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(apply(x, w).numpy(), np.full((2, 3), 8, np.float32))
