"""`Weights`: the source of a loaded model's parameters, each read from its file on first use.

Maps tensor names of files to parameter names (renames, ignored and tied tensors), checks shapes
while the model is built, and reports missing and unused tensors. Emits events for progress bars.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from weakref import WeakValueDictionary

from gptrs import events
from gptrs.errors import LoadError
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.formats.tensor_files import ModelTensors
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array, Type, shape_text
from gptrs.lazy_dataclass import dataclass
from gptrs.loading.closest_name import nearest
from gptrs.loading.stacked_weights import join_stacks
from gptrs.models.base import Stacks


@dataclass(frozen=True)
class WeightsOpened:
    """Event: a model's files are open and hold ``count`` parameters of ``size`` bytes."""

    count: int
    size: int


@dataclass(frozen=True)
class WeightRead:
    """Event: a parameter, or ``size`` bytes of a large one, was read."""

    name: str
    size: int


class Weights:
    """``tensors`` under the names of the model's parameters.

    ``renames`` convert names in files to these; renamed tensors that match ``ignored`` are left
    out. ``copies`` are tied tensors: files may contain them besides, or instead of, the equal ones.
    ``stacks`` are parameters that files may hold in parts.
    """

    def __init__(
        self,
        tensors: ModelTensors,
        renames: Iterable[tuple[re.Pattern[str], str]],
        ignored: re.Pattern[str],
        copies: Mapping[str, str],
        stacks: Stacks,
    ) -> None:
        self._stored: dict[str, StoredTensor] = {}
        self._place = tensors.place
        # weak: parameters are freed with the model
        self._used: WeakValueDictionary[str, Parameter] = WeakValueDictionary()
        self.names: dict[str, str] = {}
        """Tensor names in files → parameter names, without ignored ones."""
        self._copies: dict[str, StoredTensor] = {}
        self._shapes_from, self._fix = tensors.shapes_from, tensors.fix
        for stored in tensors:
            name = stored.key
            for pattern, replacement in renames:
                name = pattern.sub(replacement, name)
            if not ignored.match(name):
                self._add(name, stored)
                self.names[stored.key] = copies.get(name, name)
        for copy, name in copies.items():
            if (stored := self._stored.pop(copy, None)) is None:
                continue
            if name in self._stored:
                self._copies[name] = stored
            else:
                self._stored[name] = stored
        self._parts = join_stacks(self._stored, stacks)
        self.names |= {key: part.parameter for key, part in self._parts.items()}

    def _add(self, name: str, stored: StoredTensor) -> None:
        if (other := self._stored.get(name)) is not None:
            raise LoadError(
                f"{stored.file.path}: {stored.key!r} is tensor {name!r}, and so is {other.key!r} of"
                f" {other.file.path}",
                fix="remove one of them",
            )
        self._stored[name] = stored

    def parameter(self, name: str, shape: tuple[int, ...]) -> Parameter:
        """The parameter called ``name``.

        Raises `LoadError` when it is missing or has another shape.
        """
        if (made := self._used.get(name)) is not None:
            return made
        if (stored := self._stored.get(name)) is None:
            raise self._missing(name, shape)
        if stored.shape != shape:
            raise self._quantised() or LoadError(
                f"{stored.file.path}: {stored.key!r} has shape {shape_text(stored.shape)},"
                f" expected {shape_text(shape)} by {self._shapes_from}",
                fix=self._fix,
            )
        made = self._used[name] = Parameter.from_source(name, stored.type, self)
        return made

    def stored(self, name: str) -> StoredTensor:
        """The tensor that the parameter called ``name`` is read from."""
        return self._stored[name]

    def part(self, key: str, array: Array) -> Array:
        """What the tensor ``key`` of the files holds of the elements of its parameter."""
        return array if (part := self._parts.get(key)) is None else part.of(array)

    def made(self, parameter: Parameter) -> bool:
        """Whether ``parameter`` was made here, and not replaced."""
        return self._used.get(parameter.name) is parameter

    def _missing(self, name: str, shape: tuple[int, ...]) -> LoadError:
        if (quantised := self._quantised()) is not None:
            return quantised
        near = nearest(name, self._stored)
        such = f", such as {self._stored[near].key}" if near is not None else ""
        return LoadError(
            f"{self._place} has no tensor {name!r} {shape_text(shape)}"
            f" (it has {len(self._stored)} tensors{such})",
            fix=self._fix,
        )

    def _quantised(self) -> LoadError | None:
        """The error where tensor names are those of quantised weights."""
        from gptrs.formats.unsupported import quantised_tensor  # for errors alone

        return quantised_tensor(self._place, (tensor.key for tensor in self._stored.values()))

    def finish(self) -> None:
        """Check that the model uses every tensor, and report what was opened."""
        if extra := sorted(set(self._stored) - set(self._used)):
            first = self._stored[extra[0]]
            raise self._quantised() or LoadError(
                f"{first.file.path}: the model has no place for tensor {first.key!r}"
                f"{f' and {len(extra) - 1} more' if len(extra) > 1 else ''}",
                fix=self._fix,
            )
        if events.listening():
            size = sum(_bytes(p.type) for p in self._used.values())
            events.emit(WeightsOpened(len(self._used), size))

    def load(self, name: str) -> Array:
        return self._read(name, self._stored[name].shape)

    def load_rows(self, name: str, first: int, last: int) -> Array:
        count, *row = self._stored[name].shape
        first, last, _ = slice(first, last).indices(count)
        return self._read(name, (max(last - first, 0), *row), first)

    def load_matrix_rows(self, name: str, first: int, last: int) -> Array:
        *outer, width = self._stored[name].shape
        first, last, _ = slice(first, last).indices(math.prod(outer))
        return self._read(name, (max(last - first, 0), width), first)

    def _read(self, name: str, shape: tuple[int, ...], first: int = 0) -> Array:
        """The elements of ``shape`` that begin with row ``first``."""
        stored = self._stored[name]
        skip = first * math.prod(shape[1:]) * stored.type.dtype.numpy.itemsize
        array = stored.array(shape, skip)
        if (copy := self._copies.get(name)) is not None and (
            copy.type != stored.type or not copy.holds(array, skip)
        ):
            raise LoadError(
                f"{copy.file.path}: {copy.key!r} differs from {stored.key!r}, expected a copy"
                " of it, because tie_word_embeddings is true",
                fix="set tie_word_embeddings to false in config.json to use both",
            )
        if events.listening():
            events.emit(WeightRead(name, array.nbytes))
        return array


def _bytes(type: Type) -> int:
    return int(type.size) * type.dtype.numpy.itemsize
