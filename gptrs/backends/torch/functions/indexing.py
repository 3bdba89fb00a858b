"""Gather and scatter by integer tensors. An index out of range is a failed check, and reads or
writes element 0 until then."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gptrs.backends.torch.run import Run

_REDUCE = {"add": "sum", "mean": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def take(run: Run, x: Tensor, indices: Tensor) -> Tensor:
    """Rows of ``x`` in the order of ``indices``."""
    places = _checked(run, indices, x.shape[0])
    return x.index_select(0, places.reshape(-1)).reshape((*indices.shape, *x.shape[1:]))


def gather(run: Run, x: Tensor, index: Tensor, axis: int) -> Tensor:
    """``x`` with the index along an axis replaced by ``index``."""
    _check_inside(run, index.shape, x.shape, axis)
    return torch.gather(x, axis, _checked(run, index, x.shape[axis]))


def scatter_add(run: Run, x: Tensor, index: Tensor, source: Tensor, axis: int) -> Tensor:
    """``x`` with ``source`` added where ``index`` points along an axis."""
    _check_inside(run, index.shape, x.shape, axis)
    _check_inside(run, index.shape, source.shape)
    return torch.scatter_add(x, axis, _checked(run, index, x.shape[axis]), source)


def scatter_reduce(
    run: Run, x: Tensor, index: Tensor, source: Tensor, axis: int, reduce: str
) -> Tensor:
    """``x`` combined with ``source`` where ``index`` points along an axis."""
    _check_inside(run, index.shape, x.shape, axis)
    _check_inside(run, index.shape, source.shape)
    places = _checked(run, index, x.shape[axis])
    if reduce == "replace":
        return _replaced(x, places, source, axis)
    if reduce == "add":
        return torch.scatter_add(x, axis, places, source)
    return torch.scatter_reduce(x, axis, places, source, _REDUCE[reduce])


def _replaced(x: Tensor, places: Tensor, source: Tensor, axis: int) -> Tensor:
    """The last source in the order of the axis stays, whatever the device writes first."""
    shape = [1] * x.ndim
    shape[axis] = -1
    turn = torch.arange(places.shape[axis], device=x.device).reshape(shape).expand(places.shape)
    last = torch.full(x.shape, -1, dtype=torch.int64, device=x.device)
    last = torch.scatter_reduce(last, axis, places, turn, "amax")
    if not source.shape[axis]:
        return x.clone()
    inside = tuple(slice(n) if i != axis else slice(None) for i, n in enumerate(places.shape))
    used = source[inside]
    result = x.clone()
    part = tuple(slice(n) if i != axis else slice(None) for i, n in enumerate(places.shape))
    found = last[part]
    result[part] = torch.where(
        found >= 0, torch.gather(used, axis, found.clamp_min(0)), result[part]
    )
    return result


def segment_reduce(
    run: Run, x: Tensor, segments: Tensor, count: int, reduce: str, empty: float
) -> Tensor:
    """Rows combined by the segment that each belongs to; a segment without rows is ``empty``."""
    places = _checked(run, segments, count)
    result = x.new_full((count, *x.shape[1:]), empty)
    if not x.numel():
        return result / 0 if reduce == "mean" else result
    rows = places.reshape(-1, *[1] * (x.ndim - 1)).expand(x.shape)
    if x.is_complex() or reduce in ("add", "mean"):
        result = result.index_add(0, places, x)
    else:
        result = torch.scatter_reduce(result, 0, rows, x, _REDUCE[reduce])
    if reduce == "mean":
        sizes = torch.zeros(count, dtype=torch.int64, device=x.device)
        sizes = sizes.index_add(0, places, torch.ones_like(places))
        result = result / sizes.reshape(-1, *[1] * (x.ndim - 1)).to(result.dtype)
    return result


def _checked(run: Run, index: Tensor, extent: int) -> Tensor:
    """Indices as si64, 0 where they are out of range, which is an error."""
    if not extent and index.numel():
        run.fail()
    wide = index.long()
    wrong = (wide < 0) | (wide >= extent)
    run.check(wrong)
    return torch.where(wrong, 0, wide)


def _check_inside(
    run: Run, index: Sequence[int], shape: Sequence[int], but: int | None = None
) -> None:
    """Fail where ``index`` does not fit into ``shape``, in an axis other than ``but``."""
    if any(n > m for i, (n, m) in enumerate(zip(index, shape, strict=True)) if i != but):
        run.fail()
