"""Mutations of modules and their parameters."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.ir.parameter import Parameter
from gptrs.nn.module import Module
from tests.changes.case import Case, Changes, collected_in
from tests.support.slow_path import Layer, layer

LAYERS: Changes = {}
mutation = collected_in(LAYERS)


class Stack(Module):
    layers: list[Layer]

    def __call__(self, x: Any) -> Any:
        for each in self.layers:
            x = each(x)
        return x * 2.0 if self.layers[0] is self.layers[-1] else x


@mutation
def _parameter_replaced_by_another_type() -> Case:
    made = layer(2.0)
    array = np.full((2, 3), 5, np.float32)
    return lambda x: made(x), lambda: setattr(made, "weight", Parameter(array, "w"))


@mutation
def _parameter_replaced() -> Case:
    made = layer(2.0)
    value = np.full(3, 5, np.float32)
    return lambda x: made(x), lambda: setattr(made, "weight", Parameter(value, "w"))


@mutation
def _parameters_tied() -> Case:
    made = Stack([layer(2.0), layer(3.0)])
    return lambda x: made(x), lambda: setattr(made.layers[1], "weight", made.layers[0].weight)


@mutation
def _layers_tied() -> Case:
    made = Stack([layer(2.0), layer(2.0), layer(2.0), layer(2.0), layer(2.0)])
    made.layers[-1].weight = made.layers[0].weight
    return lambda x: made(x), lambda: made.layers.__setitem__(-1, made.layers[0])


@mutation
def _field_of_one_of_many_layers() -> Case:
    made = Stack([layer(i + 2.0) for i in range(6)])
    return lambda x: made(x), lambda: setattr(made.layers[4], "factor", 3.0)


@mutation
def _attribute_added_to_one_of_many_layers() -> Case:
    made = Stack([layer(i + 2.0) for i in range(6)])
    return (
        lambda x: made(x) * getattr(made.layers[4], "more", 1.0),
        lambda: setattr(made.layers[4], "more", 3.0),
    )


@mutation
def _class_of_one_of_many_layers() -> Case:
    class Doubled(Layer):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x) * 2.0

    made = Stack([layer(i + 2.0) for i in range(6)])
    return lambda x: made(x), lambda: setattr(made.layers[4], "__class__", Doubled)
