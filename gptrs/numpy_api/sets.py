"""Sets as rows of distinct elements: union1d, intersect1d, setdiff1d, unique_consecutive.

How many elements a result has depends on values. In a traced function ``size`` says how many: more
are cut, and missing ones are filled. NaNs are distinct.
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.counting import isin
from gptrs.numpy_api.creation import full
from gptrs.numpy_api.data_types import result_type
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.joining import concat
from gptrs.numpy_api.manipulation import moveaxis
from gptrs.numpy_api.searching import first_true, searchsorted, size_of_result, unique_all

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d", "unique_consecutive"]


def _rows(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """All elements of both in rows of the dtype that they share."""
    x, y = as_tensor(x1), as_tensor(x2)
    dtype = result_type(x, y)
    return x.astype(dtype).reshape(-1), y.astype(dtype).reshape(-1)


def _first_of_equals(ordered: Tensor) -> Tensor:
    """Whether each element of a row in order is the first of its value."""
    start: Tensor = OPS["full"](shape=(1,), value=True, dtype="i1")
    return concat([start, OPS["not_equal"](ordered[1:], ordered[:-1])])[: ordered.shape[0]]


def _chosen(
    name: str, x: Tensor, mask: Tensor, size: DimLike | None, fill_value: Any
) -> tuple[Tensor, Tensor]:
    """The first ``size`` elements of a row that ``mask`` has, and their positions; the length of
    the row where there are fewer."""
    size_of_result(name, mask, size)
    if size is None:
        size = int(mask.numpy().sum())
    places = first_true(mask, size)
    if x.shape[0] == 0:
        return full((size,), fill_value, dtype=x.dtype), places
    found = OPS["take"](x, OPS["minimum"](places, x.shape[0] - 1))
    return OPS["select"](places < x.shape[0], found, tensor_of(fill_value, x.dtype)), places


@public(other_names={"ar1": "x1", "ar2": "x2"})
def union1d(x1: Any, x2: Any, *, size: DimLike | None = None) -> Tensor:
    """The distinct elements of both in order; of a given ``size`` as in `unique`."""
    return unique_all(concat(_rows(x1, x2)), size=size).values


@public(other_names={"ar1": "x1", "ar2": "x2"})
def intersect1d(
    x1: Any,
    x2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: DimLike | None = None,
    fill_value: Any = 0,
) -> Any:
    """The distinct elements that are in both, in order; with ``return_indices`` also the positions
    of the first of each in ``x1`` and in ``x2``, whose lengths stand for missing ones.

    ``assume_unique`` changes nothing here: equal elements are told apart at no cost.
    """
    x, y = _rows(x1, x2)
    ordered, order = OPS["sort"](x, axis=0)
    mask = OPS["logical_and"](_first_of_equals(ordered), isin(ordered, y))
    found, places = _chosen("intersect1d", ordered, mask, size, fill_value)
    if not return_indices:
        return found
    if not (x.shape[0] and y.shape[0]):
        return found, places, places
    is_there = places < x.shape[0]
    others, order_of_others = OPS["sort"](y, axis=0)
    in_y = OPS["minimum"](searchsorted(others, found), y.shape[0] - 1)
    in_x = OPS["minimum"](places, x.shape[0] - 1)
    first = OPS["select"](is_there, OPS["take"](order, in_x), x.shape[0])
    return found, first, OPS["select"](is_there, OPS["take"](order_of_others, in_y), y.shape[0])


@public(other_names={"ar1": "x1", "ar2": "x2"})
def setdiff1d(
    x1: Any,
    x2: Any,
    assume_unique: bool = False,
    *,
    size: DimLike | None = None,
    fill_value: Any = 0,
) -> Tensor:
    """The distinct elements of ``x1`` that ``x2`` lacks, in order; with ``assume_unique`` in the
    order of ``x1``, and as often."""
    x, y = _rows(x1, x2)
    if assume_unique:
        return _chosen("setdiff1d", x, isin(x, y, invert=True), size, fill_value)[0]
    ordered = OPS["sort"](x, axis=0)[0]
    mask = OPS["logical_and"](_first_of_equals(ordered), isin(ordered, y, invert=True))
    return _chosen("setdiff1d", ordered, mask, size, fill_value)[0]


@public(other_names={"ar1": "x1", "ar2": "x2"})
def setxor1d(
    x1: Any,
    x2: Any,
    assume_unique: bool = False,
    *,
    size: DimLike | None = None,
    fill_value: Any = 0,
) -> Tensor:
    """The distinct elements that are in one of them alone, in order."""
    x, y = _rows(x1, x2)
    ordered = OPS["sort"](concat([x, y]), axis=0)[0]
    in_one = OPS["not_equal"](isin(ordered, x), isin(ordered, y))
    mask = OPS["logical_and"](_first_of_equals(ordered), in_one)
    return _chosen("setxor1d", ordered, mask, size, fill_value)[0]


@public
def unique_consecutive(
    x: Any,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    size: DimLike | None = None,
) -> Any:
    """The elements (the parts along ``dim``) that differ from the one before, and where asked the
    place of each among them and how often each comes in a row.

    In a traced function ``size`` says how many: further ones are cut, missing ones repeat the last
    part with a count of 0.
    """
    x = as_tensor(x)
    parts = x.reshape(-1) if dim is None else moveaxis(x, dim, 0)
    count = parts.shape[0]
    start: Tensor = OPS["full"](shape=(1,), value=True, dtype="i1")
    changes = parts[1:] != parts[:-1]
    if parts.ndim > 1:
        changes = OPS["reduce_any"](changes, axes=tuple(range(1, parts.ndim)))
    firsts = concat([start, changes])[:count]
    size_of_result("unique_consecutive", x, size)
    places = first_true(firsts, int(firsts.numpy().sum()) if size is None else size)
    values = OPS["take"](parts, OPS["minimum"](places, count - 1))
    found = [values if dim is None else moveaxis(values, 0, dim)]
    if return_inverse:
        group = OPS["cumsum"](firsts.astype("si64"), axis=0) - 1
        found.append(group.reshape(x.shape) if dim is None else group)
    if return_counts:
        end = OPS["full"](shape=(1,), value=count, dtype="si64")
        found.append(concat([places, end])[1:] - places)
    return tuple(found) if len(found) > 1 else found[0]
