"""Arguments of one call: bound, flattened, classified, and described by the key of the program.

Slow path of a jitted call (`gptrs.jit.function`): the signature binds the arguments, containers are
flattened (`gptrs.tree`), and each leaf becomes an `Input` (traced), a static value, or an object
whose reads `gptrs.jit.captures` records. Axes named by ``dynamic`` get symbols. The key lists
(name, token) pairs, so that two keys can be compared entry by entry for retrace reasons.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gptrs import tree
from gptrs.errors import ArgumentError, DonatedError
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.dims import Dim, DimLike, dim
from gptrs.ir.operand_trees import number
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import key_of
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import Array, Type
from gptrs.jit.captures import Captures
from gptrs.jit.options import Axes, Options
from gptrs.lazy_dataclass import dataclass

_STATIC = (bool, str, bytes, Dim, enum.Enum, type(None))
_NUMBERS = (int, float, complex)


@dataclass(frozen=True)
class Input:
    """An array among the arguments. ``type`` has symbols where the axis is dynamic."""

    path: str
    tensor: Tensor
    type: Type
    donated: bool


@dataclass(frozen=True)
class Arguments:
    """One flattened call. ``key`` lists (name, token) pairs: equal keys can share a program."""

    bound: inspect.BoundArguments
    structure: tree.Structure
    leaves: tuple[Any, ...]  # an Input, or the value itself where it is not traced
    captures: Captures
    sizes: dict[str, int]
    key: tuple[tuple[str, Hashable], ...]

    @property
    def inputs(self) -> list[Input]:
        return [leaf for leaf in self.leaves if isinstance(leaf, Input)]

    def call(self, function: Any, replace: Iterable[Tensor]) -> Any:
        """Call ``function`` with a tensor from ``replace`` in the place of each input."""
        tensors = iter(replace)
        leaves = [next(tensors) if isinstance(leaf, Input) else leaf for leaf in self.leaves]
        values = tree.unflatten(self.structure, leaves)
        assert isinstance(values, dict)
        bound = inspect.BoundArguments(self.bound.signature, values)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
        return function(*bound.args, **bound.kwargs)


def bind(signature: inspect.Signature, name: str, args: Any, kwargs: Any) -> inspect.BoundArguments:
    """Arguments by name, defaults filled in. Raises `ArgumentError` when they do not fit."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(
            f"{name}: {error}", fix=f"it is declared as {name}{signature}"
        ) from None
    bound.apply_defaults()
    return bound


def collect(bound: inspect.BoundArguments, options: Options, captures: Captures) -> Arguments:
    """Flatten and classify the arguments of a call. Raises errors that name the argument."""
    leaves: list[Any] = []
    key: list[tuple[str, Hashable]] = []
    structures: list[tree.Structure] = []
    sizes: dict[str, int] = {}
    owners: dict[str, str] = {}
    for name, value in bound.arguments.items():
        if name in options.static:
            structures.append(tree.LEAF)
            leaves.append(value)
            key.append((f"static argument {name}", _static_key(name, value, captures)))
            continue
        places: Iterable[tuple[str, object]] = ((name, value),)
        structure = tree.LEAF
        if not is_object(value) and tree.flattens(value):
            label = f"argument {name}"
            parts, structure = tree.flatten(value, is_leaf=is_object, label=label)
            places = zip(tree.paths(structure, name), parts, strict=True)
            captures.kinds(structure)
            key.append((f"structure of {label}", structure))
        structures.append(structure)
        for path, part in places:
            leaf, token = _classify(path, part, name in options.donated, captures)
            if isinstance(leaf, Input) and options.dynamic:
                leaf = _make_dynamic(leaf, options.dynamic, sizes, owners)
                token = leaf.type, leaf.tensor.weak
            leaves.append(leaf)
            key.append((f"argument {path}", token))
    _check_donations([leaf for leaf in leaves if isinstance(leaf, Input)])
    whole = tree.Structure(dict, tuple(bound.arguments), tuple(structures))
    return Arguments(bound, whole, tuple(leaves), captures, sizes, tuple(key))


def is_object(value: object) -> bool:
    """Whether ``value`` is not flattened into inputs: a Tensor, or a module."""
    return isinstance(value, Tensor) or getattr(type(value), "is_module", False)


def _static_key(name: str, value: object, captures: Captures) -> Hashable:
    """The value itself if its class defines equality, else a token of its contents."""
    parts, structure = tree.flatten(value, label=f"static argument {name}")
    tokens: list[Hashable] = []
    for part in parts:
        if isinstance(part, Tensor):
            raise ArgumentError(
                f"static argument {name} holds a Tensor ({part.type})",
                fix=f"take {name} out of static_argnames: arrays are traced",
            )
        by_identity = type(part).__hash__ is object.__hash__
        tokens.append(captures.argument(part, f"static argument {name}") if by_identity else part)
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(
            f"static argument {name} is a {type(value).__name__}, which cannot be hashed",
            fix="pass a tuple, a number, a string or a frozen dataclass",
        ) from None
    captures.kinds(structure)
    if structure.kind is None:
        return key_of(tokens[0])  # pyright: ignore[reportReturnType]
    return structure, tuple(map(key_of, tokens))


def _classify(path: str, value: Any, donated: bool, captures: Captures) -> tuple[Any, Hashable]:
    """The leaf for one value and its token in the key."""
    if isinstance(value, _STATIC):
        return value, captures.argument(value, f"argument {path}")
    if isinstance(value, Parameter):
        if donated:
            value.donate("the call")
        return value, captures.argument(value, f"argument {path}")
    if isinstance(value, _NUMBERS) and not isinstance(value, np.generic):
        tensor = number(value, f"argument {path}")
        return Input(path, tensor, tensor.type, donated=False), (tensor.type, True)
    if isinstance(value, Tensor):
        value.held()  # a donated or leaked one is an error here, and not in the program
        return Input(path, value, value.type, donated), (value.type, value.weak)
    if (array := as_array(value)) is not None:
        if donated:
            raise DonatedError(
                f"argument {path} is donated, and is a {type(value).__name__}: only gptrs Tensors"
                " can be",
                fix="pass ptir.tensor(x), and do not use it afterwards",
            )
        tensor = Tensor.of_array(array)
        return Input(path, tensor, tensor.type, donated=False), (tensor.type, False)
    return value, captures.argument(value, f"argument {path}")


def _make_dynamic(
    leaf: Input, dynamic: Mapping[str, Axes], sizes: dict[str, int], owners: dict[str, str]
) -> Input:
    """``leaf`` with symbols in place of the extents that ``dynamic`` names. An extent of 0 stays:
    a symbol is at least 1."""
    shape: list[DimLike] = list(leaf.type.shape)
    for path, axes in dynamic.items():
        if not _covers(path, leaf.path):
            continue
        for axis, symbol in axes.items():
            if not -len(shape) <= axis < len(shape):
                raise ArgumentError(
                    f"dynamic names axis {axis} of argument {leaf.path}, which is {leaf.type}"
                )
            size = shape[axis]
            name = str(symbol)
            if size == 0 or isinstance(size, Dim):
                continue
            if sizes.setdefault(name, size) != size:
                raise ArgumentError(
                    f"?{name} is {sizes[name]} in argument {owners[name]} and {size} in argument"
                    f" {leaf.path} (axis {axis})",
                    fix="give them the same extent, or name their dimensions differently",
                )
            owners.setdefault(name, leaf.path)
            shape[axis] = symbol if isinstance(symbol, Dim) else dim(symbol)
    return Input(leaf.path, leaf.tensor, leaf.type.with_shape(shape), leaf.donated)


def _covers(path: str, leaf: str) -> bool:
    """Whether ``path`` names ``leaf`` or a container that it is in."""
    return leaf == path or (leaf.startswith(path) and leaf[len(path)] in ".[")


def _check_donations(inputs: list[Input]) -> None:
    """Raise `DonatedError` where donated memory occurs twice: the other occurrence would read
    overwritten elements."""
    donated = {place for place, leaf in enumerate(inputs) if leaf.donated}
    if not donated:
        return
    if shared := sharing([leaf.tensor.held() for leaf in inputs], donated):
        raise DonatedError(
            f"arguments {inputs[shared[0]].path} and {inputs[shared[1]].path} are the same Tensor"
            " or views of one array, and one is donated",
            fix="donate a copy",
        )


def sharing(
    arrays: Sequence[Array | DeviceArray], donated: Collection[int]
) -> tuple[int, int] | None:
    """The indices of two arrays that share memory and of which one is donated; None if there are
    none."""
    if len({id(array if array.base is None else _owner(array)) for array in arrays}) == len(arrays):
        return None
    first: dict[int, int] = {}
    for place, array in enumerate(arrays):
        other = first.setdefault(id(_owner(array)), place)
        if other != place and (place in donated or other in donated):
            return other, place
    return None


def _owner(array: Array | DeviceArray) -> object:
    """The object that owns the memory of ``array``."""
    owner: object = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return owner  # pyright: ignore[reportUnknownVariableType]
