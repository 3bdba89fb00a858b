"""Mutations of an object's attributes and of its class."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

from tests.changes.case import Case, Changes, collected_in
from tests.support.slow_path import Scale

OBJECTS: Changes = {}
mutation = collected_in(OBJECTS)


class Shift(Scale):
    def times(self, x: Any) -> Any:
        return x + 5.0


@mutation
def _attribute_set() -> Case:
    scale = Scale()
    return lambda x: x * scale.extra, lambda: setattr(scale, "extra", 3.0)


@mutation
def _attribute_shadows_that_of_the_class() -> Case:
    scale = Scale()
    return scale.times, lambda: setattr(scale, "factor", 3.0)


@mutation
def _attribute_deleted() -> Case:
    scale = Scale()
    scale.factor = 3.0
    return scale.times, lambda: delattr(scale, "factor")


@mutation
def _attribute_renamed() -> Case:
    scale = Scale()

    def rename() -> None:
        vars(scale)["factor"] = vars(scale).pop("extra")

    return scale.times, rename


@mutation
def _whole_dict_replaced() -> Case:
    scale = Scale()
    return scale.times, lambda: setattr(scale, "__dict__", {"extra": 1.0, "factor": 4.0})


@mutation
def _class_of_an_object() -> Case:
    scale = Scale()
    return lambda x: scale.times(x), lambda: setattr(scale, "__class__", Shift)


def fresh_class(**values: Any) -> Any:
    return type("Fresh", (Scale,), values)


@mutation
def _class_attribute_set() -> Case:
    kind = fresh_class(factor=3.0)
    made = kind()
    return made.times, lambda: setattr(kind, "factor", 4.0)


@mutation
def _class_attribute_added() -> Case:
    kind = fresh_class()
    made = kind()
    return made.times, lambda: setattr(kind, "factor", 4.0)


@mutation
def _class_attribute_deleted() -> Case:
    kind = fresh_class(factor=3.0)
    made = kind()
    return made.times, lambda: delattr(kind, "factor")


@mutation
def _method_replaced() -> Case:
    kind = fresh_class(times=lambda self, x: x * 3.0)
    made = kind()
    return lambda x: made.times(x), lambda: setattr(kind, "times", lambda self, x: x * 4.0)


@mutation
def _special_method_added() -> Case:
    kind = fresh_class()
    made = kind()
    return lambda x: made(x), lambda: setattr(kind, "__call__", lambda self, x: x * 4.0)


@mutation
def _bases_changed() -> Case:
    first, second = fresh_class(), fresh_class(times=lambda self, x: x - 1.0)
    kind = type("Kind", (first,), {})
    made = kind()
    return lambda x: made.times(x), lambda: setattr(kind, "__bases__", (second,))


@mutation
def _property_replaced() -> Case:
    kind = fresh_class(value=property(lambda self: 2.0))
    made = kind()
    return lambda x: x * made.value, lambda: setattr(kind, "value", property(lambda self: 3.0))


class Computed:
    """Its attributes come from elsewhere."""

    def __init__(self, source: dict[str, Any]) -> None:
        self.source = source

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.source[name]


@mutation
def _computed_attribute() -> Case:
    source = {"k": 2.0}
    computed = Computed(source)
    return lambda x: x * computed.k, lambda: source.update(k=3.0)
