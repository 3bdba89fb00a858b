"""Ops: one decorated function, whose signature is the schema of the op.

Positional parameters are operands, keyword-only ones attributes. `Op` is the base of all ops: a
call binds and prepares the operands, then goes to the current interpreter (`gptrs.ir.dispatch`).
Ops with a type rule and a NumPy meaning are declared in `gptrs.ir.primitives`, those defined by
other ops in `gptrs.ir.composites`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_type_hints

from gptrs import settings
from gptrs.errors import ArgumentError, DTypeError, PtirError, user_traceback
from gptrs.ir.call_stack import call_location
from gptrs.ir.dispatch import current
from gptrs.ir.hints import tell_operand
from gptrs.ir.interpreters import EAGER
from gptrs.ir.kinds import OpKind
from gptrs.ir.op_arguments import attribute, classes_of, expected, renamed_keywords
from gptrs.ir.operands import describe, map_operand, types_key
from gptrs.ir.program import Attrs, Operation, RowRule, Value, attrs_key
from gptrs.ir.promotion import is_strict, promote
from gptrs.ir.registry import define, named
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Kind

P = ParamSpec("P")
R = TypeVar("R")
_MEMO_LIMIT = 4096  # type rules are remembered; eager runs over many shapes must not pile up


class Op(Operation, Generic[P, R]):
    """An op: its schema, call syntax, and memoised type rule. Registers itself in `OPS`."""

    def __init__(
        self, fn: Callable[..., Any], *, kind: OpKind = OpKind.OTHER, rows: RowRule | None = None
    ) -> None:
        self.name = fn.__name__.rstrip("_")
        self.kind = kind
        self.rows = rows
        self.__doc__ = fn.__doc__
        self.__name__ = self.name
        self.__qualname__ = fn.__qualname__
        self.__module__ = fn.__module__
        self.__signature__ = inspect.signature(fn)
        parameters = self.__signature__.parameters.values()
        keyword = inspect.Parameter.KEYWORD_ONLY
        self.operand_names = tuple(p.name for p in parameters if p.kind is not keyword)
        hints = get_type_hints(fn)
        self._operand_classes = {
            p.name: classes_of(hints[p.name]) if p.name in hints else self._unannotated(p)
            for p in parameters
            if p.kind is not keyword
        }
        self._operand_defaults = {p.name: p.default for p in parameters if p.kind is not keyword}
        self.attr_defaults = {p.name: p.default for p in parameters if p.kind is keyword}
        self._attr_classes = {
            name: classes_of(hints.get(name, object)) for name in self.attr_defaults
        }
        self._required = {n for n, d in self.attr_defaults.items() if d is inspect.Parameter.empty}
        self.batching_rule: Callable[..., Any] | None = None
        self._canonical: Callable[..., Attrs] | None = None
        self._promoted: frozenset[str] = frozenset()
        self._promoted_kinds: tuple[Kind, ...] = ()
        self._memo: dict[object, Any] = {}
        define(self)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        """Copies of an op are the op itself; a pickle holds its name."""
        return named, (self.name,)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        operands: tuple[Any, ...] = ()
        try:
            operands, attrs = self._bind(args, kwargs)
            return cast("R", (current() or EAGER).apply(self, operands, attrs))
        except PtirError as error:
            if isinstance(error, DTypeError):
                tell_operand(error, self.operand_names, operands)
            error.context.append(f"{self.name}({self._describe(args, kwargs)})")
            error.where = error.where or call_location()
            raise user_traceback(error, full=settings.full_traceback()) from None

    def __repr__(self) -> str:
        return f"ptir.{self.name}"

    def _unannotated(self, operand: inspect.Parameter) -> tuple[type, ...]:
        """What an operand may be that is not annotated."""
        return (Tensor, type(None)) if operand.default is None else (Tensor,)

    def canonical(self, fn: Callable[..., Attrs]) -> Callable[..., Attrs]:
        """Decorate ``fn(*operands, **attrs)``, which returns the attributes in normal form."""
        self._canonical = fn
        return fn

    def batching(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate ``rule(size, mapped, *operands, **attrs)``, by which `ptir.vmap` maps the op.

        It takes the operands of ``size`` examples, those that differ by example with a batch axis
        in front; ``mapped`` says which do (True or False for each, a tuple of these for a tuple).
        It returns the results of all examples with the batch axis in front. Elementwise ops need
        no rule; a composite without one, or whose rule returns ``NotImplemented``, is mapped by its
        definition. The rule of an op with regions or effects takes a
        `gptrs.ir.batching.replay.Replay`, the instruction and its operands instead.
        """
        self.batching_rule = rule
        return rule

    def promoting(self, *names: str, kinds: tuple[Kind, ...] = ()) -> None:
        """Declare the operands that are promoted to the dtype which they share (`promote`); to f32
        where ``kinds`` are floating and it is an integer."""
        self._promoted = frozenset(names)
        self._promoted_kinds = kinds

    def takes_number(self, place: int) -> bool:
        """Whether the operand at ``place`` may be a Python number instead of a Tensor."""
        return float in self._operand_classes[self.operand_names[place]]

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Attrs]:
        """Operands in order, absent ones as their default, and the attributes that were given."""
        complete = len(args) == len(self.operand_names) and self._required <= kwargs.keys()
        if complete and kwargs.keys() <= self.attr_defaults.keys():  # most calls, in less time
            return args, {n: kwargs[n] for n in self.attr_defaults if n in kwargs}
        args, kwargs = self._in_schema(args, kwargs)
        try:
            given = self.__signature__.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentError(
                f"{self.name}: {error}", fix=f"call it as {self.name}{self.__signature__}"
            ) from None
        operands = tuple(given.get(n, self._operand_defaults[n]) for n in self.operand_names)
        return operands, {n: given[n] for n in self.attr_defaults if n in given}

    def _in_schema(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call in NumPy's or torch's form: attributes by position, in the order
        of the schema, and keywords under `OTHER_NAMES`."""
        kwargs = renamed_keywords(kwargs, self.__signature__.parameters)
        count = len(self.operand_names)
        further = dict(zip(self.attr_defaults, args[count:], strict=False))
        if len(args) - count != len(further) or further.keys() & kwargs.keys():
            return args, kwargs  # too many, or one twice: the signature says which
        return args[:count], {**further, **kwargs}

    def prepare(self, operands: Sequence[Any], attrs: Attrs) -> tuple[tuple[Any, ...], Attrs]:
        for (name, classes), operand in zip(self._operand_classes.items(), operands, strict=True):
            if not isinstance(operand, classes):
                raise ArgumentError(
                    f"{name} is {describe(operand)}, expected {expected(classes)}",
                    fix="ptir.tensor(x) makes a Tensor of numbers",
                )
        ready = self._promote(operands) if self._promoted and not is_strict() else tuple(operands)
        full = {n: attribute(n, attrs.get(n, d)) for n, d in self.attr_defaults.items()}
        for name, classes in self._attr_classes.items():
            if not isinstance(full[name], classes):
                raise ArgumentError(
                    f"{name} is {describe(full[name])}, expected {expected(classes)}"
                )
        if self._canonical is not None:
            full = {**full, **self._canonical(*ready, **full)}
        return ready, full

    def _promote(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        named = zip(self.operand_names, operands, strict=True)
        given = tuple(operand for name, operand in named if name in self._promoted)
        among = iter(promote(given, self._promoted_kinds))
        named = zip(self.operand_names, operands, strict=True)
        return tuple(next(among) if name in self._promoted else o for name, o in named)

    def named(self, operands: Sequence[Any], attrs: Attrs) -> dict[str, Any]:
        """Operands, those with a type as their types, and attributes, by name."""
        types = (
            map_operand(lambda o: o.type if isinstance(o, Tensor | Value) else o, operand)
            for operand in operands
        )
        return {**dict(zip(self.operand_names, types, strict=True)), **attrs}

    def _key(self, operands: Sequence[Any], attrs: Attrs) -> object:
        return types_key(tuple(operands)), attrs_key(attrs)

    def _remember(self, key: object, make: Callable[[], R]) -> R:
        found = self._memo.get(key)
        if found is None:
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo.clear()
            found = self._memo[key] = make()
        return found

    def _describe(self, args: Sequence[object], kwargs: dict[str, Any]) -> str:
        named = [*zip(self.operand_names, args, strict=False), *kwargs.items()]
        return ", ".join(f"{name}: {describe(value)}" for name, value in named)
