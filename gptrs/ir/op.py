"""Declaration of ops: one decorated function, whose signature is the schema of the op.

Positional parameters are operands, keyword-only ones attributes. The body of a `primitive` is its
type rule, and ``@op.numpy`` gives its NumPy meaning: reference backend, eager mode and test oracle
at once. A call binds and prepares the operands, then goes to the current interpreter
(`gptrs.ir.dispatch`). Ops defined by other ops: `gptrs.ir.composites`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType, UnionType
from typing import (
    Any,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import numpy as np

from gptrs import settings
from gptrs.errors import (
    ArgumentError,
    DTypeError,
    PtirError,
    VerifyError,
    user_location,
    user_traceback,
)
from gptrs.ir.checks import one_dtype, one_shape
from gptrs.ir.dims import Dim, Shape, same_shape
from gptrs.ir.dispatch import OPS, current
from gptrs.ir.hints import name_operand, tell_operand
from gptrs.ir.interpreters import EAGER, program_of
from gptrs.ir.kinds import OpKind
from gptrs.ir.operands import (
    as_rule_operand,
    describe,
    map_operand,
    rounded,
    several,
    tensors_in,
    types_key,
    widened,
)
from gptrs.ir.program import Attrs, Fails, Operation, Program, RowRule, Value, attrs_key
from gptrs.ir.registry import changed, define, named
from gptrs.ir.row_rules import elementwise_rows
from gptrs.ir.scalar_rules import scalar_rule
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import KIND_RANK, Array, DType, Type, as_dtype, broadcast_shapes

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
            p.name: _classes(hints[p.name]) if p.name in hints else self._unannotated(p)
            for p in parameters
            if p.kind is not keyword
        }
        self._operand_defaults = {p.name: p.default for p in parameters if p.kind is not keyword}
        self.attr_defaults = {p.name: p.default for p in parameters if p.kind is keyword}
        self._attr_classes = {
            name: _classes(hints.get(name, object)) for name in self.attr_defaults
        }
        self._required = {n for n, d in self.attr_defaults.items() if d is inspect.Parameter.empty}
        self._canonical: Callable[..., Attrs] | None = None
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
            error.where = error.where or user_location()
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

    def takes_number(self, place: int) -> bool:
        """Whether the operand at ``place`` may be a Python number instead of a Tensor."""
        return float in self._operand_classes[self.operand_names[place]]

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Attrs]:
        """Operands in order, absent ones as their default, and the attributes that were given."""
        complete = len(args) == len(self.operand_names) and self._required <= kwargs.keys()
        if complete and kwargs.keys() <= self.attr_defaults.keys():  # most calls, in less time
            return args, {n: kwargs[n] for n in self.attr_defaults if n in kwargs}
        try:
            given = self.__signature__.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentError(
                f"{self.name}: {error}", fix=f"call it as {self.name}{self.__signature__}"
            ) from None
        operands = tuple(given.get(n, self._operand_defaults[n]) for n in self.operand_names)
        return operands, {n: given[n] for n in self.attr_defaults if n in given}

    def prepare(self, operands: Sequence[Any], attrs: Attrs) -> tuple[tuple[Any, ...], Attrs]:
        for (name, classes), operand in zip(self._operand_classes.items(), operands, strict=True):
            if not isinstance(operand, classes):
                raise ArgumentError(
                    f"{name} is {describe(operand)}, expected {_expected(classes)}",
                    fix="ptir.tensor(x) makes a Tensor of numbers",
                )
        full = {n: _attribute(n, attrs.get(n, d)) for n, d in self.attr_defaults.items()}
        for name, classes in self._attr_classes.items():
            if not isinstance(full[name], classes):
                raise ArgumentError(
                    f"{name} is {describe(full[name])}, expected {_expected(classes)}"
                )
        if self._canonical is not None:
            full = {**full, **self._canonical(*operands, **full)}
        return tuple(operands), full

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
        return self._fails(*(map_operand(as_rule_operand, o) for o in operands), **attrs)

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
    ) -> None:
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
        ready, attrs = super().prepare(operands, attrs)
        first = int(self.predicate)
        ready = (*ready[:first], *_settle_weak(ready[first:]))
        tensors = tensors_in(ready)
        if not tensors:
            raise ArgumentError(f"{self.name} needs at least one Tensor among its operands")
        shape = broadcast_shapes(*(t.shape for t in tensors))
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


def _classes(hint: Any) -> tuple[type, ...]:
    """The Python classes of an annotated operand or attribute: unions expanded, tuples as
    ``tuple``, a float also given as an integer."""
    origin = get_origin(hint)
    if origin is Literal:
        return tuple(type(cast("object", choice)) for choice in get_args(hint))
    if isinstance(origin, type) and origin is not UnionType:
        return (origin,)
    if origin is not None:
        return tuple(found for part in get_args(hint) for found in _classes(part))
    return (int, float) if hint is float else (hint,)


def _expected(classes: tuple[type, ...]) -> str:
    """``classes`` in the user's words."""
    words: dict[type, str] = {
        Tensor: "a Tensor",
        tuple: "a tuple or list",
        type(None): "None",
        str: "a string",
        bool: "True or False",
        int: "an integer",
        np.ndarray: "an array",
        DType: "a dtype",
        Dim: "a dimension",
        Program: "a program",
        float: "a number",
        complex: "a number",
    }
    if float in classes:
        classes = tuple(kind for kind in classes if kind not in (bool, int, Dim))
    return " or ".join(dict.fromkeys(words[kind] for kind in classes))


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


def _settle_weak(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Weak tensors (made of Python scalars) take the dtype of the others if it can hold them."""
    tensors = tensors_in(operands)
    if not any(t.weak for t in tensors):
        return operands
    leading = [t for t in tensors if not t.weak] or tensors
    dtype = max((t.dtype for t in leading), key=lambda dtype: KIND_RANK[dtype.kind])
    return tuple(
        OPS["cast"](o, dtype=dtype)
        if isinstance(o, Tensor)
        and o.weak
        and o.dtype is not dtype
        and KIND_RANK[o.dtype.kind] <= KIND_RANK[dtype.kind]
        else o
        for o in operands
    )


_PLAIN = frozenset([int, float, bool, str, type(None)])


def _attribute(name: str, value: Any) -> Any:
    """An attribute in normal form: no lists, no NumPy scalars, dtypes as `DType`."""
    if type(value) in _PLAIN and not name.endswith("dtype"):  # most calls
        return value
    if isinstance(value, Tensor):
        raise ArgumentError(
            f"attribute {name} must be known while tracing, found a Tensor ({value.type})",
            fix="pass a Python number, or make the argument static with static_argnames",
        )
    if value is None or isinstance(value, np.ndarray | Program):
        return cast("Any", value)
    if isinstance(value, FunctionType):  # as a program's text has it
        return program_of(value)
    if name.endswith("dtype"):
        return as_dtype(value)
    if isinstance(value, np.generic):
        return cast("Any", value.item())
    if isinstance(value, tuple | list):
        return tuple(_attribute(name, v) for v in cast("Sequence[Any]", value))
    return value
