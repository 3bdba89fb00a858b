"""einops on tensors: ``einops.rearrange(x, "b h w -> b (h w)")``.

einops asks each subclass of its ``AbstractBackend`` whether a tensor is its own. It is not imported
here: a program that has it tells so by `sys.modules`. ``einops.array_api`` needs no backend.
"""

# einops is optional, and has no types.
# pyright: reportUntypedBaseClass=false, reportUnknownMemberType=false

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import FUNCTIONS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from gptrs.locks import late_import


def introduce_tensors() -> None:
    """Make tensors known to einops, if it has been imported."""
    if "einops" in sys.modules:
        _backend()


@cache
def _backend() -> Any:
    base: Any = late_import("einops._backends").AbstractBackend

    class Backend(base):
        """The functions of einops in those of ``ptir``."""

        framework_name = "gptrs"

        def is_appropriate_type(self, tensor: object) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: Array) -> Tensor:
            return Tensor(x)

        def to_numpy(self, x: Tensor) -> Array:
            return x.numpy()

        def arange(self, start: int, stop: int) -> Tensor:
            return FUNCTIONS["arange"](start, stop)

        def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
            return FUNCTIONS["permute_dims"](x, tuple(axes))

        def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Tensor:
            return FUNCTIONS[operation](x, axis=tuple(axes))

        def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Tensor:
            return FUNCTIONS["stack"](tensors)

        def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, DimLike]) -> Tensor:
            wide = FUNCTIONS["expand_dims"](x, tuple(pos2len))
            shape = [pos2len.get(axis, n) for axis, n in enumerate(wide.shape)]
            return FUNCTIONS["broadcast_to"](wide, shape)

        def concat(self, tensors: list[Any], axis: int) -> Tensor:
            return FUNCTIONS["concat"](tensors, axis=axis)

        def is_float_type(self, x: Tensor) -> bool:
            return x.dtype.is_float

        def einsum(self, pattern: str, *x: Tensor) -> Tensor:
            return FUNCTIONS["einsum"](pattern, *x)

    return Backend
