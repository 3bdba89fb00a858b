"""Functions of a part called on all parts: apply_along_axis, apply_over_axes, vectorize.

A function is traced once, on one part, and replayed on all of them by the batching rules of
`vmap`; there is no loop.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

from gptrs import tree
from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.batching.over_batch import over_batch
from gptrs.ir.dims import DimLike, Shape, same
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, normal_axis, shape_text
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.manipulation import expand_dims, moveaxis

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]


@public(other_names={"arr": "x"})
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, x: Any, *args: Any, **kwargs: Any
) -> Any:
    """``func1d(row, *args, **kwargs)`` of each row of ``x`` along ``axis``; the axes of its result
    take the place of ``axis``."""
    x = as_tensor(x)
    axis = normal_axis(axis, x.ndim)
    others = tuple(n for i, n in enumerate(x.shape) if i != axis)
    rows = moveaxis(x, axis, -1)

    def each(row: Tensor) -> Any:
        return func1d(row, *args, **kwargs)

    if not others:
        return each(rows)
    made = over_batch(each, (rows.reshape(-1, x.shape[axis]),))

    def arranged(part: Any) -> Tensor:
        part = as_tensor(part)
        new = part.ndim - 1
        part = part.reshape(*others, *part.shape[1:])
        count = len(others)
        return moveaxis(part, range(count, count + new), range(axis, axis + new))

    leaves, structure = tree.flatten(made)
    return tree.unflatten(structure, [arranged(leaf) for leaf in leaves])


@public(other_names={"a": "x"})
def apply_over_axes(func: Callable[[Any, int], Any], x: Any, axes: int | Sequence[int]) -> Tensor:
    """``func(x, axis)`` for one axis after the other; where it removes the axis, that is put back
    with extent 1."""
    x = as_tensor(x)
    for axis in (axes,) if isinstance(axes, int) else axes:
        axis = normal_axis(axis, x.ndim)
        made = as_tensor(func(x, axis))
        if made.ndim == x.ndim - 1:
            made = expand_dims(made, axis)
        if made.ndim != x.ndim:
            raise ShapeError(
                f"apply_over_axes: the function made rank {made.ndim} of {x.ndim}, expected"
                f" {x.ndim} or {x.ndim - 1}"
            )
        x = made
    return x


_CORE = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIGNATURE = re.compile(rf"\s*{_CORE}(?:\s*,\s*{_CORE})*\s*->\s*{_CORE}(?:\s*,\s*{_CORE})*\s*")
Core = tuple[str, ...]


def _parsed(signature: str) -> tuple[list[Core], list[Core]]:
    """The names of the axes of each operand and of each result."""
    if not _SIGNATURE.fullmatch(signature):
        raise ArgumentError(
            f"vectorize: signature is {signature!r}, expected one such as '(n,m),(m)->(n)'"
        )
    sides = [
        [tuple(re.findall(r"\w+", core)) for core in re.findall(_CORE, side)]
        for side in signature.split("->")
    ]
    return sides[0], sides[1]


@public(other_names={"func": "pyfunc"})
def vectorize(
    pyfunc: Callable[..., Any] | None = None,
    *,
    excluded: Collection[int | str] = (),
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function of single elements, or of arrays with the axes of ``signature``, over arrays whose
    other, leading axes broadcast.

    ``signature`` is "(n,m),(m)->(n)": the last axes of each operand and result. Operands by
    keyword, and those whose position or name is ``excluded``, reach ``pyfunc`` as they are.
    Without ``pyfunc`` a decorator.
    """
    if pyfunc is None:
        return functools.partial(vectorize, excluded=excluded, signature=signature)
    cores = None if signature is None else _parsed(signature)

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        places = [i for i in range(len(args)) if i not in excluded]

        def called(*values: Any) -> Any:
            given = [*args]
            for place, value in zip(places, values, strict=True):
                given[place] = value
            return pyfunc(*given, **kwargs)

        operands = [as_tensor(args[i]) for i in places]
        if cores is None:
            return _over_leading_axes(called, operands, [0] * len(operands))
        inputs, results = cores
        if len(inputs) != len(operands):
            raise ArgumentError(
                f"vectorize: {len(operands)} operands for {len(inputs)} in {signature!r}"
            )
        extents: dict[str, DimLike] = {}
        for operand, core in zip(operands, inputs, strict=True):
            _match(operand.shape, core, extents, "an operand")
        made = _over_leading_axes(called, operands, [*map(len, inputs)])
        found = cast("tuple[Any, ...]", made) if isinstance(made, tuple) else (made,)
        if len(found) != len(results):
            raise ArgumentError(
                f"vectorize: {len(found)} results for {len(results)} in {signature!r}"
            )
        for result, core in zip(found, results, strict=True):
            _match(as_tensor(result).shape, core, extents, "a result")
        return cast("Any", made)

    return vectorized


def _match(shape: Shape, core: Core, extents: dict[str, DimLike], what: str) -> None:
    """Enter the extents of the last axes under their names. Raises `ShapeError` where one has
    another extent already, or axes are missing."""
    if len(shape) < len(core):
        raise ShapeError(
            f"vectorize: {what} of shape {shape_text(shape)} has no axes ({','.join(core)})"
        )
    for name, extent in zip(core, shape[len(shape) - len(core) :], strict=True):
        known = int(name) if name.isdigit() else extents.setdefault(name, extent)
        if not same(known, extent):
            raise ShapeError(f"vectorize: axis {name} of {what} has extent {extent}, not {known}")


def _over_leading_axes(
    function: Callable[..., Any], operands: Sequence[Tensor], ranks: Sequence[int]
) -> Any:
    """``function`` of operands of ``ranks``, batched over their other axes, which broadcast: an
    axis that an operand lacks, or has with extent 1, is no axis of its batch."""
    leading = [x.shape[: x.ndim - rank] for x, rank in zip(operands, ranks, strict=True)]
    batch = broadcast_shapes(*leading)
    depth = len(batch)
    mapped: list[list[int | None]] = []  # for each axis of the batch, the axis of each operand
    for at, extent in enumerate(batch):
        own = [at - depth + len(shape) for shape in leading]
        mapped.append(
            [
                None if i < 0 or (same(shape[i], 1) and not same(extent, 1)) else 0
                for i, shape in zip(own, leading, strict=True)
            ]
        )
    values = [
        x.reshape(
            *(n for at, n in enumerate(shape) if mapped[at + depth - len(shape)][j] is not None),
            *x.shape[len(shape) :],
        )
        for j, (x, shape) in enumerate(zip(operands, leading, strict=True))
    ]
    for axes in reversed(mapped):
        function = _batched(function, tuple(axes))
    return function(*values)


def _batched(function: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
    return lambda *values: over_batch(function, values, in_axes=axes)
