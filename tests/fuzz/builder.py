"""Random programs under construction: values to draw operands from, or new parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import numpy as np

from gptrs.ir.dims import Dim, DimLike, Shape, dim, product, size_at
from gptrs.ir.dispatch import OPS
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Role
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, DType, Kind, Type
from tests.cases.sample import draw as draw_array

T = TypeVar("T")

EXTENTS = (2, 3, 1, 5, 8, 0, 7, 17, 33)
MOST_ELEMENTS = 1500  # of a value, at the sizes that the program runs with
MOST_PARAMS = 16
_COMMON = ("f32", "f32", "f32", "si32", "i1")
_OTHERS = tuple(DTYPES)


class UnfitError(Exception):
    """There is nothing that the op could take."""


@dataclass
class Plot:
    """What a program and its regions share: drawn once."""

    random: Random
    """Makes the choices of the step that is drawn now."""
    sizes: dict[str, int]
    extents: tuple[DimLike, ...]
    dtypes: tuple[DType, ...]
    values: str
    """What parameters hold unless an op needs something else, as in `tests.cases.sample`."""
    recorder: Recorder
    step: Callable[[Builder], None]
    """Adds an instruction."""
    families: tuple[tuple[str, ...], ...]
    """The ops to choose from."""
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    """What each parameter holds, by name."""


@dataclass
class Builder:
    """Draws instructions of one function: a program, or a region in it."""

    plot: Plot
    values: list[Tensor]
    depth: int = 0

    # Choices.

    def integer(self, low: int, high: int) -> int:
        if high < low:  # of an extent below 0: that of a window that does not fit
            raise UnfitError
        return self.plot.random.randint(low, high)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.integer(0, len(choices) - 1)]

    def chance(self, one_in: int) -> bool:
        """True in one of so many cases."""
        return self.integer(0, one_in - 1) == one_in - 1

    def some(self, choices: Sequence[T]) -> tuple[T, ...]:
        """A part of ``choices`` in their order."""
        return tuple(choice for choice in choices if self.chance(2))

    def permuted(self, count: int) -> tuple[int, ...]:
        return tuple(self.plot.random.sample(range(count), count))

    def dtype(self, *kinds: Kind) -> DType:
        """A dtype, mostly one of the program's."""
        choices = [d for d in self.plot.dtypes if not kinds or d.kind in kinds]
        if not choices or self.chance(8):
            choices = [d for d in DTYPES.values() if not kinds or d.kind in kinds]
        return self.pick(choices)

    def extent(self) -> DimLike:
        return self.pick(self.plot.extents)

    def shape(self, least: int = 0, most: int = 3) -> Shape:
        return tuple(self.extent() for _ in range(self.integer(least, most)))

    def size(self, extent: DimLike) -> int:
        """An extent at the sizes that the program runs with."""
        return size_at(extent, self.plot.sizes)

    # Operands.

    def value(
        self,
        *kinds: Kind,
        least: int = 0,
        most: int = 4,
        where: Callable[[Tensor], bool] | None = None,
    ) -> Tensor:
        """A value of one of these kinds and ranks, mostly one that is there."""
        fitting = [
            v
            for v in self.values
            if (not kinds or v.dtype.kind in kinds)
            and least <= v.ndim <= most
            and (where is None or where(v))
        ]
        if fitting and not self.chance(6):
            return fitting[-1 - min(self.integer(0, 5), len(fitting) - 1)]
        made = self.param(Type(self.shape(least, min(most, max(least, 3))), self.dtype(*kinds)))
        if where is not None and not where(made):
            raise UnfitError
        return made

    def of(self, type: Type, values: str | None = None) -> Tensor:
        """A value of exactly this type; with ``values`` one that holds such."""
        if values is None:
            fitting = [v for v in self.values if v.type == type]
            if fitting and not self.chance(6):
                return fitting[-1 - min(self.integer(0, 3), len(fitting) - 1)]
            if self.chance(10) and not type.dtype.is_bool:
                number = self.integer(0, 3)
                return OPS["full"](shape=type.shape, value=number, dtype=type.dtype)
        return self.param(type, values)

    def param(self, type: Type, values: str | None = None) -> Tensor:
        """A new parameter of the program."""
        plot = self.plot
        if len(plot.recorder.params) >= MOST_PARAMS or not self.is_small(type):
            raise UnfitError
        if any(self.size(extent) < 0 for extent in type.shape):  # of a window that does not fit
            raise UnfitError
        role: Role = "parameter" if self.chance(5) else "input"
        if any(isinstance(n, Dim) for n in type.shape):
            role = "input"  # weights have sizes
        donated = role == "input" and self.chance(10)
        name = f"x{len(plot.recorder.params)}"
        made = plot.recorder.input(type, name, role=role, donated=donated)
        plot.kinds[name] = plot.values if values is None else values
        self.values.append(made)
        return made

    def number(self, dtype: DType) -> Any:
        """A literal beside a tensor of this dtype."""
        if dtype.is_bool:
            return self.chance(2)
        if self.chance(20):
            symbolic = [n for n in self.plot.extents if isinstance(n, Dim)]
            if symbolic and not dtype.is_complex:
                return symbolic[0]
        whole = [2, 1, 0, 3, 7]
        if dtype.kind != "uint":
            whole.append(-1)
        if not dtype.is_float:
            return self.pick(whole)
        special = [float("nan"), float("inf"), float("-inf"), 1e30, 1e-30]
        if self.plot.values and self.chance(12):
            return self.pick(special)
        return self.pick([*whole, 0.5, -1.5, 0.1, -0.0, 3.75])

    def index(self, extent: DimLike, shape: Shape) -> Tensor:
        """Integers that count along an axis; now and then one that is out of range."""
        dtype = DTYPES[self.pick(("si32", "si64", "ui8"))]
        count = self.size(extent)
        if count == 0 and self.size(product(shape)):
            raise UnfitError
        last = count - 1 if not self.chance(12) else count
        return self.of(Type(shape, dtype), f"0..{max(last, 0)}")

    def is_small(self, type: Type) -> bool:
        return self.size(product(type.shape)) <= MOST_ELEMENTS and type.rank <= 6

    def array(self, type: Type, values: str) -> np.ndarray[Any, np.dtype[Any]]:
        """Elements of a constant."""
        return draw_array(type, values, np.random.default_rng(self.integer(0, 255)))

    def inside(self, given: Sequence[Tensor]) -> Builder:
        """A builder for a region, which may read what is around it."""
        return Builder(self.plot, [*self.values, *given], self.depth + 1)

    def fitting(self, types: Sequence[Type]) -> list[Tensor]:
        """One value of each type."""
        return [self.of(type) for type in types]


def start(
    random: Random,
    step: Callable[[Builder], None],
    families: tuple[tuple[str, ...], ...],
) -> Builder:
    """An empty program: its sizes, extents and dtypes are drawn, so that much of it fits."""

    def pick(choices: Sequence[T]) -> T:
        return choices[random.randint(0, len(choices) - 1)]

    sizes = {"S": random.randint(1, 6), "T": random.randint(1, 9)}
    s, t = dim("S"), dim("T")
    symbolic: list[tuple[DimLike, ...]] = [(), (), (s,), (s, t), (s, s + 1), (s, s * 2), (s, s * t)]
    extents = (*[pick(EXTENTS) for _ in range(3)], 1, *pick(symbolic))
    dtypes = [DTYPES[pick(_COMMON)], DTYPES[pick(_COMMON)], DTYPES[pick(_OTHERS)]]
    values = pick(("", "", "special", "any"))
    plot = Plot(random, sizes, extents, tuple(dtypes), values, Recorder("f"), step, families)
    b = Builder(plot, [])
    for symbol in sorted({name for n in extents if isinstance(n, Dim) for name in n.symbols()}):
        b.param(Type((dim(symbol),), dtypes[0]))  # from which a call knows its size
    return b
