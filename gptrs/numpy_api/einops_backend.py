"""einops on tensors: ``einops.rearrange(x, "b h w -> b (h w)")``.

einops asks each subclass of its ``AbstractBackend`` whether a tensor is its own. It is not imported
here: the subclass is made when the program does so, before or after it imports gptrs.
``einops.array_api`` needs no backend.
"""

# einops is optional, and has no types.
# pyright: reportUntypedBaseClass=false, reportUnknownMemberType=false

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import FUNCTIONS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array

_MODULE = "einops._backends"


def introduce_tensors() -> None:
    """Make tensors known to einops: now, or as soon as it is imported."""
    if (module := sys.modules.get(_MODULE)) is not None:
        _define_backend(module)
    else:
        sys.meta_path.insert(0, _Introduction())


class _Introduction(MetaPathFinder):
    """Finds einops' module of backends by the other finders, and defines one more after its own."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != _MODULE:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        loader: Any = spec.loader if spec is not None else None
        if loader is not None:
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                loader.exec_module = run
                run(module)
                sys.meta_path.remove(self)
                _define_backend(module)

            loader.exec_module = exec_module
        return spec


def _define_backend(module: Any) -> None:
    base: Any = module.AbstractBackend

    class Backend(base):  # einops finds it among the subclasses
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

    module.gptrs_backend = Backend  # subclasses are known by weak references
