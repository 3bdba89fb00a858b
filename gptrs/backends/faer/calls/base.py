"""The interface of custom calls: `Call` (match, compile, bind) and `Binder` (where it adds
steps)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

from gptrs.backends.faer.calls.forms import Form
from gptrs.backends.machine import MACHINE
from gptrs.backends.memory_operands import Graph
from gptrs.ir.dims import DimLike
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.elementwise import tanh
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Instruction, Param, Value
from gptrs.ir.registry import is_builtin
from gptrs.kernels.compiler.compile import Kernel, compile_built
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.compiler.isa import Isa
from gptrs.lazy_dataclass import dataclass

PIECES = 4
"""Chunks of a step per thread, for load balance: a late thread delays little."""
UNEVEN_PIECES = 16
"""The same where items take unequally long, as the last chunk does, for which a thread may wait."""


class Address(NamedTuple):
    """An address in an array of the call: slot number (see `step_templates`), and offset in
    bytes."""

    slot: int
    offset: int


Word: TypeAlias = int | Address


class Binder(ABC):
    """Receives the native steps of a call at known sizes. Times are estimates in ns on one
    thread."""

    isa: Isa
    threads: int
    status: int
    """The address of the plan's `gptrs.kernels.driver.step_table.Status`."""
    in_place: bool
    """Whether the result is in the buffer of the operand that it updates."""
    placed: Set[Value] = frozenset()
    """The operands whose memory is their place in the result (`Call.parts`)."""
    size: Callable[[DimLike], int]
    """Evaluates a dimension at the sizes of the call."""

    @abstractmethod
    def address(self, value: Value, offset: DimLike = 0) -> Address:
        """The address of element number ``offset`` of a value."""

    @abstractmethod
    def panels(self, value: Value, form: Form) -> Address | None:
        """The packed form of a parameter or constant; None if the plan does not keep it."""

    @abstractmethod
    def scratch(self, size: int) -> Address:
        """Scratch memory of ``size`` bytes, until the end of the call."""

    @abstractmethod
    def step(
        self,
        kernel: Kernel,
        words: Sequence[Word],
        extent: int,
        time: float,
        grain: int = 1,
        least: float = MACHINE.piece,
        prepares: Address | None = None,
        uneven: bool = False,
    ) -> None:
        """Add a step: ``kernel`` over ``extent`` with this argument block, which takes so many ns
        on one thread, in chunks of at least ``grain`` where there are enough of them for all
        threads, and of ``least`` ns; in smaller ones where items are ``uneven``, take unequally
        long. A step that ``prepares`` scratch memory fills that, from operands or scratch memory
        that was prepared, and writes nothing else: calls that follow one another prepare the same
        once."""


_KERNELS: dict[tuple[object, ...], Kernel] = {}


def kernel(builder: Callable[..., KernelText], isa: Isa, *arguments: Any, **options: Any) -> Kernel:
    """The kernel that ``builder(isa, *arguments, **options)`` generates, compiled once."""
    key = (builder, isa, *arguments, *options.items())
    found = _KERNELS.get(key)
    if found is None:
        found = _KERNELS[key] = compile_built(builder, isa, *arguments, **options)
    return found


@dataclass(frozen=True, eq=False)
class Call(ABC):
    """A custom call: the instructions it replaces, and its translation to native steps."""

    target: ClassVar[str]
    rounds: ClassVar[bool] = False
    """Whether results may differ from the definition's by more than the order of sums."""
    joins: ClassVar[bool] = False
    """Whether it is a `MatrixProduct`, whose steps may become one (`joint_steps`)."""

    result: Value
    members: tuple[Instruction, ...]
    more_results: tuple[Value, ...] = field(default=(), kw_only=True)
    """The results after the first, of an op with several."""

    @property
    def results(self) -> tuple[Value, ...]:
        """All results, in the op's order; one that nothing reads may be left out."""
        return (self.result, *self.more_results)

    @property
    def overwrites(self) -> Value | None:
        """The operand that the result is an update of, in its memory where nothing forbids it."""
        return None

    @property
    def parts(self) -> Mapping[Value, DimLike]:
        """The operands that are a part of the result, with all their elements one after the other,
        and the element of the result that each begins with."""
        return {}

    @classmethod
    @abstractmethod
    def match(cls, core: Instruction, graph: Graph) -> Call | None:
        """The call that implements ``core`` and fusible instructions around it, or None."""

    @abstractmethod
    def compile(self, isa: Isa) -> None:
        """Compile every kernel that some size needs."""

    @abstractmethod
    def bind(self, b: Binder) -> bool:
        """Add the steps to ``b``; False where the kernels do not support these sizes."""

    def packed(self) -> Mapping[Value, Form]:
        """The weights to be packed once, with their forms."""
        return {}


def activation_of(instruction: Instruction) -> str | None:
    """What kernels call the function that the instruction applies, if they have it."""
    op = instruction.op
    return op.name if op is tanh or (op.kind is OpKind.ACTIVATION and is_builtin(op)) else None


ASIDE = frozenset(["members", "through"])
"""Fields of a call and of its parts that do not affect what its kernels do."""


def values_of(thing: Any) -> list[Value]:
    """The stored values that a call reads, and its results."""
    found: list[Value] = []
    _add_values(thing, found)
    return found


def _add_values(thing: Any, found: list[Value]) -> None:
    if isinstance(thing, Value):
        found.append(thing)
    elif isinstance(thing, tuple):
        for part in cast("tuple[Any, ...]", thing):
            _add_values(part, found)
    else:
        for name in _parts(type(thing)):  # pyright: ignore[reportUnknownArgumentType]
            _add_values(getattr(thing, name), found)


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that affect what kernels do; none of another class."""
    named = fields(kind) if is_dataclass(kind) else ()
    return tuple([each.name for each in named if each.name not in ASIDE])


def is_stable(value: Value, graph: Graph) -> bool:
    """Whether a value is the same in every call: a parameter's slot or a constant."""
    if isinstance(value, Param):
        return value.role == "parameter"
    maker = graph.maker.get(value)
    return maker is not None and maker.op is constant
