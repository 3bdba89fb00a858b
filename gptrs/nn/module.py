"""`Module`, the base of layers and models: declared fields and a call, as dataclasses.

Subclasses become dataclasses with a type-checked ``__init__``. They are pytrees (`gptrs.tree`), so
parameters and submodules are found by traversing the fields; their dotted paths equal checkpoint
names.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, dataclass_transform

from gptrs import tree
from gptrs.errors import ArgumentError
from gptrs.html_tables import fragment
from gptrs.ir.parameter import Parameter
from gptrs.nn.field_types import declared_types, is_of, type_text, value_text
from gptrs.nn.module_tree import module_tree

ParameterOf: TypeAlias = Callable[[str, tuple[int, ...]], Parameter]
"""A function (name, shape) → parameter, from which models are built."""


@dataclass_transform(eq_default=False)
class Module:
    """Base of layers and models: a subclass declares fields and gets ``__init__`` from them.

    Fields are parameters, other modules, tuples and lists of them, and plain values. ``__init__``
    raises `ArgumentError` for a value that is not of its field's type.
    """

    is_module: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        is_written = "__init__" in vars(cls)
        dataclasses.dataclass(eq=False, repr=False)(cls)
        if not is_written:
            cls.__init__ = _checked(cls, cls.__init__)

    def parameters(self) -> dict[str, Parameter]:
        """The parameters by dotted names, each once: a shared one under its first name."""
        leaves, structure = tree.flatten(self)
        found: dict[str, Parameter] = {}
        seen: set[int] = set()
        for path, leaf in zip(tree.paths(structure), leaves, strict=True):
            if isinstance(leaf, Parameter) and id(leaf) not in seen:
                seen.add(id(leaf))
                found[path.replace("[", ".").replace("]", "").lstrip(".")] = leaf
        return found

    def modules(self) -> dict[str, Module]:
        """This module (``""``) and its submodules by dotted names, parents first, each once."""
        found: dict[str, Module] = {}
        _visit(self, "", found, set())
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.parameters())} parameters)"

    def _repr_html_(self) -> str:
        """The layers as a tree for notebooks; weights that are not loaded stay so."""
        return fragment(module_tree(self))


def _checked(kind: type, init: Callable[..., None]) -> Callable[..., None]:
    """``init`` of a dataclass with type checks of the fields of ``kind``."""
    declared = functools.cache(declared_types)  # names in annotations may be defined later
    signature = inspect.signature(init)

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(self, *args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentError(f"{kind.__name__}: {error}", fix=_usage(kind, signature)) from None
        for name, hint in declared(kind).items():
            if name in given and not is_of(given[name], hint):
                found, expected = value_text(given[name]), type_text(hint)
                raise ArgumentError(
                    f"{kind.__name__}: {name} is {found}, expected {expected}",
                    fix=_usage(kind, signature),
                )
        init(self, *args, **kwargs)

    return checked


def _usage(kind: type, signature: inspect.Signature) -> str:
    """The call that makes a module, with its fields and their types."""
    _, *fields = signature.parameters.values()
    shown = [
        f"{field.name}: {type_text(field.annotation)}"
        + ("" if field.default is field.empty else f" = {field.default!r}")
        for field in fields
    ]
    usage = f"call it as {kind.__name__}({', '.join(shown)})"
    has_weights = any("Parameter" in text for text in shown)
    return usage + "; gptrs.Parameter(array) makes a weight" * has_weights


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
