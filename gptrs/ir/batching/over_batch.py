"""`over_batch`: a function of one example, called on a batch of examples (``ptir.vmap``).

The function is traced on one example; its program is replayed on the whole batch by the batching
rules of its ops (`gptrs.ir.batching`), into the program that is being traced or, outside of one, at
once. There is no loop over the examples.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import gptrs.ir.batching as rules
from gptrs import tree
from gptrs.errors import ArgumentError, ShapeError, shown
from gptrs.ir.batching.axes import move_axis, spread
from gptrs.ir.batching.replay import Mapped, Replay
from gptrs.ir.branch_types import cast_to
from gptrs.ir.closure_conversion import RegionRecorder, close
from gptrs.ir.dims import DimLike, same
from gptrs.ir.dispatch import current, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.operand_trees import is_module, take_apart
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import dim_text
from gptrs.lazy_dataclass import dataclass

Axes: TypeAlias = Any
"""An axis, None, or containers of these, as in the tree that they are for."""

assert rules  # importing it gives every op its rule


@dataclass
class _Leaf:
    """A part of the arguments: its path, the value, and the axis of the examples, if it has one."""

    path: str
    value: Any
    axis: int | None

    @property
    def size(self) -> DimLike:
        """The number of examples. Raises `ShapeError` where there is no such axis."""
        assert self.axis is not None
        if not isinstance(self.value, Tensor):
            raise ArgumentError(
                f"{self.path} is {shown(self.value)}, which has no axis to map",
                fix="in_axes: None for an argument that all examples share",
            )
        rank = self.value.ndim
        if not -rank <= self.axis < rank:
            span = f", expected one between {-rank} and {rank - 1}" if rank else " and has no axis"
            raise ShapeError(
                f"in_axes maps axis {self.axis} of {self.path}, which is {self.value.type}{span}",
                fix="in_axes: None for an argument that all examples share",
            )
        return self.value.shape[self.axis]

    @property
    def text(self) -> str:
        return f"{self.path} has {dim_text(self.size)} along axis {self.axis}"


def over_batch(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    in_axes: Axes = 0,
    out_axes: Axes = 0,
) -> Any:
    """The results of ``function`` for all examples: see `gptrs.jit.vmap.vmap`."""
    leaves, structure = _arguments(function, args, kwargs or {}, in_axes)
    mapped = [leaf for leaf in leaves if leaf.axis is not None]
    size = _size(mapped)
    outer = current()
    recorder = RegionRecorder("example", outer if isinstance(outer, Recorder) else None)
    fronts: list[Tensor] = []
    given: list[Any] = []
    for leaf in leaves:
        if leaf.axis is None:
            given.append(leaf.value)
            continue
        front = move_axis(leaf.value, leaf.axis % leaf.value.ndim, 0)
        type = front.type.with_shape(front.shape[1:])
        fronts.append(front)
        given.append(recorder.input(type, leaf.path, weak=leaf.value.weak))
    with interpreter(recorder):
        own, named = cast("Any", tree.unflatten(structure, given))
        parts = take_apart(function(*own, **named), "the result")
    (program,), captured = close([(recorder, parts.tensors)])
    found = Replay(size).run(program, [*map(Mapped, fronts), *captured])
    axes = _expanded(out_axes, parts.structure, "out_axes", parts.root)
    placed = iter(found)
    leaves_out: list[Any] = []
    for (path, leaf), axis in zip(parts.named(), axes, strict=True):
        if isinstance(leaf, Tensor):
            tensor = _placed(path, next(placed), axis, size)
            leaf = cast_to(tensor, tensor.dtype, leaf.weak, None)
        leaves_out.append(leaf)
    return tree.unflatten(parts.structure, leaves_out)


def _arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], in_axes: Axes
) -> tuple[list[_Leaf], tree.Structure]:
    """The leaves of the arguments with their axes; arrays as Tensors."""
    shared = _defaults(function, args)
    each: list[Axes]
    if isinstance(in_axes, tuple | list):
        each = [*cast("list[Axes]", in_axes)]
        each += [None for at in range(len(each), len(args)) if at in shared]
    else:
        each = [None if at in shared else in_axes for at in range(len(args))]
    if len(each) != len(args):
        raise ArgumentError(
            f"in_axes has {len(each)} entries, the call {len(args)} positional arguments",
            fix="one entry for each; arguments by keyword lie along axis 0",
        )
    values, structure = tree.flatten((args, kwargs), label="the arguments")
    names = [*_names(function, len(args)), *kwargs]
    entries = [*each, *[0] * len(kwargs)]
    parts = (*structure.children[0].children, *structure.children[1].children)
    leaves: list[_Leaf] = []
    rest = iter(values)
    for value, name, entry, part in zip(
        (*args, *kwargs.values()), names, entries, parts, strict=True
    ):
        axes = _expanded(entry, part, "in_axes", name)
        for path, axis in zip(tree.paths(part, name), axes, strict=True):
            leaf = next(rest)
            if not isinstance(leaf, Tensor) and (array := as_array(leaf)) is not None:
                leaf = Tensor.of_array(array)
            settings_of_model = is_module(value) and not isinstance(leaf, Tensor)
            leaves.append(_Leaf(path, leaf, None if settings_of_model or leaf is None else axis))
    return leaves, structure


def _positional(function: Callable[..., Any]) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return []
    return [parameter for parameter in parameters if parameter.kind in kinds]


def _defaults(function: Callable[..., Any], args: tuple[Any, ...]) -> set[int]:
    """The places of numbers for parameters that have a default. A function from ``ptir.jit`` passes
    its defaults on as arguments; they are no examples."""
    return {
        at
        for at, (parameter, value) in enumerate(zip(_positional(function), args, strict=False))
        if parameter.default is not inspect.Parameter.empty and _is_number(value)
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex) or getattr(value, "ndim", None) == 0


def _names(function: Callable[..., Any], count: int) -> list[str]:
    """What the positional arguments are called."""
    known = [parameter.name for parameter in _positional(function)][:count]
    return known + [f"args[{n}]" for n in range(len(known), count)]


def _expanded(axes: Axes, structure: tree.Structure, what: str, path: str) -> Iterator[int | None]:
    """The axis of each leaf of a tree: ``axes`` is one for all in it, or a container like it."""
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        for _ in tree.paths(structure):
            yield axes
        return
    container = tree.container_of(type(cast("object", axes)))
    if container is None:
        raise ArgumentError(f"{what} has {shown(axes)} for {path}, expected an axis or None")
    labels, children = container.split(axes)
    if structure.kind is None or set(labels) != set(structure.labels):
        found = "an array" if structure.kind is None else f"a {structure.kind.__name__}"
        raise ArgumentError(
            f"{what} has a {type(axes).__name__} with the keys {list(labels)} for {path}, which is"
            f" {found} with the keys {list(structure.labels)}",
            fix="an axis for all of it, or a container of the same form",
        )
    by_label = dict(zip(labels, children, strict=True))
    outer = cast("tree.Container", tree.container_of(structure.kind))
    for label, child in zip(structure.labels, structure.children, strict=True):
        yield from _expanded(by_label[label], child, what, path + outer.path(label))


def _size(mapped: list[_Leaf]) -> DimLike:
    """The number of examples, on which all mapped arguments agree."""
    if not mapped:
        raise ArgumentError(
            "nothing is mapped: in_axes is None for all arguments, or there are none",
            fix="in_axes=0 maps the first axis",
        )
    first, *others = mapped
    for other in others:
        if not same(other.size, first.size):
            raise ShapeError(
                f"sizes differ: {first.text}, {other.text}",
                fix="map arrays with one number of examples; in_axes: None for one that all share",
            )
    return first.size


def _placed(path: str, result: Mapped | Tensor, axis: int | None, size: DimLike) -> Tensor:
    """A result with the examples along ``axis``."""
    if axis is None:
        if isinstance(result, Mapped):
            raise ArgumentError(
                f"{path} differs by example, and out_axes has None for it",
                fix="out_axes=0, or reduce it over the batch outside of vmap",
            )
        return result
    tensor = result.tensor if isinstance(result, Mapped) else spread(result, size)
    if not -tensor.ndim <= axis < tensor.ndim:
        raise ShapeError(
            f"out_axes has {axis} for {path}, which has rank {tensor.ndim} with the examples,"
            f" expected one between {-tensor.ndim} and {tensor.ndim - 1}"
        )
    return move_axis(tensor, 0, axis % tensor.ndim)
