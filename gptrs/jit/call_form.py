"""The form of the calls that one program serves: what its arguments have to be, and its results.

Where `gptrs.jit.arguments` describes a call so that a program can be found for it, a `CallForm` is
of one program, and compares a call with it: structure, types, and the values of what was not
traced. Symbols take the extents that they have in the call.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from gptrs import tree
from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.dims import Dim, DimLike, same, size_at
from gptrs.ir.operands import describe
from gptrs.ir.program import key_of
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type
from gptrs.jit.arguments import Arguments, Input, bind, collect, is_object
from gptrs.jit.captures import Captures
from gptrs.jit.options import Options
from gptrs.jit.trace import Result
from gptrs.lazy_dataclass import dataclass

_STAND_IN = 8
"""The extent that a symbol has while a function is lowered for types."""


@dataclass(frozen=True)
class Wanted:
    """An array among the arguments: its type may have symbols."""

    path: str
    type: Type


@dataclass(frozen=True)
class CallForm:
    """The calls of a program: arguments by a signature, results as a tree."""

    name: str
    signature: inspect.Signature
    static: frozenset[str]
    donated: frozenset[str]
    structure: tree.Structure
    leaves: tuple[Any, ...]
    """Of each leaf what is `Wanted`, or the value that was not traced."""
    result_structure: tree.Structure
    results: tuple[Any, ...]
    """`Result`s of the program, sizes, and values that do not depend on arguments."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of the call that was lowered, by symbol."""

    def inputs(self, args: Any, kwargs: Any) -> tuple[list[Input], dict[str, int]]:
        """The arrays of a call and the sizes of its symbols. Raises `ArgumentError`, `ShapeError`
        or `DTypeError` where it is not such a call."""
        bound = bind(self.signature, self.name, args, kwargs)
        options = Options(static=self.static, donated=self.donated)
        found = collect(bound, options, Captures(_nothing))
        if found.structure != self.structure:
            raise ArgumentError(
                f"{self.name} was compiled for {_tree(self.structure, self.leaves)}, found"
                f" {_tree(found.structure, found.leaves)}",
                fix="pass containers of the same form, or lower the function for these",
            )
        sizes: dict[str, int] = {}
        for path, wanted, leaf in zip(
            _paths(self.structure), self.leaves, found.leaves, strict=True
        ):
            if isinstance(wanted, Wanted):
                _check_type(self.name, wanted, leaf, sizes)
            elif isinstance(leaf, Input) or not _equal(leaf, wanted):
                shown = str(leaf.type) if isinstance(leaf, Input) else describe(leaf)
                raise ArgumentError(
                    f"{self.name} was compiled for the value {describe(wanted)} of argument {path},"
                    f" found {shown}",
                    fix=f"lower the function for {shown}",
                )
        return found.inputs, sizes

    def result(self, arrays: Sequence[Array], sizes: Mapping[str, int]) -> Any:
        """The tree of results, of the arrays that the program gave."""
        leaves: list[Any] = []
        for result in self.results:
            if isinstance(result, Result):
                leaves.append(Tensor.of_array(arrays[result.index], weak=result.weak))
            else:
                leaves.append(size_at(result, sizes) if isinstance(result, Dim) else result)
        return tree.unflatten(self.result_structure, leaves)

    @property
    def wanted(self) -> list[Wanted]:
        """The arrays among the arguments, in order."""
        return [leaf for leaf in self.leaves if isinstance(leaf, Wanted)]


def _nothing() -> None:
    """A function that reads nothing."""


def _paths(structure: tree.Structure) -> Iterator[str]:
    """The path of each leaf among the arguments."""
    for name, child in zip(structure.labels, structure.children, strict=True):
        yield from tree.paths(child, str(name))


def _equal(found: object, wanted: object) -> bool:
    return bool(found is wanted or key_of(found) == key_of(wanted))


def _tree(structure: tree.Structure, leaves: Sequence[Any]) -> str:
    shown = [
        f"{path}: {leaf.type if isinstance(leaf, Wanted | Input) else describe(leaf)}"
        for path, leaf in zip(_paths(structure), leaves, strict=True)
    ]
    return f"({', '.join(shown)})"


def _check_type(name: str, wanted: Wanted, leaf: Any, sizes: dict[str, int]) -> None:
    """Compare an argument with what is wanted there, and take the sizes of symbols from it."""
    problem = f"{name} was compiled for {wanted.type} as argument {wanted.path}"
    if not isinstance(leaf, Input):
        raise ArgumentError(f"{problem}, found {describe(leaf)}", fix=f"pass a {wanted.type}")
    found = leaf.type
    if found.dtype is not wanted.type.dtype:
        fix = f"{wanted.path}.astype({wanted.type.dtype.name!r}), or lower the function for this"
        raise DTypeError(f"{problem}, found {found}", fix=fix)
    if found.rank != wanted.type.rank:
        raise ShapeError(f"{problem}, found {found}", fix="lower the function for this shape")
    for axis, (extent, size) in enumerate(zip(wanted.type.shape, found.shape, strict=True)):
        if isinstance(extent, Dim):
            symbol = str(extent).removeprefix("?")
            known = sizes.setdefault(symbol, int(size))  # pyright: ignore[reportArgumentType]
            if known != size or known < 1:
                expected = f"{known} as before" if known != size else "at least 1"
                raise ShapeError(f"{problem}, found {found}: ?{symbol}, axis {axis}, is {expected}")
        elif not same(extent, size):
            raise ShapeError(f"{problem}, found {found}", fix="lower the function for this shape")


def form_of(
    arguments: Arguments, name: str, options: Options, result: tree.Structure, results: Any
) -> CallForm:
    """The form of calls like the one that was traced."""
    leaves = [
        Wanted(leaf.path, leaf.type) if isinstance(leaf, Input) else leaf
        for leaf in arguments.leaves
    ]
    return CallForm(
        name,
        arguments.bound.signature,
        options.static,
        options.donated,
        arguments.structure,
        tuple(leaves),
        result,
        tuple(results),
        dict(arguments.sizes),
    )


def stand_ins(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Arguments with a tensor in the place of each `Type`."""
    leaves, structure = tree.flatten((args, kwargs), is_leaf=is_object, label="the arguments")
    if not any(isinstance(leaf, Type) for leaf in leaves):
        return args, kwargs
    stood = [_stand_in(leaf) if isinstance(leaf, Type) else leaf for leaf in leaves]
    made: Any = tree.unflatten(structure, stood)
    return made[0], made[1]


def with_symbols(arguments: Arguments) -> Arguments:
    """Arguments with the symbols of the types that tensors stand for."""
    sizes = dict(arguments.sizes)
    leaves: list[Any] = []
    for leaf in arguments.leaves:
        if isinstance(leaf, Input) and isinstance(leaf.tensor, StandIn):
            shape = leaf.tensor.wanted.shape
            sizes.update({str(n).removeprefix("?"): _STAND_IN for n in shape if isinstance(n, Dim)})
            leaf = replace(leaf, type=leaf.type.with_shape(map(_symbol, shape, leaf.type.shape)))
        leaves.append(leaf)
    return replace(arguments, leaves=tuple(leaves), sizes=sizes)


def _symbol(wanted: DimLike, extent: DimLike) -> DimLike:
    return wanted if isinstance(wanted, Dim) else extent


class StandIn(Tensor):
    """A tensor of which only the type counts."""

    __slots__ = ("wanted",)
    wanted: Type


def _stand_in(type: Type) -> Tensor:
    for extent in type.shape:
        if isinstance(extent, Dim) and not str(extent).removeprefix("?").isidentifier():
            raise ShapeError(f"{type} has the extent {extent}, expected numbers and symbols")
    shape = tuple(_STAND_IN if isinstance(n, Dim) else n for n in type.shape)
    tensor = StandIn.of_array(np.broadcast_to(np.zeros((), type.dtype.numpy), shape))
    assert isinstance(tensor, StandIn)
    tensor.wanted = type
    return tensor
