"""The values of a graph: Tensors, and arrays that are known when it is traced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from onnx import AttributeProto, FunctionProto

from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass
from gptrs.onnx.table import UnsupportedOperatorError, ptir
from gptrs.onnx.tensors import has_symbols, tensor_of_sizes

STANDARD = ("", "ai.onnx")
"""The domains of ONNX's own operators."""


class ValueNeededError(Exception):
    """The values of these arguments of the model have to be known."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


@dataclass(frozen=True)
class Value:
    """A Tensor, or an array that is known; and the arguments that a Tensor depends on."""

    content: Any
    sources: frozenset[str] = frozenset()

    @property
    def known(self) -> Array | None:
        """Its elements, where they are known: those of a weight, too."""
        if isinstance(self.content, Parameter):
            return self.content.numpy()
        return None if isinstance(self.content, Tensor) else self.content


def as_tensor(content: Any) -> Tensor:
    """A value as an operand."""
    if isinstance(content, Tensor):
        return content
    return tensor_of_sizes(content) if has_symbols(content) else ptir.asarray(content)


@dataclass(frozen=True)
class Scope:
    """The values that nodes see, and what they are part of."""

    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str], FunctionProto]
    values: dict[str, Value]
    parent: Scope | None = None
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict[str, AttributeProto])
    """Of the call of the function whose body this is."""

    def find(self, name: str) -> Value | None:
        """The value of a name; None for an operand that is left out."""
        if not name:
            return None
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        raise UnsupportedOperatorError(f"the graph has no value {name!r}")

    @property
    def opset(self) -> int:
        """That of the standard operators."""
        return next((self.opsets[d] for d in STANDARD if d in self.opsets), 1)
