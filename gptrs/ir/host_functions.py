"""Python functions that programs call at run time, by `ptir.callback`.

A `HostFunction` is an attribute of an instruction. The text of a program has its name, which is
known in this process alone, for as long as a program holds the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gptrs import tree
from gptrs.errors import ArgumentError, DTypeError, ShapeError, shown
from gptrs.ir import effect_tape
from gptrs.ir.dispatch import interpreter
from gptrs.ir.tensor import as_array
from gptrs.ir.types import Array, Type

_numbers = count(1)


class HostFunction:
    """``function``, which takes trees of NumPy arrays and returns a tree.

    ``arguments`` are the structures of its positional arguments, as one tuple; ``result`` is that
    of what it returns, None where that is ignored.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tree.Structure,
        result: tree.Structure | None,
    ) -> None:
        self._function, self._arguments, self._result = function, arguments, result
        label = getattr(function, "__qualname__", type(function).__qualname__)
        self.label = label.replace("<locals>.", "")
        self.name = f"{self.label}#{next(_numbers)}"
        known[self.name] = self

    def __repr__(self) -> str:
        return repr(self.name)

    def __call__(self, operands: Sequence[Any], types: Sequence[Type]) -> tuple[Array, ...]:
        """The results, of ``types``, for ``operands``, whose elements are copied: the function may
        keep its arguments. Raises `ArgumentError`, `ShapeError` or `DTypeError` for other results,
        and what the function raises."""
        if effect_tape.is_replaying():
            return effect_tape.next_results(self.label)
        copies = [np.array(operand, order="C") for operand in operands]
        arguments: Any = tree.unflatten(self._arguments, copies)
        with interpreter(None):
            returned = self._function(*arguments)
        if self._result is None:
            effect_tape.note(())
            return ()
        leaves, structure = tree.flatten(returned, is_leaf=_is_array)
        if structure != self._result:
            raise ArgumentError(
                f"the callback {self.label} returned {shown(returned)}, of another structure than"
                " result= says",
                fix="return the containers of result=",
            )
        named = zip(tree.paths(structure, "its result"), leaves, types, strict=True)
        results = tuple(self._leaf(*each) for each in named)
        effect_tape.note(results)
        return results

    def _leaf(self, path: str, leaf: object, type: Type) -> Array:
        if isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, np.generic):
            array = np.asarray(leaf).astype(type.dtype.numpy)
        elif (array := as_array(leaf)) is None:
            raise ArgumentError(
                f"the callback {self.label}: {path} is {shown(leaf)}, expected {type}"
            )
        found, problem = Type.of(array), f"the callback {self.label}: {path} is"
        if found.shape != type.shape:
            raise ShapeError(
                f"{problem} {found}, and result= says {type}", fix="return an array of that shape"
            )
        if found.dtype is not type.dtype:
            raise DTypeError(
                f"{problem} {found}, and result= says {type}",
                fix=f"return x.astype({type.dtype.name!r}), or say {found.dtype} in result=",
            )
        return array


known: WeakValueDictionary[str, HostFunction] = WeakValueDictionary()
"""The functions of this process by name."""


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray | np.generic)
