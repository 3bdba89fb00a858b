"""``model.parameters()``: a mapping of dotted names to parameters, with replacement.

A replaced parameter takes the place of the old one in all modules; packed and derived weights of
the old one are freed with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gptrs import tree
from gptrs.errors import ArgumentError, UnknownNameError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import as_array
from gptrs.ir.types import Array, Type, as_dtype
from gptrs.loading.closest_name import nearest
from gptrs.params import base_param_id, param_key


class ModelParameters(Mapping[str, Parameter]):
    """A model's parameters by their dotted names, as in ``module.parameters()``.

    ``parameters[name] = array`` replaces a parameter in all modules. Values derived from the old
    one (packed, transposed, folded) are freed with it.

    ``namespace`` is that of the model, ``names`` maps tensor names in its files to parameter names.
    """

    def __init__(
        self, module: Any, namespace: int = 0, names: Mapping[str, str] | None = None
    ) -> None:
        self._module = module
        self._namespace = namespace
        self._names = names or {}

    def __getitem__(self, name: str) -> Parameter:
        """The parameter called ``name``. Raises `UnknownNameError`, a `KeyError`, for another."""
        parameter = self._all().get(name)
        if parameter is None:
            raise self._unknown(name)
        return parameter

    def __contains__(self, name: object) -> bool:
        return name in self._all()  # without building the text of an error

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __setitem__(self, name: str, value: object) -> None:
        """Put the elements of ``value``, which are copied, in the place of those of ``name``.

        Raises `UnknownNameError` for an unknown name, and `ArgumentError` for what is no array and
        for another shape or dtype.
        """
        old = self[name]
        elements = _elements(name, old.type, value)
        _replace(self._module, old, Parameter(elements, old.name), set())

    def by_id(self, base_id: int) -> Parameter:
        """The parameter whose name, here or in the model's files, has the `base_param_id`
        ``base_id``; it is read from them when its elements are asked for.

        Raises `ArgumentError` when there is none.
        """
        found = {parameter.name: parameter for parameter in self._all().values()}
        for key, name in self._names.items():
            if name in found:
                found.setdefault(key, found[name])
        for name, parameter in found.items():
            if base_param_id(name) == base_id:
                return parameter
        raise ArgumentError(
            f"no parameter of the model has the id {base_id:#034x}",
            fix="take an id of `gptrs info`, or gptrs.params.base_param_id(name)",
        )

    def key(self, name: str) -> int:
        """The `param_key` of the parameter called ``name``, which none of another model has.

        Raises `UnknownNameError` for an unknown name.
        """
        return param_key(self._namespace, self[name].id)

    def __repr__(self) -> str:
        return f"ModelParameters({len(self)} of {type(self._module).__name__})"

    def _all(self) -> dict[str, Parameter]:
        return self._module.parameters()

    def _unknown(self, name: object) -> UnknownNameError:
        near = nearest(str(name), self._all())
        return UnknownNameError(
            f"the model has no parameter {name!r}; it has {len(self)}",
            fix=f"take a name of parameters(), such as {near!r}" if near else "",
        )


def _elements(name: str, type: Type, value: object) -> Array:
    """A copy of ``value``, which has the ``type``. Raises `ArgumentError`."""
    array = as_array(value)
    if array is None:
        raise ArgumentError(
            f"parameter {name}: found a {value.__class__.__name__}, expected an array {type}",
            fix="pass a NumPy array, a torch tensor or a Tensor",
        )
    found = Type(array.shape, as_dtype(array.dtype))
    if found != type:
        fits = found.shape == type.shape
        raise ArgumentError(
            f"parameter {name}: found {found}, expected {type}",
            fix="convert it with astype" if fits else "pass an array of the same shape",
        )
    return np.array(array, order="C")


def _replace(node: object, old: Parameter, new: Parameter, seen: set[int]) -> object:
    """``node`` with ``new`` in place of ``old``: modules, lists and dicts are changed in place,
    tuples are copied."""
    if node is old:
        return new
    container = tree.container_of(type(node))
    if container is None or id(node) in seen:
        return node
    labels, children = container.split(node)
    changed = [_replace(child, old, new, seen) for child in children]
    moved = [
        (label, now)
        for label, before, now in zip(labels, children, changed, strict=True)
        if now is not before
    ]
    place: Any = node
    if isinstance(node, tuple):
        kind: type = place.__class__
        return container.join(kind, labels, changed) if moved else place
    seen.add(id(node))
    for label, now in moved:
        if isinstance(node, list | dict):
            place[label] = now
        else:
            setattr(place, str(label), now)
    return place
