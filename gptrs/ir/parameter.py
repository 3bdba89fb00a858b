"""`Parameter`: a `Tensor` that is a model's weight, loaded from its source when first needed."""

from __future__ import annotations

from math import prod
from typing import Any

from gptrs.errors import DonatedError
from gptrs.ir.tensor import Tensor
from gptrs.ir.tensor_html import tensor_html
from gptrs.ir.types import Array, Type
from gptrs.locks import new_lock
from gptrs.params import MatrixRowSource, ParamSource, RowSource, base_param_id


class Parameter(Tensor):
    """A model's weight: an input of every program that uses it, loaded when first needed.

    Two names for one weight are one Parameter.
    """

    __slots__ = ("_lock", "_source", "name")

    def __init__(self, data: object, name: str = "parameter") -> None:
        super().__init__(data)
        self._name_it(name, None)

    def _name_it(self, name: str, source: ParamSource | None) -> None:
        self.name = name
        self._source = source
        self._lock = new_lock()

    @classmethod
    def from_source(cls, name: str, type: Type, source: ParamSource) -> Parameter:
        """The parameter called ``name``, whose elements ``source`` loads when they are needed."""
        made = cls.__new__(cls)
        made._set(type)
        made._name_it(name, source)
        return made

    @property
    def is_parameter(self) -> bool:
        return True

    @property
    def id(self) -> int:
        """The `base_param_id` of its name."""
        return base_param_id(self.name)

    def numpy(self) -> Array:
        if (array := self._array) is not None:  # read once: release() may come at any time
            return array
        if self._source is None:
            return super().numpy()
        with self._lock:
            if (array := self._array) is None:
                array = self._array = self._source.load(self.name)
            return array

    def rows(self, first: int, last: int) -> Array:
        """The elements [first:last] along the first axis; elements loaded for this call are not
        kept."""
        if self._array is None and isinstance(self._source, RowSource):
            return self._source.load_rows(self.name, first, last)
        return self.numpy()[first:last]

    def matrix_rows(self, first: int, last: int) -> Array:
        """The rows [first:last] of the parameter as a matrix, with the axes before the last as one;
        elements loaded for this call are not kept."""
        if self._array is None and isinstance(self._source, MatrixRowSource):
            return self._source.load_matrix_rows(self.name, first, last)
        return self.numpy().reshape(prod(self.shape[:-1]), self.shape[-1])[first:last]

    @property
    def bytes(self) -> int:
        """The size of its elements."""
        return int(self.size) * self.dtype.numpy.itemsize

    @property
    def in_memory(self) -> bool:
        """Whether its elements are loaded."""
        return self._array is not None

    @property
    def can_reload(self) -> bool:
        """Whether a source gives the elements, so that they may be released."""
        return self._source is not None

    def release(self) -> None:
        """Drop the elements if a source can load them again, which happens when they are next
        needed."""
        if self._source is not None:
            self._array = None

    def donate(self, to: str) -> None:
        raise DonatedError(f"parameter {self.name} cannot be donated to {to}: calls share it")

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        """Another parameter that shares the elements, which are immutable."""
        made = Parameter.__new__(Parameter)
        made._set(self.type, array=self._array)
        made._name_it(self.name, self._source)
        return made

    def __repr__(self) -> str:
        return f"Parameter({self.name}: {self.type})"

    def _repr_html_(self) -> str:
        return tensor_html(self.type, self._array, self._state(), self.name)

    def _state(self) -> str:
        return "not in memory" if self.can_reload else super()._state()
