"""Pytrees of operands and results of control flow: flattening, rebuilding, comparison.

Users pass and return trees of arrays (tuples, dicts, modules). `take_apart` flattens a tree into
tensors and a structure; `OperandTree.value` rebuilds it. `check_form` and `check_types` raise with
the path of the first difference. Used by `gptrs.ir.control` and `gptrs.jit.arguments`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gptrs import tree
from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.dims import same_shape
from gptrs.ir.program import key_of
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import Type, common_dtype
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class OperandTree:
    """A flattened tree of tensors. A leaf that is no array stays in place and is part of the
    structure."""

    root: str
    structure: tree.Structure
    leaves: tuple[Any, ...]

    @property
    def tensors(self) -> list[Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]

    @property
    def places(self) -> list[str]:
        """The path of each tensor, in Python syntax."""
        return [path for path, leaf in self.named() if isinstance(leaf, Tensor)]

    def named(self) -> Iterator[tuple[str, Any]]:
        """The leaves with their paths."""
        return zip(tree.paths(self.structure, self.root), self.leaves, strict=True)

    def with_tensors(self, tensors: Sequence[Tensor]) -> OperandTree:
        """The same structure with other tensors."""
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
        return replace(self, leaves=tuple(leaves))

    def value(self) -> Any:
        """The tree rebuilt, as users see it: tensors that a function may write into."""
        own = [leaf.copy() if type(leaf) is Tensor else leaf for leaf in self.leaves]
        return tree.unflatten(self.structure, own)


def is_module(value: object) -> bool:
    """Whether ``value`` is a model or a layer."""
    return getattr(type(value), "is_module", False)


def take_apart(value: object, root: str, *, modules: bool = True) -> OperandTree:
    """Flatten the tree ``value``, called ``root``. Numbers become weak tensors and arrays tensors.

    A module is a container whose numbers are settings; without ``modules`` it is no container.
    """
    outer, structure = tree.flatten(value, is_leaf=is_module)
    leaves: list[object] = []
    inner: list[tree.Structure] = []
    for leaf, path in zip(outer, tree.paths(structure, root), strict=True):
        if modules and is_module(leaf):
            fields, form = tree.flatten(leaf)
            leaves += [
                f if isinstance(f, int | float | complex) else _as_leaf(f, path) for f in fields
            ]
            inner.append(form)
        else:
            leaves.append(_as_leaf(leaf, path))
            inner.append(tree.LEAF)
    return OperandTree(root, _spliced(structure, iter(inner)), tuple(leaves))


def _as_leaf(value: Any, path: str) -> object:
    """A Tensor for arrays and numbers, anything else as it is."""
    if isinstance(value, Tensor | enum.Enum | str | bytes):
        return value
    if isinstance(value, int | float | complex) and not isinstance(value, np.generic):
        return number(value, path)
    array = as_array(value)
    return value if array is None else Tensor.of_array(array)


def number(value: complex, path: str) -> Tensor:
    """A weak tensor of rank 0: it takes the dtype of the other operand. A bool is i1 and stays
    i1."""
    if isinstance(value, bool):
        return Tensor.of_array(np.asarray(value))
    try:
        kind = np.int64 if isinstance(value, int) else type(value)
        return Tensor.of_array(np.asarray(value, kind), weak=True)
    except OverflowError:
        raise ArgumentError(f"{path} is {value}, which does not fit 64 bits") from None


def _spliced(structure: tree.Structure, inner: Iterator[tree.Structure]) -> tree.Structure:
    """``structure`` with each leaf replaced by the next structure of ``inner``."""
    if structure.kind is None:
        return next(inner)
    return replace(structure, children=tuple([_spliced(c, inner) for c in structure.children]))


class Sides(NamedTuple):
    """How messages call two trees that must be alike."""

    first: str
    second: str
    rule: str
    """The rule that is violated."""


def check_form(first: OperandTree, second: OperandTree, sides: Sides) -> None:
    """Raise `ArgumentError` with the first path at which two structures differ."""
    if (found := _difference(first.structure, second.structure, first.root)) is not None:
        place, one, other = found
        raise ArgumentError(_told(place, one, other, sides), fix=sides.rule)
    for (path, a), (_, b) in zip(first.named(), second.named(), strict=True):
        alike = isinstance(a, Tensor) and isinstance(b, Tensor)
        if not alike and (isinstance(a, Tensor) or a is not b) and not _equal(a, b):
            raise ArgumentError(_told(path, _shown(a), _shown(b), sides), fix=sides.rule)


def check_types(first: OperandTree, second: OperandTree, sides: Sides) -> None:
    """Raise `ShapeError` or `DTypeError` with the first path at which two types differ."""
    for path, a, b in zip(first.places, first.tensors, second.tensors, strict=True):
        text = _told(path, str(a.type), str(b.type), sides)
        if not same_shape(a.shape, b.shape):
            raise ShapeError(text, fix=sides.rule)
        if a.dtype is not b.dtype:
            wanted = common_dtype([a.dtype, b.dtype])
            side = sides.second if wanted is a.dtype else sides.first
            raise DTypeError(text, fix=f"{sides.rule}: {side}, x.astype({wanted.name!r})")


def _told(place: str, first: str, second: str, sides: Sides) -> str:
    return f"{place} is {first} {sides.first}, and {second} {sides.second}"


def _equal(a: object, b: object) -> bool:
    return type(a) is type(b) and bool(key_of(a) == key_of(b))


def _shown(leaf: object) -> str:
    return str(leaf.type) if isinstance(leaf, Tensor) else repr(leaf)


def _difference(a: tree.Structure, b: tree.Structure, path: str) -> tuple[str, str, str] | None:
    """The outermost path at which two structures differ, and the two parts there."""
    if a.kind is not b.kind or a.labels != b.labels:
        return path, _form(a), _form(b)
    container = None if a.kind is None else tree.container_of(a.kind)
    for label, x, y in zip(a.labels, a.children, b.children, strict=True):
        assert container is not None, "a leaf has no children"
        if (found := _difference(x, y, path + container.path(label))) is not None:
            return found
    return None


def _form(structure: tree.Structure) -> str:
    if structure.kind is None:
        return "one value"
    if structure.kind in (tuple, list):
        return f"a {structure.kind.__name__} of {len(structure.children)}"
    labels = ", ".join(map(str, structure.labels))
    return f"a {structure.kind.__name__} ({labels})"


def element_type(type: Type) -> Type:
    """The type of ``x[0]`` for an ``x`` of ``type``."""
    return type.with_shape(type.shape[1:])
