"""Inputs and outputs of each layer of a model during a run.

The model is copied with instrumented layer classes that report their calls while it is traced; the
reported tensors become results of the program. A layer is named by its dotted path; its second and
later calls have the suffixes ``:2``, ``:3`` and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, cast

from numpy.typing import NDArray

from gptrs import ptir, tree
from gptrs.ir.tensor import Tensor
from gptrs.nn.module import Module

Array: TypeAlias = NDArray[Any]
Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""The positional and keyword arguments of a call."""
_Listener: TypeAlias = Callable[[str, Arguments, object], None]
_Pick: TypeAlias = Callable[[str, Arguments, object], object]

_listener: ContextVar[_Listener | None] = ContextVar("gptrs_layers", default=None)


def layer_outputs(model: Module, inputs: Array, names: Container[str]) -> dict[str, Array]:
    """The outputs of the named layers while ``model`` runs on ``inputs``, in the order in which
    their calls end; of several tensors, the first.

    They are results of the traced program, which therefore stores them.
    """

    found = _run(model, inputs, _outputs(names))
    return {name: cast("Tensor", value).numpy() for name, value in found.items()}


def up_to_layer(model: Module, layer: str) -> tuple[Callable[[Any, Tensor], Any], Module]:
    """A function of a model and its inputs that returns the output of the named layer, and the
    instrumented copy of ``model`` to call it with."""
    return _collector(_outputs((layer,))), _instrumented(model)


def layer_arguments(model: Module, inputs: Array, layer: str) -> Arguments:
    """The arguments of the named layer while ``model`` runs on ``inputs``."""
    found = _run(model, inputs, lambda name, taken, _: taken if name == layer else None)
    return cast("Arguments", found[layer])


def call_name(layer: str, number: int) -> str:
    """The name of a layer's call ``number``, counted from 1."""
    return layer if number == 1 else f"{layer}:{number}"


def first_tensor(value: object) -> Tensor | None:
    """The first tensor in nested containers."""
    leaves, _ = tree.flatten(value, is_leaf=lambda part: isinstance(part, Tensor))
    return next((leaf for leaf in leaves if isinstance(leaf, Tensor)), None)


def _outputs(names: Container[str]) -> _Pick:
    return lambda name, _, result: first_tensor(result) if name in names else None


def _run(model: Module, inputs: Array, pick: _Pick) -> dict[str, object]:
    """The values that ``pick`` selects of each layer call, by name; None is left out."""
    return ptir.jit(_collector(pick))(_instrumented(model), ptir.tensor(inputs))


def _collector(pick: _Pick) -> Callable[[Any, Tensor], dict[str, object]]:
    def layers(model: Any, inputs: Tensor) -> dict[str, object]:
        picked: dict[str, object] = {}
        calls = Counter[str]()

        def hear(name: str, taken: Arguments, result: object) -> None:
            calls[name] += 1
            label = call_name(name, calls[name])
            if (value := pick(label, taken, result)) is not None:
                picked[label] = value

        with _listening(hear):
            model(inputs)
        return picked

    return layers


@contextmanager
def _listening(hear: _Listener) -> Generator[None]:
    token = _listener.set(hear)
    try:
        yield
    finally:
        _listener.reset(token)


def _instrumented(model: Module) -> Module:
    """A copy of ``model`` with the same parameters, whose layers report their calls."""
    names = {id(module): name for name, module in model.modules().items()}
    made: dict[int, object] = {}

    def copy(node: object) -> object:
        container = tree.container_of(type(node))
        if container is None:
            return node
        if id(node) not in made:
            labels, children = container.split(node)
            kind = (
                _instrumented_class(type(node), names[id(node)])
                if id(node) in names
                else type(node)
            )
            made[id(node)] = container.join(kind, labels, [copy(child) for child in children])
        return made[id(node)]

    return cast("Module", copy(model))


def _instrumented_class(kind: Any, name: str) -> type:
    """A subclass of ``kind`` that reports calls under ``name``."""

    def call(self: Module, *args: Any, **kwargs: Any) -> Any:
        result = kind.__call__(self, *args, **kwargs)
        hear = _listener.get()
        if hear is not None and name:
            hear(name, (args, kwargs), result)
        return result

    return type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})
