"""Mutations of numbers, containers and arrays."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import numpy as np

from tests.changes.case import Case, Changes, collected_in
from tests.support.slow_path import Record, X

VALUES: Changes = {}
mutation = collected_in(VALUES)


def sequence(*values: Any, to: Any, at: int = 0) -> Case:
    items = list(values)
    return lambda x: (x, items[at]), lambda: items.__setitem__(at, to)


VALUES["1 to True"] = lambda: sequence(1, to=True)
VALUES["True to 1.0"] = lambda: sequence(True, to=1.0)
VALUES["0.0 to -0.0"] = lambda: sequence(0.0, to=-0.0)
VALUES["tuple of 1 to one of True"] = lambda: sequence((1, 2), to=(True, 2))
VALUES["a tuple to a list"] = lambda: sequence((1, 2), to=[1, 2])
VALUES["large numbers"] = lambda: sequence(2**40, to=2**40 + 1)
VALUES["text"] = lambda: sequence("".join(["a", "b"]), to="".join(["a", "c"]))


@mutation
def _list_element_replaced_by_a_new_object() -> Case:
    items = [Record(2.0)]

    def change() -> None:
        items.clear()  # so that the new one may take the memory of the old one
        items.append(Record(3.0))

    return lambda x: items[0].times(x), change


@mutation
def _dict_reordered() -> Case:
    table = {"a": 2.0, "b": 3.0}

    def change() -> None:
        table["a"] = table.pop("a")

    return lambda x: (x, tuple(table)), change


@mutation
def _dict_key_of_another_type() -> Case:
    table: dict[Any, Any] = {1: 2.0}

    def change() -> None:
        table.clear()
        table[True] = 2.0

    return lambda x: (x, repr(table)), change


@mutation
def _array_in_place() -> Case:
    array = X.copy()
    return lambda x: x * array, lambda: array.fill(7.0)


@mutation
def _array_reshaped_in_place() -> Case:
    array = np.ones(6, np.float32)
    return lambda x: (x, array * 1.0), lambda: setattr(array, "shape", (2, 3))


@mutation
def _large_array_in_place() -> Case:
    array = np.ones((3, 1 << 16), np.float32)
    return lambda x: x * array[:, -1], lambda: array.__setitem__((slice(None), -1), 7.0)
