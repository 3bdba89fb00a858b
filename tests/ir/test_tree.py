"""Trees of containers: flatten and unflatten, and paths that are Python expressions."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptrs import tree
from gptrs.nn.module import Module


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any = 1


@dataclass(slots=True)
class Slotted:
    a: Any


@dataclass
class Counted:
    a: Any
    made: int = field(default=0, init=False)
    unset: Any = field(init=False)

    def __post_init__(self) -> None:
        self.made += 1
        self.extra = [self.a]


class Layer(Module):
    weight: Any
    inner: Any = None


LEAVES = st.one_of(st.integers(), st.text(), st.none(), st.binary())


def _containers(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(children),
        st.lists(children).map(tuple),
        st.dictionaries(st.one_of(st.text(), st.integers()), children),
        st.dictionaries(st.text(), children).map(OrderedDict),
        st.builds(Pair, children, children),
        st.builds(Frozen, children, children),
        st.builds(Slotted, children),
    )


@pytest.mark.slow
@given(st.recursive(LEAVES, _containers, max_leaves=20))
def test_unflatten_undoes_flatten(value: Any) -> None:
    leaves, structure = tree.flatten(value)
    back = tree.unflatten(structure, leaves)
    assert back == value
    assert repr(back) == repr(value)  # types and the order of keys too
    assert tree.flatten(back) == (leaves, structure)
    assert hash(structure) == hash(tree.flatten(back)[1])
    names = list(tree.paths(structure, "value"))
    assert len(names) == len(leaves) == len(set(names))
    for name, leaf in zip(names, leaves, strict=True):
        assert eval(name, {"value": value}) is leaf


def test_paths_are_python() -> None:
    value = {"k": [Pair(1, Frozen((2,), {"x": 3}))], 4: Layer(5, (6,))}
    _, structure = tree.flatten(value)
    assert list(tree.paths(structure, "v")) == [
        "v['k'][0].left",
        "v['k'][0].right.a[0]",
        "v['k'][0].right.b['x']",
        "v[4].weight",
        "v[4].inner[0]",
    ]


def test_leaves_can_be_replaced_without_running_init() -> None:
    value = Counted(3)
    leaves, structure = tree.flatten(value)
    assert leaves == [3, 1, 3]
    assert list(tree.paths(structure)) == [".a", ".made", ".extra[0]"]
    back: Any = tree.unflatten(structure, ["x", 7, "y"])
    assert (type(back), back.a, back.made, back.extra) == (Counted, "x", 7, ["y"])
    assert not hasattr(back, "unset")
    assert value.extra == [3]


def test_a_named_tuple_with_its_own_constructor() -> None:
    class Checked(Pair):
        def __new__(cls, left: Any) -> Checked:
            return super().__new__(cls, left, -left)

    leaves, structure = tree.flatten(Checked(2))
    assert tree.unflatten(structure, leaves) == (2, -2)
    assert type(tree.unflatten(structure, ["a", "b"])) is Checked


@pytest.mark.parametrize("value", [3, "text", {1, 2}, range(3), None, type, Frozen, iter([])])
def test_what_is_no_container_is_a_leaf(value: Any) -> None:
    leaves, structure = tree.flatten(value)
    assert leaves == [value]
    assert structure == tree.LEAF
    assert list(tree.paths(structure, "v")) == ["v"]
    assert tree.unflatten(structure, leaves) is value


def test_is_leaf_stops() -> None:
    leaves, _ = tree.flatten([(1, 2), [3]], is_leaf=lambda v: isinstance(v, tuple))
    assert leaves == [(1, 2), 3]


def test_structures_differ_by_type_and_labels() -> None:
    values: list[Any] = [
        [1],
        (1,),
        {"a": 1},
        {"b": 1},
        OrderedDict(a=1),
        Pair(1, 2),
        (1, 2),
        Frozen(1, 2),
        1,
    ]
    structures = [tree.flatten(value)[1] for value in values]
    assert len(set(structures)) == len(values)


def test_a_container_can_be_registered() -> None:
    class Ring:
        def __init__(self, *parts: Any) -> None:
            self.parts = parts

    tree.register(
        Ring,
        tree.Container(
            lambda ring: (tuple(range(len(ring.parts))), ring.parts),
            lambda kind, labels, children: kind(*children),
            lambda label: f".parts[{label}]",
        ),
    )
    leaves, structure = tree.flatten([Ring(1, 2)])
    assert leaves == [1, 2]
    assert list(tree.paths(structure, "v")) == ["v[0].parts[0]", "v[0].parts[1]"]
    back: Any = tree.unflatten(structure, [3, 4])
    assert back[0].parts == (3, 4)
