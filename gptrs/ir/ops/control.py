"""Control flow ops: cond, while_loop, scan. Their regions are programs, held as attributes.

Each op has two call forms. In a program, and in its text, the operands are a tuple and the regions
are keywords: ``ptir.cond(p, (x, y), then=..., otherwise=...)``. Users pass Python functions first:
``ptir.cond(p, f, g, x, y)``; `gptrs.ir.control` traces them into regions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, ParamSpec, cast

import numpy as np

from gptrs import settings
from gptrs.errors import ArgumentError, PtirError, ShapeError, user_location, user_traceback
from gptrs.ir import control as functions
from gptrs.ir.dims import Dim, DimLike, same, size_at
from gptrs.ir.dispatch import current
from gptrs.ir.interpreters import EAGER
from gptrs.ir.kinds import OpKind
from gptrs.ir.operand_trees import element_type
from gptrs.ir.operands import describe
from gptrs.ir.primitives import Primitive
from gptrs.ir.program import Attrs, Program, Value
from gptrs.ir.sizes import evaluate
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, i1

__all__ = ["cond", "scan", "while_loop"]

P = ParamSpec("P")
Tensors = tuple[Tensor, ...]
Arrays = tuple[Array, ...]


class Control(Primitive[P, Any]):
    """An op with regions. ``functions`` implements the call form with Python functions."""

    def __init__(self, rule: Callable[..., Any], functions: Callable[P, Any]) -> None:
        super().__init__(rule, kind=OpKind.CONTROL)
        self._functions = functions
        self._user_signature = inspect.signature(functions)
        self._first_tuple = [*self._operand_classes.values()].index((tuple,))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Take the operands as a tuple, as programs do, or call `functions`."""
        in_program = isinstance(next(iter(args[self._first_tuple :]), None), tuple)
        try:
            if in_program:
                operands, attrs = self._bind(args, kwargs)
                return (current() or EAGER).apply(self, operands, attrs)
            given = self._bind_functions(args, kwargs)
            return self._functions(*given.args, **given.kwargs)
        except PtirError as error:
            names = self.operand_names if in_program else self._user_signature.parameters
            named = [*zip(names, args, strict=False), *kwargs.items()]
            told = ", ".join(f"{name}: {_described(value)}" for name, value in named)
            error.context.append(f"{self.name}({told})")
            error.where = error.where or user_location()
            raise user_traceback(error, full=settings.full_traceback()) from None

    def _in_schema(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """As they are: functions by position are the user's form, not the program's."""
        return args, kwargs

    def _bind_functions(self, args: Any, kwargs: Any) -> inspect.BoundArguments:
        try:
            return self._user_signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(
                f"{self.name}: {error}", fix=f"call it as {self.name}{self._user_signature}"
            ) from None

    def prepare(self, operands: Sequence[Any], attrs: Attrs) -> tuple[tuple[Any, ...], Attrs]:
        for name, region in attrs.items():
            untyped = isinstance(region, FunctionType) and not region.__annotations__
            if untyped and region.__code__.co_argcount:
                raise ArgumentError(
                    f"{name} is a function whose arguments have no types, and the operands are a"
                    " tuple",
                    fix=f"call it as {self.name}{self._user_signature}",
                )
        return super().prepare(operands, attrs)

    def infer(self, operands: Sequence[Any], attrs: Attrs) -> tuple[Type, ...]:
        # Not remembered, as that would keep the regions and the arrays in them.
        return cast("tuple[Type, ...]", self.rule(*operands, **attrs))


def _described(value: object) -> str:
    name = getattr(value, "__qualname__", "") if callable(value) else ""
    return name.replace("<locals>.", "") or describe(value)


def control(
    functions: Callable[P, Any],
) -> Callable[[Callable[..., tuple[Type, ...]]], Control[P]]:
    """Declare an op with regions by its type rule; ``functions`` is the call form for users."""
    return lambda rule: Control(rule, functions)


@control(functions.cond)
def cond(pred: Tensor, operands: Tensors, *, then: Program, otherwise: Program) -> tuple[Type, ...]:
    """``then(*operands)`` where ``pred`` holds, else ``otherwise(*operands)``; one of them runs.

    ``ptir.cond(pred, then, otherwise, *operands)``: the functions take and return trees of arrays
    of the same types, and may read tensors and models from around them. ``pred`` is one i1, or a
    Python bool. Raises `ShapeError`, `DTypeError` or `ArgumentError` naming the result in which the
    branches differ. In eager mode one branch runs as Python, and the other is traced for its types.
    """
    if pred.type != Type((), i1):
        raise ShapeError(f"pred is {pred.type}, expected one truth value, i1[]")
    given = _types("operands", operands)
    for name, branch in (("then", then), ("otherwise", otherwise)):
        _check_params(name, branch, given)
    _check_results("then", then, [r.type for r in otherwise.results], "otherwise")
    return tuple([result.type for result in then.results])


@cond.numpy
def _(pred: Array, operands: Arrays, *, then: Program, otherwise: Program) -> Arrays:
    return _own(evaluate(then if pred else otherwise, operands))


@control(functions.while_loop)
def while_loop(
    state: Tensors, captured: Tensors = (), *, condition: Program, body: Program
) -> tuple[Type, ...]:
    """The state after ``body`` was applied for as long as ``condition`` holds; there is no bound.

    ``ptir.while_loop(condition, body, init)``: the state is a tree of arrays that keep their shapes
    and dtypes, ``condition(state)`` one i1, ``body(state)`` the next state. Both functions may read
    tensors and models from around them. A Python number in ``init`` takes the dtype that the body
    returns in its place. Raises `ShapeError`, `DTypeError` or `ArgumentError` naming the part of
    the state that changes its type. In eager mode the functions run as Python; a step is
    traced before where the state has a Python number, for its dtype.
    """
    before = _types("state", state)
    for name, region in (("condition", condition), ("body", body)):
        _check_params(name, region, [*before, *_types("captured", captured)])
    _check_results("condition", condition, [Type((), i1)], "a loop")
    _check_results("body", body, before, "the state")
    return tuple(before)


@while_loop.numpy
def _(state: Arrays, captured: Arrays = (), *, condition: Program, body: Program) -> Arrays:
    while evaluate(condition, (*state, *captured))[0]:
        state = evaluate(body, (*state, *captured))
    return _own(state)


@control(functions.scan)
def scan(
    state: Tensors,
    xs: Tensors = (),
    captured: Tensors = (),
    *,
    body: Program,
    length: int | Dim | None = None,
    reverse: bool = False,
) -> tuple[Type, ...]:
    """The last state and all outputs of ``state, y = body(state, x)`` for each ``x`` of ``xs``.

    ``ptir.scan(body, init, xs=None, *, length=None, reverse=False)`` returns ``(state, ys)``: the
    ``x`` are slices of the arrays in the tree ``xs`` along their first axes, whose extent is
    ``length``, and the ``y`` are stacked along a new first axis, each in the place of its ``x``
    also if ``reverse`` goes from the last to the first. The state is that of `while_loop`. Raises
    `ShapeError`, `DTypeError` or `ArgumentError` naming the part of the state or ``xs`` that does
    not fit. In eager mode the body runs as Python, as for `while_loop`.
    """
    before, rows = _types("state", state), _types("xs", xs)
    assert length is not None, "canonical"
    for number, type in enumerate(rows):
        if not type.rank or not same(type.shape[0], length):
            raise ShapeError(f"xs[{number}] is {type}, expected {length} along its first axis")
    elements = [element_type(type) for type in rows]
    _check_params("body", body, [*before, *elements, *_types("captured", captured)])
    after = [result.type for result in body.results]
    _check_results("body", body, [*before, *after[len(before) :]], "the state")
    outputs = [type.with_shape((length, *type.shape)) for type in after[len(before) :]]
    return (*before, *outputs)


@scan.canonical
def _(
    state: Tensors, xs: Tensors, captured: Tensors, *, length: DimLike | None, **_: object
) -> Attrs:
    if length is not None:
        return {"length": length}
    if not xs or not xs[0].ndim:
        raise ShapeError("length is not given, and there are no xs whose first axis says it")
    return {"length": xs[0].shape[0]}


@scan.numpy
def _(
    state: Arrays,
    xs: Arrays = (),
    captured: Arrays = (),
    *,
    body: Program,
    length: int,
    reverse: bool,
) -> Arrays:
    count = len(state)
    # An extent that is negative at these sizes is the first step's error, or no step's.
    shapes = [[max(size_at(n, {}), 0) for n in r.type.shape] for r in body.results[count:]]
    dtypes = [r.type.dtype.numpy for r in body.results[count:]]
    ys = [np.empty((length, *s), d) for s, d in zip(shapes, dtypes, strict=True)]
    for step in reversed(range(length)) if reverse else range(length):
        found = evaluate(body, (*state, *[x[step, ...] for x in xs], *captured))
        state = found[:count]
        for y, made in zip(ys, found[count:], strict=True):
            y[step] = made
    return (*_own(state), *ys)


def _own(arrays: Arrays) -> Arrays:
    """Copies: a region may return an operand or a constant, which must not be written into."""
    return tuple([np.array(array, order="C") for array in arrays])


def _types(name: str, operands: Sequence[Any]) -> list[Type]:
    for number, operand in enumerate(operands):
        if not isinstance(operand, Tensor | Value):
            raise ArgumentError(f"{name}[{number}] is {operand!r}, expected a Tensor")
    return [operand.type for operand in operands]


def _check_params(name: str, region: Program, given: Sequence[Type]) -> None:
    takes = [param.type for param in region.params]
    if takes != given:
        expected, found = ", ".join(map(str, takes)), ", ".join(map(str, given))
        raise ShapeError(f"{name} takes ({expected}), found ({found})")
    if not region.results:
        raise ArgumentError(f"{name} returns nothing, expected at least one value")


def _check_results(name: str, region: Program, expected: Sequence[Type], of: str) -> None:
    found = [result.type for result in region.results]
    if len(found) != len(expected):
        raise ShapeError(f"{name} returns {len(found)} values, {of} has {len(expected)}")
    for number, (type, other) in enumerate(zip(found, expected, strict=True)):
        if type != other:
            raise ShapeError(f"result {number} of {name} is {type}, of {of} {other}")
