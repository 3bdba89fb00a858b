"""Composite ops: an op declared by a Python function over other ops, its definition.

The type rule, the failure rule and the NumPy meaning follow from the definition, which is recorded
once for each operand types and attributes. In a program a composite is one instruction, until
`gptrs.passes.legalize` replaces one that the backend does not claim by its definition. Primitives
are declared in `gptrs.ir.primitives`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast, overload

from gptrs.errors import PtirError, VerifyError
from gptrs.ir import nan_watch
from gptrs.ir.dispatch import interpreter
from gptrs.ir.implementation import Implementation
from gptrs.ir.interpreters import Recorder
from gptrs.ir.kinds import OpKind
from gptrs.ir.op import Op
from gptrs.ir.operands import as_eager, describe, map_operand, several, type_of
from gptrs.ir.program import Attrs, Fails, Program, RowRule, Value
from gptrs.ir.promotion import is_strict
from gptrs.ir.registry import revision
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type

P = ParamSpec("P")
R = TypeVar("R")


class Composite(Op[P, R]):
    """An op that is defined by other ops. In a program it is one instruction.

    The definition is its ``portable`` implementation. `implementations` are the alternatives, by
    name; `examples` give the value that an integer operand has while implementations are timed (0
    unless given), as a function of the operand types.
    """

    def __init__(
        self, fn: Callable[..., Any], *, kind: OpKind = OpKind.OTHER, rows: RowRule | None = None
    ) -> None:
        self.body = fn
        self.implementations: dict[str, Implementation] = {}
        self.examples: dict[str, Callable[..., Any]] = {}
        self.revisions = Counter[str]()  # functions registered so far, by name
        super().__init__(fn, kind=kind, rows=rows)

    def definition(self, operands: Sequence[Any], attrs: Attrs) -> Program:
        """The program of the body for these operand types and attributes, memoised."""

        def make() -> Any:
            return self._recorded(self.body, operands, attrs)

        key = revision(), is_strict(), self._key(operands, attrs)
        return cast("Program", self._remember(key, make))

    def implemented(
        self, implementation: Implementation, operands: Sequence[Any], attrs: Attrs
    ) -> Program:
        """The program of an alternative implementation, memoised; the definition checks the types
        first.

        Raises `VerifyError` when the result types differ from those of the definition.
        """
        expected = self.infer(operands, attrs)

        def make() -> Any:
            try:
                program = self._recorded(implementation.function, operands, attrs)
            except PtirError as error:
                error.context.append(f"implementation {implementation.name!r} of {self.name}")
                raise
            self.check_results(implementation, [r.type for r in program.results], expected)
            return program

        key = implementation, revision(), is_strict(), self._key(operands, attrs)
        return cast("Program", self._remember(key, make))

    def check_results(
        self, implementation: Implementation, found: Sequence[Type], expected: Sequence[Type]
    ) -> None:
        """Raise `VerifyError` when an implementation gives other types than the definition."""
        if tuple(found) != tuple(expected):
            raise VerifyError(
                f"implementation {implementation.name!r} of {self.name} gives"
                f" {', '.join(map(str, found))}, its definition {', '.join(map(str, expected))}",
                fix="give the same shapes and dtypes: astype, reshape",
            )

    def infer(self, operands: Sequence[Any], attrs: Attrs) -> tuple[Type, ...]:
        return tuple(r.type for r in self.definition(operands, attrs).results)

    def has_effects(self, operands: Sequence[Any], attrs: Attrs) -> bool:
        return self.definition(operands, attrs).has_effects

    def fails(self, operands: Sequence[Any], attrs: Attrs) -> Fails:
        return self.definition(operands, attrs).fails

    def evaluate(
        self, operands: Sequence[Any], attrs: Attrs, types: tuple[Type, ...]
    ) -> tuple[Array, ...]:
        with interpreter(None), nan_watch.quiet():
            result = self.body(*(map_operand(as_eager, o) for o in operands), **attrs)
        return tuple(tensor.numpy() for tensor in several(result))

    def _recorded(
        self, function: Callable[..., Any], operands: Sequence[Any], attrs: Attrs
    ) -> Program:
        recorder = Recorder(self.name)

        def enter(operand: Any, name: str) -> Any:
            if isinstance(operand, tuple):
                parts = cast("tuple[Any, ...]", operand)
                return tuple(enter(part, f"{name}_{i}") for i, part in enumerate(parts))
            if isinstance(operand, Tensor | Value | Type):
                return recorder.input(type_of(operand), name)
            return operand

        inputs = [enter(o, n) for o, n in zip(operands, self.operand_names, strict=True)]
        with interpreter(recorder):
            returned = function(*inputs, **attrs)
        return recorder.finish(self.results_in(returned))

    def results_in(self, returned: object) -> tuple[Tensor, ...]:
        """The returned tensors of a definition or implementation, as a tuple. Raises `VerifyError`
        for a result that is no Tensor."""
        for result in several(returned):
            if not isinstance(result, Tensor):
                raise VerifyError(f"{self.name} returned {describe(result)}, expected a Tensor")
        return several(returned)


@overload
def composite(fn: Callable[P, R], /) -> Composite[P, R]: ...
@overload
def composite(
    *, kind: OpKind = OpKind.OTHER, rows: RowRule | None = None
) -> Callable[[Callable[P, R]], Composite[P, R]]: ...


def composite(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    kind: OpKind = OpKind.OTHER,
    rows: RowRule | None = None,
) -> Any:
    """Declare an op by its definition over other ops."""
    if fn is not None:
        return Composite[..., Any](fn)
    return lambda fn: Composite(fn, kind=kind, rows=rows)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownVariableType]
