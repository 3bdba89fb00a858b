"""Declaration of primitives: ops with a type rule and a NumPy meaning.

The body of a `primitive` is its type rule, and ``@op.numpy`` gives its NumPy meaning: reference
backend, eager mode and test oracle at once. An `elementwise` op broadcasts its operands to one
shape, and may have a scalar rule (``@op.scalar``), through which loops are fused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast, overload

import numpy as np

from gptrs.errors import ArgumentError, DTypeError, VerifyError
from gptrs.ir.checks import one_dtype, one_shape
from gptrs.ir.dims import Dim, Shape, same_shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.hints import name_operand
from gptrs.ir.kinds import OpKind
from gptrs.ir.op import Op
from gptrs.ir.operands import (
    as_rule_operand,
    describe,
    map_operand,
    rounded,
    several,
    tensors_in,
    widened,
)
from gptrs.ir.program import Attrs, Fails, RowRule
from gptrs.ir.promotion import NUMBERS, is_strict, promote, settle_weak, weak_tensor
from gptrs.ir.registry import changed
from gptrs.ir.row_rules import elementwise_rows
from gptrs.ir.scalar_rules import scalar_rule
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Kind, Type, broadcast_shapes

P = ParamSpec("P")
R = TypeVar("R")


class Primitive(Op[P, R]):
    """An op with a type rule and a NumPy meaning."""

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        arithmetic: bool = False,
        kind: OpKind = OpKind.OTHER,
        rows: RowRule | None = None,
    ) -> None:
        self.rule = fn
        self.arithmetic = arithmetic  # computes on elements, so narrow floats are widened
        self.meaning: Callable[..., Any] | None = None
        self._fails: Callable[..., Fails] | None = None
        super().__init__(fn, kind=kind, rows=rows)

    def numpy(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate the NumPy meaning: operands as arrays and scalars, the same attributes."""
        self.meaning = fn
        changed()
        return fn

    def failing(self, fn: Callable[..., Fails]) -> Callable[..., Fails]:
        """Decorate the failure rule: ``fn`` takes the arguments of the type rule and returns when
        the NumPy meaning raises `ElementError`. An op without it never does."""
        self._fails = fn
        return fn

    def fails(self, operands: Sequence[Any], attrs: Attrs) -> Fails:
        if self._fails is None:
            return super().fails(operands, attrs)
        rule = self._fails

        def make() -> Any:
            return rule(*(map_operand(as_rule_operand, o) for o in operands), **attrs)

        return cast("Fails", self._remember((Fails, self._key(operands, attrs)), make))

    def infer(self, operands: Sequence[Any], attrs: Attrs) -> tuple[Type, ...]:
        def make() -> Any:
            given = [map_operand(as_rule_operand, operand) for operand in operands]
            try:
                return self._types(self.rule(*given, **attrs), given)
            except DTypeError as error:
                name_operand(error, self.operand_names, given)
                raise

        return cast("tuple[Type, ...]", self._remember(self._key(operands, attrs), make))

    def _types(self, said: Any, operands: Sequence[Any]) -> tuple[Type, ...]:
        """What the type rule said. Raises `ArgumentError` where that is no type."""
        if not all(isinstance(type, Type) for type in several(said)):
            raise ArgumentError(
                f"the type rule of {self.name} returned {describe(said)}, expected a ptir.Type",
                fix="return x.type, or ptir.Type(shape, dtype)",
            )
        return several(said)

    def evaluate(
        self, operands: Sequence[Any], attrs: Attrs, types: tuple[Type, ...]
    ) -> tuple[Array, ...]:
        if self.meaning is None:
            raise ArgumentError(
                f"{self.name} has no NumPy meaning", fix=f"say it: @{self.name}.numpy above a def"
            )
        if self.arithmetic:
            operands = [map_operand(widened, operand) for operand in operands]
        with np.errstate(all="ignore"):
            results = self.meaning(*operands, **attrs)
        return tuple(map(self._result, several(results), types))

    def _result(self, result: Any, type: Type) -> Array:
        array = rounded(result, type)
        if not _may_have_shape(type.shape, array.shape):
            raise VerifyError(
                f"the NumPy meaning of {self.name} gave the shape {array.shape}, its type rule says"
                f" {type}"
            )
        return array


class Elementwise(Primitive[P, R]):
    """A primitive that works element by element; its operands are broadcast to one shape.

    With ``predicate`` the first operand is a mask and keeps its own dtype.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        commutative: bool = False,
        predicate: bool = False,
        cost: int = 1,
        kinds: tuple[Kind, ...] = (),
    ) -> None:
        self.kinds = kinds  # of dtypes that its type rule takes; () if it says nothing
        self.commutative = commutative
        self.predicate = predicate
        self.cost = cost
        super().__init__(fn, arithmetic=True, kind=OpKind.ELEMENTWISE, rows=elementwise_rows)

    def _unannotated(self, operand: inspect.Parameter) -> tuple[type, ...]:
        return Tensor, bool, int, float, complex, Dim

    def _types(self, said: Any, operands: Sequence[Any]) -> tuple[Type, ...]:
        """The type of the operands where the rule says nothing."""
        if said is not None:
            return super()._types(said, operands)
        values = operands[int(self.predicate) :]
        return (Type(one_shape(*operands), one_dtype(*values)),)

    def scalar(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate what the op computes of one element of each operand: see
        `gptrs.ir.scalar_rules`. Backends that write loops then fuse the op."""
        self.scalar_rule = scalar_rule(fn, self.name, self.operand_names, tuple(self.attr_defaults))
        changed()
        return fn

    def prepare(self, operands: Sequence[Any], attrs: Attrs) -> tuple[tuple[Any, ...], Attrs]:
        if not tensors_in(operands):
            operands = [weak_tensor(o) if isinstance(o, NUMBERS) else o for o in operands]
        ready, attrs = super().prepare(operands, attrs)
        first = int(self.predicate)
        settle = settle_weak(ready[first:]) if is_strict() else promote(ready[first:], self.kinds)
        ready = (*ready[:first], *settle)
        shape = broadcast_shapes(*(t.shape for t in tensors_in(ready)))
        return tuple(
            OPS["broadcast_to"](o, shape=shape)
            if isinstance(o, Tensor) and not same_shape(o.shape, shape)
            else o
            for o in ready
        ), attrs


def _may_have_shape(shape: Shape, found: tuple[int, ...]) -> bool:
    """Whether ``found`` is ``shape`` at some sizes of its symbols."""
    return len(shape) == len(found) and all(
        isinstance(n, Dim) or n == m for n, m in zip(shape, found, strict=True)
    )


@overload
def primitive(fn: Callable[P, Type], /) -> Primitive[P, Tensor]: ...
@overload
def primitive(fn: Callable[P, tuple[Type, ...]], /) -> Primitive[P, tuple[Tensor, ...]]: ...
@overload
def primitive(
    *, kind: OpKind = OpKind.OTHER, rows: RowRule | None = None
) -> Callable[[Callable[P, Type]], Primitive[P, Tensor]]: ...


def primitive(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    kind: OpKind = OpKind.OTHER,
    rows: RowRule | None = None,
) -> Any:
    """Declare an op by its type rule, the body; ``@op.numpy`` says what it computes.

    Narrow floats reach its meaning as they are: declare what computes by element as `elementwise`.
    """
    if fn is not None:
        return Primitive[..., Any](fn)
    return lambda fn: Primitive(fn, kind=kind, rows=rows)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownVariableType]


def arithmetic(
    kind: OpKind = OpKind.OTHER, *, rows: RowRule | None = None
) -> Callable[[Callable[P, Type]], Primitive[P, Tensor]]:
    """Declare an op that computes; narrow floats reach its meaning as f32 and are rounded once."""
    return lambda fn: Primitive(fn, arithmetic=True, kind=kind, rows=rows)


@overload
def elementwise(fn: Callable[P, Type | None], /) -> Elementwise[P, Tensor]: ...
@overload
def elementwise(
    *, commutative: bool = False, predicate: bool = False, cost: int = 1
) -> Callable[[Callable[P, Type | None]], Elementwise[P, Tensor]]: ...


def elementwise(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    commutative: bool = False,
    predicate: bool = False,
    cost: int = 1,
) -> Any:
    """Declare an op that works element by element.

    The body is its type rule: a type, or nothing where the result has the type of the operands.
    With ``predicate`` the first operand is a mask; ``cost`` is about how many additions it takes.
    """
    if fn is not None:
        return Elementwise[..., Any](fn)
    options: dict[str, Any] = {"commutative": commutative, "predicate": predicate, "cost": cost}
    return lambda fn: Elementwise(fn, **options)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownVariableType]
