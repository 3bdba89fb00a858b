"""Writing into tensors: ``x[key] = v`` and ``x += v`` give ``x``, the object, a new value.

Elements are immutable: an update makes a new array or traced value, which then belongs to the same
Tensor, so that all names of that object see it, and no array that a caller has is written. Values
that are not of the function that is traced (captured from outside, of an enclosing function,
weights of a model) are no such objects: writing into one is a `TraceError`, and ``+=`` gives the
name another Tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gptrs.errors import TraceError
from gptrs.ir.dims import same_shape
from gptrs.ir.dispatch import FUNCTIONS
from gptrs.ir.traced import code_of, described, located
from gptrs.ir.types import KIND_RANK

_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)


class Writable:
    """The assignments of a Tensor."""

    __slots__ = ()

    if TYPE_CHECKING:
        recorder: object
        weak: bool

        @property
        def type(self) -> Any: ...
        @property
        def is_traced(self) -> bool: ...
        @property
        def is_parameter(self) -> bool: ...
        def take_value(self, new: Any) -> None: ...

    def __setitem__(self, key: Any, value: Any) -> None:
        """Replace elements; see `gptrs.numpy_api.indexing.Elements` for keys and values."""
        new = FUNCTIONS["at"](self)[key].set(value)
        if not _may_become(self, new):
            raise located(_not_here(self))
        self.take_value(new)


def _may_become(x: Writable, new: Any) -> bool:
    """Whether ``new`` may take the place of ``x``: it belongs to the same function."""
    if x.is_parameter:
        return False
    return not new.is_traced or new.recorder is x.recorder


def _not_here(x: Any) -> TraceError:
    name = code_of(x, "x")
    if x.is_parameter:
        return TraceError(
            f"a weight of a model cannot be written into ({described(x)})",
            fix="compute a new value: w.at[...].set(v)",
        )
    if x.is_traced:
        return TraceError(
            f"a value of the enclosing function is written in a branch or loop body"
            f" ({described(x)})",
            fix=f"make {name} an operand or a part of the state, and return it",
        )
    return TraceError(
        f"a Tensor from outside of the traced function is written into ({described(x)})",
        fix=f"pass it as an argument and return it; or write into a copy: {name} = {name}.copy()",
    )


def _updated(x: Writable, new: Any) -> Any:
    """The result of ``x += v``, where ``new`` is ``x + v``: ``x`` with that value, in its dtype.

    Where ``x`` cannot have it (another shape, a dtype of a higher kind), ``new``.
    """
    fits = same_shape(new.type.shape, x.type.shape) and not x.weak
    if not fits or KIND_RANK[new.type.dtype.kind] > KIND_RANK[x.type.dtype.kind]:
        return new
    if not _may_become(x, new):
        return new
    x.take_value(new if new.type.dtype is x.type.dtype else new.astype(x.type.dtype))
    return x


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def update(self: Any, other: Any) -> Any:
        return _updated(self, function(self, other))

    return update


for _name in _OPERATORS:
    _function = getattr(operator, f"__{_name}__")
    setattr(Writable, f"__i{_name}__", _in_place(_function))
