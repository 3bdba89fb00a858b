"""`gptrs.lazy_dataclass` makes classes that behave as the standard library's do."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from typing import Any

import pytest

from gptrs.lazy_dataclass import dataclass

Decorator = Callable[..., Any]
BOTH = pytest.mark.parametrize("decorator", [dataclasses.dataclass, dataclass])


def _point(decorator: Decorator, **options: Any) -> Any:
    @decorator(**options)
    class Point:
        x: int
        y: int = field(default=2, compare=False)
        names: list[str] = field(default_factory=list[str], repr=False)
        total: int = field(default=0, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.x + self.y)

    return Point


@BOTH
@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("kw_only", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_fields_are_set_shown_and_compared(
    decorator: Decorator, frozen: bool, kw_only: bool, slots: bool
) -> None:
    kind = _point(decorator, frozen=frozen, kw_only=kw_only, slots=slots)
    point = kind(x=1, y=5)
    assert (point.x, point.y, point.names, point.total) == (1, 5, [], 6)
    assert repr(point).endswith("Point(x=1, y=5, total=6)")
    assert point != kind(x=1, names=["a"])
    assert point != (1, 5)
    assert replace(point, x=3).total == 8
    assert dataclasses.asdict(point) == {"x": 1, "y": 5, "names": [], "total": 6}
    assert kind(x=1).names is not kind(x=1).names
    assert hasattr(point, "__dict__") is not slots


@BOTH
def test_parameters_are_the_fields(decorator: Decorator) -> None:
    kind = _point(decorator)
    assert list(inspect.signature(kind).parameters) == ["x", "y", "names"]
    assert inspect.signature(kind).parameters["y"].default == 2
    with pytest.raises(TypeError, match=r"__init__.* missing"):
        kind()
    with pytest.raises(TypeError, match=r"__init__.* takes"):
        kind(1, 2, [], 4)
    with pytest.raises(TypeError, match="positional"):
        _point(decorator, kw_only=True)(1)


@BOTH
def test_frozen_instances_hash_and_refuse_assignment(decorator: Decorator) -> None:
    @decorator(frozen=True)
    class Key:
        name: str
        note: str = field(default="", compare=False)

    key = Key("a", "first")
    assert key == Key("a", "second")
    assert hash(key) == hash(Key("a", "second"))
    assert {key: 1}[Key("a")] == 1
    with pytest.raises(FrozenInstanceError, match="'name'"):
        key.name = "b"
    with pytest.raises(FrozenInstanceError, match="'name'"):
        del key.name
    with pytest.raises(TypeError, match="unhashable"):
        hash(_point(decorator)(1))


@BOTH
def test_own_methods_stay(decorator: Decorator) -> None:
    @decorator(frozen=True)
    class Base:
        x: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    @decorator(frozen=True, eq=False)
    class Derived(Base):
        y: int = 1

    assert repr(Base(1)) == "own"
    assert Base(1) == 3
    assert hash(Base(1)) == hash(Base(1))
    assert (Derived(1).x, Derived(1, 4).y) == (1, 4)
    assert Derived(1) == Derived(2)


@BOTH
def test_without_comparison_instances_are_their_own(decorator: Decorator) -> None:
    kind = _point(decorator, eq=False)
    point = kind(1)
    assert point == point
    assert point != kind(1)
    assert {point, kind(1)} >= {point}


def test_methods_are_made_when_they_are_needed() -> None:
    kind = _point(dataclass)
    methods: Any = kind.__dict__
    assert not inspect.isfunction(methods["__init__"])
    kind(1)
    assert inspect.isfunction(methods["__init__"])


@BOTH
def test_a_constructor_is_code_of_its_module(decorator: Decorator) -> None:
    kind = _point(decorator)
    kind(1)
    assert kind.__init__.__globals__["__name__"] == __name__


@BOTH
def test_classes_match_by_position(decorator: Decorator) -> None:
    match _point(decorator)(4, 5):
        case object(x=4, y=5):
            pass
        case _:
            pytest.fail("no match")
    assert _point(decorator).__match_args__ == ("x", "y", "names")
