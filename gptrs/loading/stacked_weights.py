"""Stacked parameters of files that hold their parts: the experts of a layer, one by one."""

from __future__ import annotations

from typing import NamedTuple

from gptrs.errors import LoadError
from gptrs.formats.joined_tensor import joined_tensor
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.ir.types import Array
from gptrs.models.base import Stacks


class Part(NamedTuple):
    """The place of a tensor of a file in a stacked parameter: number ``number`` of ``parts``."""

    parameter: str
    number: int
    parts: int

    def of(self, array: Array) -> Array:
        """What it holds of the elements of the parameter."""
        return array.reshape(self.parts, -1, array.shape[-1])[self.number]


def join_stacks(stored: dict[str, StoredTensor], stacks: Stacks) -> dict[str, Part]:
    """Put the whole in the place of the parts of each stack that ``stored`` (tensors by their
    parameters' names) holds in parts.

    Returns the parts by their names in the files.
    Raises `LoadError` where there are both, or only some of the parts.
    """
    places: dict[str, Part] = {}
    for name, groups in stacks.items():
        names = [part for group in groups for part in group]
        found = [part for part in names if part in stored]
        if not found:
            continue
        first = stored[found[0]]
        if (whole := stored.get(name)) is not None:
            raise LoadError(
                f"{first.file.path}: {first.key!r} is a part of tensor {name!r}, which"
                f" {whole.file.path} holds as a whole, too: {whole.key!r}",
                fix="remove the tensors of single experts, or those of all experts",
            )
        if len(found) < len(names):
            missing = next(part for part in names if part not in stored)
            raise LoadError(
                f"{first.file.path} has {first.key!r} and no tensor {missing!r}: {len(found)} of"
                f" the {len(names)} parts of {name!r}",
                fix="check that the number of experts in the configuration is that of the files",
            )
        for number, part in enumerate(names):
            places[stored[part].key] = Part(name, number, len(names))
        stored[name] = joined_tensor([[stored.pop(part) for part in group] for group in groups])
    return places
