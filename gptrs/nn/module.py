"""Modules: declared fields and a call. Their parameters are found by walking the fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, dataclass_transform

from gptrs import tree
from gptrs.ir.tensor import Parameter

ParameterOf: TypeAlias = Callable[[str, tuple[int, ...]], Parameter]
"""The parameter of a name and a shape: what models are built from."""


@dataclass_transform(eq_default=False)
class Module:
    """Base of layers and models: a subclass declares fields and gets ``__init__`` from them.

    Fields are parameters, other modules, tuples and lists of them, and plain values.
    """

    is_module: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(eq=False, repr=False)(cls)

    def parameters(self) -> dict[str, Parameter]:
        """The parameters by their dotted names, each once: a shared one has its first name."""
        leaves, structure = tree.flatten(self)
        found: dict[str, Parameter] = {}
        seen: set[int] = set()
        for path, leaf in zip(tree.paths(structure), leaves, strict=True):
            if isinstance(leaf, Parameter) and id(leaf) not in seen:
                seen.add(id(leaf))
                found[path.replace("[", ".").replace("]", "").lstrip(".")] = leaf
        return found

    def modules(self) -> dict[str, Module]:
        """This module (called ``""``) and all in it by their dotted names, parents first, each
        once."""
        found: dict[str, Module] = {}
        _visit(self, "", found, set())
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.parameters())} parameters)"


def _visit(node: object, name: str, found: dict[str, Module], seen: set[int]) -> None:
    container = tree.container_of(type(node))
    if container is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, Module):
        found[name] = node
    labels, children = container.split(node)
    for label, child in zip(labels, children, strict=True):
        _visit(child, f"{name}.{label}" if name else str(label), found, seen)
