"""Order along an axis. NaN counts as greater than every number, equal elements keep their order."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import torch
from torch import Tensor

from gptrs.backends.torch.run import Run


def sort(x: Tensor, axis: int, descending: bool) -> tuple[Tensor, Tensor]:
    """The elements in order, and their positions."""
    found = torch.sort(x, dim=axis, descending=descending, stable=True)
    return found.values, found.indices


def top_k(run: Run, x: Tensor, k: int, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The ``k`` greatest (or least) elements, best first, and their positions."""
    if k > x.shape[axis]:
        run.fail()
    values, places = sort(x, axis, largest)
    return values.narrow(axis, 0, k), places.narrow(axis, 0, k)


def searchsorted(rows: Tensor, values: Tensor, right: bool) -> Tensor:
    """The positions at which ``values`` keep the sorted ``rows`` in order."""
    return torch.searchsorted(
        _key(rows).contiguous(), _key(values).contiguous(), side="right" if right else "left"
    )


def _key(x: Tensor) -> Tensor:
    """Integers in the order of the elements."""
    if x.dtype is torch.bool:
        return x.to(torch.int8)
    if not x.is_floating_point():
        return x
    wide = x if x.dtype is torch.float64 else x.float()
    wide = wide + 0.0  # −0 is +0
    kind = torch.int64 if wide.dtype is torch.float64 else torch.int32
    bits = wide.view(kind)
    most = torch.iinfo(kind).max
    return torch.where(wide.isnan(), most, torch.where(bits < 0, bits ^ most, bits))
