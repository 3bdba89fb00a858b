"""Differential testing of one program: each way to run it against the meaning of the program.

The oracle is the traced program on the reference backend, without passes. What must have its bits:
the printed program run as Python in eager mode; the printed program parsed again; the program after
all passes, for the reference, where passes are told to be precise. What must lie within the radii
of `gptrs.debug.error_bounds`: the native backend, with and without passes, precise or not; and the
reference where passes may change how results round.

Errors. An extent that does not fit is a `ShapeError` where sizes are known, as they are in eager
mode (there also in a branch that is not taken), and an `ElementError` where they are symbols until
the program runs; every other one is an `ElementError`. Where the oracle raises one, eager mode and
the parsed program do as well. Ops are pure, so that passes may leave out what no result depends on,
with its error, and order decides which of two errors comes first. So what ran through passes must
raise one (any) if the oracle does so without what is dead once rules have been applied (an update
of a whole array needs nothing of that array), may raise one if only something dead does, and must
not otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from gptrs.backends.base import Backend
from gptrs.backends.faer.backend import FaerBackend
from gptrs.backends.reference import ReferenceBackend, ReferencePlan
from gptrs.debug.error_bounds.balls import LOOSE_MARGIN, MARGIN, Ball
from gptrs.debug.error_bounds.error_propagation import BallEvaluator
from gptrs.errors import ElementError, ShapeError
from gptrs.ir.dims import size_at
from gptrs.ir.program import Fails, Program, verify
from gptrs.ir.sizes import filled
from gptrs.ir.types import Type, as_dtype
from gptrs.passes.base import Context, run_passes
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.pipeline import PIPELINE
from gptrs.passes.simplify import simplify
from tests.cases.sample import differences, same_bits
from tests.fuzz.programs import Example
from tests.fuzz.ways import (
    Arrays,
    arguments,
    eagerly,
    parsed,
    run_twice,
    through,
    unrepeated,
    without_one,
)

Failed = ElementError | ShapeError
Outcome = Arrays | Failed


@dataclass
class Tally:
    """What was compared: how often, and how many elements of results in which way."""

    comparisons: int = 0
    exact: int = 0
    bounded: int = 0
    unknown: int = 0
    extreme: int = 0
    raised: int = 0


@dataclass(frozen=True)
class Mismatch:
    """A way to run a program that gives something else."""

    way: str
    problem: str

    def __str__(self) -> str:
        return f"{self.way}: {self.problem}"


@dataclass
class Comparison:
    """Runs programs in all ways. ``native``: also on the native backend, or another one."""

    native: bool = True
    tally: Tally = field(default_factory=Tally)
    reference: Backend = field(default_factory=ReferenceBackend)
    backend: Backend = field(default_factory=FaerBackend)

    def mismatch(self, example: Example) -> Mismatch | None:
        """The first way that gives something else; None when all agree."""
        try:
            oracle = _Oracle.of(example)
        except Exception as error:
            return Mismatch("reference", _told(error))
        if isinstance(oracle.outcome, ElementError) and example.program.fails is Fails.NEVER:
            return Mismatch("fails", f"the types say that it never does: {_told(oracle.outcome)}")
        for way, run in self._ways(example):
            if (problem := self._problem(oracle, way, run)) is not None:
                return Mismatch(way.name, problem)
        return None

    def _problem(self, oracle: _Oracle, way: _Way, run: Callable[[], Arrays]) -> str | None:
        self.tally.comparisons += 1
        try:
            found: Outcome = run()
        except (ElementError, ShapeError) as error:
            found = error
        except Exception as error:  # nothing else may come out of a program that was accepted
            return _told(error)
        return oracle.problem(way, found, self.tally)

    def _ways(self, example: Example) -> Iterator[tuple[_Way, Callable[[], Arrays]]]:
        program = example.program
        yield _Way("eager", passes=False), lambda: eagerly(example)
        yield (
            _Way("parsed", passes=False),
            lambda: run_twice(parsed(program), self.reference, example),
        )
        number = example.turn
        left_out, stages = without_one(number)
        targets = [("reference", self.reference)] + [
            (self.backend.name, self.backend)
        ] * self.native
        for name, backend in targets:
            exact = name == "reference"
            for precise in (True, False):
                what = f"{name}, {'precise' if precise else 'all passes'}"
                way = _Way(what, exact=exact and precise, precise=precise)
                yield way, through(PIPELINE, example, backend, precise)
            way = _Way(f"{name}, precise, without {left_out}", exact=exact)
            yield way, through(stages, example, backend, True)
        for name, backend in targets:
            way = _Way(f"{name}, no repeated passes", exact=name == "reference")
            yield way, unrepeated(example, backend)


@dataclass(frozen=True)
class _Way:
    name: str
    exact: bool = True
    passes: bool = True
    precise: bool = True


@dataclass
class _Oracle:
    example: Example
    outcome: Outcome
    live: Outcome
    """The outcome without the instructions that no result depends on."""
    must_raise: bool
    """Whether there is an error without what no result depends on by the rules either."""
    strict: list[Ball] | None
    loose: list[Ball] | None
    """Results with their radii; None where it depends on roundings whether there is an error."""

    @classmethod
    def of(cls, example: Example) -> _Oracle:
        program = example.program
        verify(program)
        outcome = _outcome(program, example)
        alive = run_passes(program, (eliminate_dead_code,), Context(ReferenceBackend()))
        live = outcome if alive is program else _outcome(alive, example)
        must_raise = isinstance(live, Failed)
        if must_raise:
            context = Context(ReferenceBackend(), precise=True)
            needed = run_passes(program, (simplify, eliminate_dead_code), context)
            must_raise = isinstance(_outcome(needed, example), Failed)
        oracle = cls(example, outcome, live, must_raise, None, None)
        if not isinstance(live, Failed):
            oracle.strict = oracle._follow(alive, BallEvaluator())
            oracle.loose = oracle._follow(alive, BallEvaluator(loose=True))
        return oracle

    def _follow(self, program: Program, following: BallEvaluator) -> list[Ball] | None:
        concrete = cast("Program", filled(program, self.example.sizes))
        balls = following.run(concrete, [Ball(array) for array in self.example.arrays()])
        assert not isinstance(self.live, Failed)
        for ball, array in zip(balls, self.live, strict=True):
            assert same_bits(ball.value, array), "the oracle and its radii are of one program"
        return None if following.unsure or following.extreme else balls

    def problem(self, way: _Way, found: Outcome, tally: Tally) -> str | None:
        """What is wrong with ``found``."""
        expected = self.live if way.passes else self.outcome
        if isinstance(found, Failed):
            tally.raised += 1
            if isinstance(found, ShapeError) and self.example.program.symbols():
                return None
            if isinstance(found, ShapeError):
                return f"raised {_told(found)}, expected an ElementError"
            allowed = isinstance(self.outcome, Failed) or self._may_raise(way)
            return None if allowed else f"raised {_told(found)}"
        if isinstance(expected, Failed):
            if way.passes and not self.must_raise:
                return None
            return f"raised nothing, expected {_told(expected)}"
        types = [_type_at(r.type, self.example.sizes) for r in self.example.program.results]
        if (wrong := _wrong_types(types, found)) is not None:
            return wrong
        if way.exact:
            return self._bits(expected, found, tally)
        balls = self.strict if way.precise else self.loose
        if balls is None:
            size = sum(array.size for array in found)
            tally.unknown += size if way.precise else 0
            tally.extreme += 0 if way.precise else size
            return None
        return _outside(balls, found, tally, MARGIN if way.precise else LOOSE_MARGIN)

    def _may_raise(self, way: _Way) -> bool:
        return not way.exact and (self.strict if way.precise else self.loose) is None

    def _bits(self, expected: Arrays, found: Arrays, tally: Tally) -> str | None:
        for number, (a, b) in enumerate(zip(found, expected, strict=True)):
            tally.exact += a.size
            if not same_bits(a, b):
                return f"result {number}: {differences(a, b) or 'a zero of another sign'}"
        return None


def _type_at(type: Type, sizes: Mapping[str, int]) -> Type:
    """The type of a result at ``sizes``; a loop without a step has empty arrays of what would have
    been an error."""
    return type.with_shape([max(size_at(n, sizes), 0) for n in type.shape])


def _outside(balls: Sequence[Ball], found: Arrays, tally: Tally, margin: float) -> str | None:
    for number, (ball, array) in enumerate(zip(balls, found, strict=True)):
        radius = np.zeros(array.shape) if ball.radius is None else ball.radius
        known = np.isfinite(radius)
        tally.exact += int((radius == 0).sum())
        tally.unknown += int((~known).sum())
        tally.bounded += int((known & (radius > 0)).sum())
        strict = np.where(radius == 0, array, ball.value)
        if wrong := differences(strict.astype(array.dtype), ball.value):
            return f"result {number}: {wrong}"
        if array.dtype.kind != "c" and as_dtype(array.dtype).is_float:
            with np.errstate(all="ignore"):
                away = np.abs(array.astype(np.float64) - ball.value.astype(np.float64))
            far = known & (radius > 0) & ~(away <= margin * radius)
            if far.any():
                at = tuple(map(int, np.argwhere(far)[0]))
                return (
                    f"result {number}: {far.sum()} of {far.size} elements, first {at}: found"
                    f" {array[at]}, expected {ball.value[at]} ± {radius[at]:.3g}"
                )
    return None


def _wrong_types(types: Sequence[Type], found: Arrays) -> str | None:
    shown = [Type.of(array) for array in found]
    return None if shown == list(types) else f"found {shown}, expected {types}"


def _outcome(program: Program, example: Example) -> Outcome:
    try:
        return ReferencePlan(program).run(arguments(example), example.sizes)
    except (ElementError, ShapeError) as error:
        return error


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
