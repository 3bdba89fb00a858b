"""What a function reads is changed between two calls: no remembered call is stale."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.tensor import Parameter
from gptrs.nn.module import Module
from tests.test_captures import HOLDERS, SCALED
from tests.walks import Walks, counted, leaves

X = np.arange(1, 4, dtype=np.float32)


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> Walks:
    return counted(monkeypatch)


class Scale:
    factor = 2.0

    def __init__(self) -> None:
        self.extra = 1.0

    def times(self, x: Any) -> Any:
        return x * self.factor

    def __call__(self, x: Any) -> Any:
        return x * 2.0


class Shift(Scale):
    def times(self, x: Any) -> Any:
        return x + 5.0


@dataclass
class Record:
    factor: Any = 2.0

    def times(self, x: Any) -> Any:
        return x * self.factor


class Layer(Module):
    weight: Parameter
    factor: Any = 1.0

    def __call__(self, x: Any) -> Any:
        return x * self.weight * self.factor


class Stack(Module):
    layers: list[Layer]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x * 2.0 if self.layers[0] is self.layers[-1] else x


def layer(value: float, factor: Any = 1.0) -> Layer:
    return Layer(Parameter(np.full(3, value, np.float32), "w"), factor)


def helper(x: Any, k: float = 2.0, *, j: float = 1.0) -> Any:
    return x * k + j


def other(x: Any, k: float = 2.0, *, j: float = 1.0) -> Any:
    return x * k - j


def plus_max(x: Any) -> Any:
    return x * max(2.0, 3.0)


Case = tuple[Callable[[Any], Any], Callable[[], Any]]  # what is traced, and a change to it
MUTATIONS: dict[str, Callable[[], Case]] = {}


def mutation(make: Callable[[], Case]) -> Callable[[], Case]:
    MUTATIONS[make.__name__.strip("_")] = make
    return make


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


@mutation
def _closure_reassigned() -> Case:
    k = 2.0

    def change() -> None:
        nonlocal k
        k = 3.0

    return lambda x: x * k, change


@mutation
def _closure_assigned_at_last() -> Case:
    def change() -> None:
        nonlocal k
        k = 3.0

    def function(x: Any) -> Any:
        try:
            return x * k
        except NameError:
            return x

    if not function:
        k = 0.0  # a cell of this function that is empty
    return function, change


@mutation
def _global_rebound() -> Case:
    scope: dict[str, Any] = {"k": 2.0}
    exec("def function(x): return x * k", scope)
    return scope["function"], lambda: scope.update(k=3.0)


@mutation
def _global_deleted() -> Case:
    scope: dict[str, Any] = {"max": lambda *_: 7.0}
    exec("def function(x): return x * max(1.0, 2.0)", scope)
    return scope["function"], lambda: scope.pop("max")


@mutation
def _global_hides_a_builtin() -> Case:
    scope: dict[str, Any] = {"helper": plus_max}
    exec("def function(x): return x * max(1.0, 2.0)", scope)
    return scope["function"], lambda: scope.update(max=lambda *_: 7.0)


@mutation
def _global_of_a_helper_hides_a_builtin() -> Case:
    scope: dict[str, Any] = {}
    exec("def function(x): return x * max(1.0, 2.0)", scope)
    inner = scope["function"]
    return lambda x: inner(x), lambda: scope.update(max=lambda *_: 7.0)


def copy_of(function: Any) -> Any:
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, dict(function.__kwdefaults__)
    return made


@mutation
def _code_replaced() -> Case:
    function = copy_of(helper)
    return lambda x: function(x), lambda: setattr(function, "__code__", other.__code__)


@mutation
def _code_of_the_function_itself_replaced() -> Case:
    function = copy_of(helper)
    return function, lambda: setattr(function, "__code__", other.__code__)


@mutation
def _defaults_replaced() -> Case:
    function = copy_of(helper)
    return lambda x: function(x), lambda: setattr(function, "__defaults__", (5.0,))


@mutation
def _keyword_default_set() -> Case:
    function = copy_of(helper)
    return lambda x: function(x), lambda: function.__kwdefaults__.update(j=5.0)


@mutation
def _function_attribute_added() -> Case:
    function = copy_of(helper)
    return (
        lambda x: x * (function.k if hasattr(function, "k") else 1.0),
        lambda: setattr(function, "k", 5.0),
    )


@mutation
def _wrapped_function_replaced() -> Case:
    @wraps(helper)
    def wrapper(x: Any) -> Any:
        return wrapper.__wrapped__(x)

    function: Any = wrapper
    return lambda x: function(x), lambda: setattr(function, "__wrapped__", other)


@mutation
def _function_of_a_jitted_one_replaced() -> Case:
    inner: Any = ptir.jit(copy_of(helper))
    return lambda x: inner(x), lambda: setattr(inner.__wrapped__, "__code__", other.__code__)


def sequence(*values: Any, to: Any, at: int = 0) -> Case:
    items = list(values)
    return lambda x: (x, items[at]), lambda: items.__setitem__(at, to)


MUTATIONS["1 to True"] = lambda: sequence(1, to=True)
MUTATIONS["True to 1.0"] = lambda: sequence(True, to=1.0)
MUTATIONS["0.0 to -0.0"] = lambda: sequence(0.0, to=-0.0)
MUTATIONS["tuple of 1 to one of True"] = lambda: sequence((1, 2), to=(True, 2))
MUTATIONS["a tuple to a list"] = lambda: sequence((1, 2), to=[1, 2])
MUTATIONS["large numbers"] = lambda: sequence(2**40, to=2**40 + 1)
MUTATIONS["text"] = lambda: sequence("".join(["a", "b"]), to="".join(["a", "c"]))


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


@mutation
def _partial_changed() -> Case:
    made = partial(helper, k=2.0)
    return lambda x: made(x), lambda: made.keywords.update(k=3.0)


@mutation
def _module_attribute_added() -> Case:
    module: Any = types.ModuleType("user_module_of_calls")
    return (
        lambda x: x * (module.k if hasattr(module, "k") else 1.0),
        lambda: setattr(module, "k", 3.0),
    )


@mutation
def _import_replaced() -> Case:
    first, second = (types.ModuleType("gptrs_test_calls") for _ in range(2))
    first.k, second.k = 2.0, 3.0
    sys.modules["gptrs_test_calls"] = first

    def function(x: Any) -> Any:
        import gptrs_test_calls  # pyright: ignore[reportMissingImports]

        return x * gptrs_test_calls.k

    return function, lambda: sys.modules.update(gptrs_test_calls=second)


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


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_change_between_two_calls(name: str, walks: Walks) -> None:
    body, change = MUTATIONS[name]()
    function = ptir.jit(body)
    before = leaves(function(X))
    assert leaves(function(X)) == before
    was_remembered = walks.during(lambda: function(X)) == 0
    assert was_remembered == (name != "closure_assigned_at_last")
    change()
    after = leaves(function(X))
    assert after == leaves(ptir.jit(body)(X))
    assert after != before or name in ("array_reshaped_in_place", "dict_reordered")
    assert walks.during(lambda: function(X)) == 0
    assert leaves(function(X)) == after


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("place", ["closure", "argument"])
def test_what_is_remembered(name: str, place: str, walks: Walks) -> None:
    make, read, change = HOLDERS[name]
    holder = make()
    if place == "closure":
        function, argument = ptir.jit(lambda x, _: x * read(holder)), None
    else:
        function, argument = ptir.jit(lambda x, box: x * read(box)), holder
    for _ in range(2):
        function(X, argument)
        is_torch = name in ("torch", "bf16") and place == "argument"
        assert walks.during(lambda: function(X, argument)) == is_torch
        change(holder, 9.0)


@pytest.mark.parametrize("name", SCALED)
def test_functions_that_are_remembered(name: str, walks: Walks) -> None:
    function = ptir.jit(SCALED[name])
    function(X)
    assert walks.during(lambda: [function(X), function(X + 1)]) == 0
    assert function.cache_info()[:2] == (2, 1)


class Node:
    """Part of a graph that a random walk changes."""

    kind = 1.0

    def __init__(self) -> None:
        self.value: Any = 1.0
        self.items: list[Any] = [1.0, 2.0]
        self.table: dict[str, Any] = {"a": 1.0}
        self.layers = Stack([layer(i + 1.0) for i in range(5)])
        self.array = X.copy()
        self.next: Any = None


def computed(x: Any, node: Any) -> Any:
    total = node.layers(x) * node.kind + node.array
    seen: list[Any] = []
    while node is not None and not any(node is other for other in seen):
        seen.append(node)
        for value in (node.value, *node.items, *node.table.values()):
            total = total + float(value)
        node = node.next
    return total, repr([type(v) for n in seen for v in (n.value, *n.items)])


@pytest.mark.parametrize("seed", range(2))
def test_random_changes(seed: int) -> None:
    random = np.random.default_rng(seed)
    nodes = [Node() for _ in range(3)]
    numbers: list[Any] = [1, True, 1.0, 2.0, 0.0, -0.0]

    def change() -> None:
        node, other = (nodes[i] for i in random.integers(0, 3, 2))
        number = numbers[random.integers(0, 6)]
        layers = node.layers.layers
        here, there = random.integers(0, len(layers), 2)
        changes: list[Callable[[], Any]] = [
            lambda: setattr(node, "value", number),
            lambda: setattr(node, "kind", float(number)),
            lambda: vars(node).pop("kind", None),
            lambda: setattr(Node, "kind", float(number)),
            lambda: node.items.__setitem__(0, number),
            lambda: node.items.append(number),
            lambda: node.items.pop() if len(node.items) > 1 else None,
            lambda: node.table.update(b=number),
            lambda: node.table.pop("b", None),
            lambda: setattr(node, "items", other.items),
            lambda: setattr(node, "items", list(other.items)),
            lambda: setattr(node, "next", other),
            lambda: setattr(node, "next", None),
            lambda: layers.__setitem__(here, layers[there]),
            lambda: layers.__setitem__(here, layer(float(number))),
            lambda: setattr(layers[here], "weight", layers[there].weight),
            lambda: setattr(layers[here], "factor", float(number)),
            lambda: node.array.__setitem__(0, number),
            lambda: setattr(node, "array", other.array.copy()),
            lambda: nodes.__setitem__(0, Node()),
        ]
        changes[random.integers(0, len(changes))]()

    by_argument = ptir.jit(lambda x, node: computed(x, node))
    by_closure = ptir.jit(lambda x: computed(x, nodes[0]))
    for _ in range(60):
        if random.random() < 0.7:
            change()
        expected = leaves(ptir.jit(lambda x: computed(x, nodes[0]))(X))
        assert leaves(by_closure(X)) == expected
        for node in nodes:
            expected = leaves(ptir.jit(lambda x, n=node: computed(x, n))(X))
            assert leaves(by_argument(X, node)) == expected
    Node.kind = 1.0
