"""Random well-typed programs, as a strategy of Hypothesis, which makes failing ones smaller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import hypothesis.strategies as st
import numpy as np

from gptrs.errors import PtirError
from gptrs.ir.dispatch import OPS, current, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import Program
from gptrs.ir.sizes import filled
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, f32
from tests.cases.sample import draw as draw_array
from tests.fuzz.builder import Builder, UnfitError, start
from tests.fuzz.control import GENERATORS

_WEIGHTS = {"elementwise": 6, "shape": 3, "reduce": 2, "index": 2, "composite": 2, "control": 2}
"""How often ops of a family are drawn; once where nothing is said."""


def family(op: str) -> str:
    """The family of an op: the file that it is in."""
    return str(OPS[op].__module__).rpartition(".")[2]


def _families(ops: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """The ops by family, a family as often as its weight says; the simplest first."""
    found: dict[str, list[str]] = {}
    for op in ops:
        found.setdefault(family(op), []).append(op)
    return tuple(tuple(found[name]) for name in found for _ in range(_WEIGHTS.get(name, 1)))


MOST_STEPS = 20
_TRIES = 4  # to find an op that fits


@dataclass(frozen=True)
class Example:
    """A program and what it runs with. ``turn`` numbers the one of the comparisons that are made in
    turns."""

    program: Program
    sizes: Mapping[str, int]
    inputs: tuple[Array, ...]
    turn: int = 0

    def arrays(self) -> tuple[Array, ...]:
        """New arrays for the parameters."""
        return tuple(array.copy() for array in self.inputs)

    def __repr__(self) -> str:
        return f"Example({len(self.program.body)} instructions)"


_CHOICES = st.integers(0, 2**24 - 1).map(Random)  # of a wider range the ends would be drawn most


@st.composite
def examples(draw: Any, ops: Iterable[str] = GENERATORS) -> Example:
    """A program of 1 to 20 steps of ``ops``, with regions, and its inputs.

    What Hypothesis draws is one number for each step, and whether there is one more. So it can take
    out any step of a failing program, and tries as many different programs as it draws numbers.
    """

    def step(b: Builder) -> None:
        plot, before = b.plot, b.plot.random
        plot.random = draw(_CHOICES)
        _step(b)
        plot.random = before  # a region is a part of the step around it

    b = start(draw(_CHOICES), step, _families(ops))
    recorder = b.plot.recorder
    with interpreter(recorder):
        for _ in range(MOST_STEPS):
            step(b)
            if draw(st.integers(0, 2**16 - 1)) % 14 == 0:
                break
        if not b.values:
            b.param(Type((), f32))
    count = b.integer(1, 3)
    results = [b.values[-1 - min(n, len(b.values) - 1)] for n in range(count)]
    if b.chance(4):
        results.append(b.pick(b.values))  # an early one, a parameter, or one for the second time
    rng = np.random.default_rng(draw(st.integers(0, 2**16 - 1)))
    inputs = tuple(
        draw_array(filled(param.type, b.plot.sizes), b.plot.kinds[param.name], rng)
        for param in recorder.params
    )
    program = recorder.finish(results)
    return Example(program, b.plot.sizes, inputs, draw(st.integers(0, 2**16 - 1)))


def _step(b: Builder) -> None:
    """Add an instruction, with what prepares its operands; nothing where none fits."""
    recorder = cast("Recorder", current())
    for _ in range(_TRIES):
        before = len(recorder.body)
        try:
            made: Any = GENERATORS[b.pick(b.pick(b.plot.families))](b)
        except (PtirError, UnfitError):
            del recorder.body[before:]
            continue
        results = cast("tuple[Tensor, ...]", made if isinstance(made, tuple) else (made,))
        if all(b.is_small(result.type) for result in results):
            b.values.extend(results)
            return
        del recorder.body[before:]
