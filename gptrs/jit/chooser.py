"""Implementation selection: from the override policies in effect to a program for each composite.

The pass `choose_implementations` calls a `Chooser` for each composite instruction. ``force`` picks
an implementation by name, ``benchmark`` the fastest (`gptrs.jit.benchmark`). Eager mode follows
forced implementations through `eager_interpreter`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, cast

from gptrs.backends.base import Backend
from gptrs.errors import ArgumentError, DimError, PtirError
from gptrs.ir import nan_watch
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS, Interpreter, interpreter
from gptrs.ir.implementation import KERNEL, PORTABLE, Implementation
from gptrs.ir.interpreters import EAGER, Eager
from gptrs.ir.operands import as_operand
from gptrs.ir.program import Attrs, Instruction, Operation, Program
from gptrs.ir.tensor import Tensor
from gptrs.jit.benchmark import Bench, fastest
from gptrs.jit.overrides import Force, Overrides

AnyComposite = Composite[..., Any]


class Chooser:
    """Selects implementations for the pass `choose_implementations`, and counts its choices.

    ``sizes`` are the values of the symbols in the call that is traced. Composites in ``busy`` are
    skipped: they are being timed.
    """

    def __init__(
        self,
        overrides: Overrides,
        backend: Backend,
        sizes: Mapping[str, int],
        precise: bool,
        busy: frozenset[Operation] = frozenset(),
    ) -> None:
        self._overrides = overrides
        self._backend = backend
        self._sizes = sizes
        self._precise = precise
        self._busy = busy
        self._counts = Counter[str]()

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices, in words."""
        return tuple(f"{c}, {n} times" if n > 1 else c for c, n in sorted(self._counts.items()))

    def __call__(self, instruction: Instruction) -> Program | None:
        """The program to put in the place of ``instruction``; None leaves it as it is."""
        op: Operation = instruction.op
        policy = self._overrides.policies.get(op.name)
        if policy is None or op in self._busy or not isinstance(op, Composite):
            return None
        composite = cast("AnyComposite", op)
        try:
            if isinstance(policy, Force):
                name, how = policy.implementation, "force"
                program = self._forced(composite, instruction, name)
            else:
                candidates = self._candidates(composite, instruction)
                name, how = self._timed(instruction, candidates, policy.cache), "benchmark"
                program = candidates[name]
        except PtirError as error:
            error.where = error.where or instruction.where
            raise
        self._counts[f"{op.name}: {name} ({how})"] += 1
        return program

    def _forced(self, op: AnyComposite, instruction: Instruction, name: str) -> Program | None:
        """The implementation called ``name``. Raises `ArgumentError` where it cannot be used."""
        if name == KERNEL:
            if not self._backend.claims(instruction):
                raise ArgumentError(
                    f"an override forces {op.name} to the kernel of backend"
                    f" {self._backend.name!r}, which has none for {_operands(op, instruction)}",
                    fix=f"use force={PORTABLE} or benchmark, which picks what there is",
                )
            return None
        if name == PORTABLE:
            return op.definition(instruction.operands, instruction.attrs)
        chosen = op.implementations[name]
        check_fits(op, chosen, op.named(instruction.operands, instruction.attrs))
        return op.implemented(chosen, instruction.operands, instruction.attrs)

    def _candidates(self, op: AnyComposite, instruction: Instruction) -> dict[str, Program | None]:
        """The implementations that accept these operands, by name, the default first."""
        operands, attrs = instruction.operands, instruction.attrs
        found: dict[str, Program | None] = {}
        if self._backend.claims(instruction):
            found[KERNEL] = None
        found[PORTABLE] = op.definition(operands, attrs)
        given = op.named(operands, attrs)
        for name, other in sorted(op.implementations.items()):
            if _may_run(other, given):
                found[name] = op.implemented(other, operands, attrs)
        return found

    def _timed(
        self, instruction: Instruction, candidates: Mapping[str, Program | None], keep: int
    ) -> str:
        busy = self._busy | {instruction.op}
        inner = Chooser(self._overrides, self._backend, self._sizes, self._precise, busy)
        bench = Bench(self._backend, self._sizes, self._precise, self._overrides.key, inner)
        return fastest(instruction, candidates, bench, keep)


def chooser(
    overrides: Overrides, backend: Backend, sizes: Mapping[str, int], precise: bool
) -> Chooser | None:
    """The chooser for ``overrides``; None where there are none."""
    return Chooser(overrides, backend, sizes, precise) if overrides.policies else None


def check_fits(op: AnyComposite, chosen: Implementation, given: Mapping[str, Any]) -> None:
    """Raise `ArgumentError` where ``when`` does not hold of operands and attributes."""
    if not chosen.fits(given):
        told = ", ".join(f"{name}: {value}" for name, value in given.items() if value is not None)
        raise ArgumentError(
            f"an override forces {op.name} to {chosen.name!r}, which is not for {told}",
            fix=f"use force={PORTABLE} or benchmark, which picks what can run",
        )


def _may_run(other: Implementation, given: Mapping[str, Any]) -> bool:
    try:
        return other.fits(given)
    except DimError:  # the program runs at all sizes
        return False


def _operands(op: AnyComposite, instruction: Instruction) -> str:
    given = op.named(instruction.operands, instruction.attrs)
    return ", ".join(f"{n}: {v}" for n, v in given.items() if v is not None)


def eager_interpreter(overrides: Overrides) -> Interpreter:
    """Eager mode, with the implementations that ``overrides`` force."""
    forced: dict[str, Implementation] = {}
    for name, policy in overrides.policies.items():
        if isinstance(policy, Force):
            known = cast("AnyComposite", OPS[name]).implementations
            if policy.implementation in known:
                forced[name] = known[policy.implementation]
    return _Forcing(forced) if forced else EAGER


class _Forcing(Eager):
    """Every op runs at once, composites by the implementation that is forced."""

    def __init__(self, forced: Mapping[str, Implementation]) -> None:
        self._forced = forced

    def apply(self, op: Operation, operands: tuple[Any, ...], attrs: Attrs) -> Any:
        if not isinstance(op, Composite):
            return super().apply(op, operands, attrs)
        composite = cast("AnyComposite", op)
        ready, attrs = composite.prepare([as_operand(o) for o in operands], attrs)
        types = composite.infer(ready, attrs)
        function: Callable[..., Any] = composite.body
        inner = self
        if (chosen := self._forced.get(op.name)) is not None:
            check_fits(composite, chosen, composite.named(ready, attrs))
            function = chosen.function
            inner = _Forcing({n: other for n, other in self._forced.items() if n != op.name})
        with interpreter(inner), nan_watch.quiet():
            results = composite.results_in(function(*ready, **attrs))
        if chosen is not None:
            composite.check_results(chosen, [tensor.type for tensor in results], types)
        made = tuple(Tensor.of_array(tensor.numpy(), tensor.type) for tensor in results)
        if (mode := nan_watch.nan_mode()) is not None:
            nan_watch.look(f"ptir.{op.name}", ready, made, mode)
        return made[0] if len(made) == 1 else made
