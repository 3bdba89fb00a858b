"""Composite operators that stay whole in inference.

torch replaces composites such as ``linear`` and ``scaled_dot_product_attention`` by their
definitions while it traces. Where no gradient is needed those of the table stay: their programs are
shorter, and attention is read off a mask rather than recognised.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch._export import utils
from torch.export import exported_program

from gptrs.torch.aten import TABLE

_aten: Any = torch.ops.aten
_utils: Any = utils
_exported: Any = exported_program


def keep_composites(operands: Iterable[Any]) -> AbstractContextManager[None]:
    """Keep composites whole within, unless a gradient of ``operands`` is wanted."""
    if torch.is_grad_enabled() and any(
        isinstance(x, torch.Tensor) and x.requires_grad for x in operands
    ):
        return nullcontext()
    keep = _utils._special_op_to_preserve_cia
    return _exported._override_composite_implicit_decomp(dict.fromkeys(_known(), keep))


@cache
def _known() -> tuple[Any, ...]:
    """The composites of torch that the table has.

    They are asked for one by one: torch's own list goes through all the operators that it has.
    """
    names = (name.split(".") for name in TABLE if not name.startswith("prims."))
    found = (getattr(getattr(_aten, packet), overload) for packet, overload in names)
    return tuple(op for op in found if _utils._is_preservable_cia_op(op))
