"""The sides of a comparison as processes: started, checked against ours, timed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gptrs.errors import BenchError
from gptrs_bench.agreement import (
    DifferenceError,
    Logits,
    allowed,
    check_choice,
    check_logits,
    check_tokens,
)
from gptrs_bench.plan import DECODE, START, Case
from gptrs_bench.processes import first_output
from gptrs_bench.results import Excluded
from gptrs_bench.side import ONCE, PICTURES, PROMPT, TEXT, random_tokens
from gptrs_bench.worker import Worker

_MODULE = "gptrs_bench.side"


class Subject(NamedTuple):
    """The model that is measured."""

    is_text: bool
    place: str
    """What we load."""
    written: str
    """What others load."""
    sizes: tuple[int, int]
    """The context and the vocabulary, or the size and the channels of images."""
    usual: float
    """The root mean square of logits that the tolerances of ways are for."""


class Way(NamedTuple):
    """A way to run the model, in the process that answers for it."""

    worker: Worker
    name: str
    tolerance: float

    def logits(self, *asked: object) -> Logits:
        return np.array(self.worker.ask("logits", self.name, *asked), np.float32)

    def ask(self, function: str, *asked: object) -> float:
        return self.worker.ask(function, self.name, *asked)


@dataclass
class Checked:
    """Who can be timed, how far they are from ours, and who is left out and why (without model and
    threads)."""

    turns: dict[str, Callable[[], float]] = field(default_factory=dict[str, Callable[[], float]])
    differences: dict[str, float] = field(default_factory=dict[str, float])
    excluded: list[Excluded] = field(default_factory=list[Excluded])


class Sides(AbstractContextManager["Sides"]):
    """Processes on ``threads`` threads with the variables ``settings``; they end with the block."""

    def __init__(self, subject: Subject, threads: int, settings: dict[str, str]) -> None:
        self.subject, self.threads, self.settings = subject, threads, settings
        self.workers: list[Worker] = []
        self.ways: dict[str, Way] = {}

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.close()

    def _arguments(self, side: str) -> tuple[str, ...]:
        subject = self.subject
        place = subject.place if side == "ours" else subject.written
        return side, TEXT if subject.is_text else PICTURES, place, str(self.threads)

    def start(self, side: str) -> str:
        """Start ``side``, which is ours at first; why it is left out, or nothing.

        Raises `BenchError` where ours cannot be started.
        """
        worker = Worker(_MODULE, *self._arguments(side), settings=self.settings, quiet=True)
        self.workers.append(worker)
        try:
            names: dict[str, float] = worker.ask("names")
        except BenchError as error:
            if side == "ours":
                raise
            return error.problem
        self.ways |= {name: Way(worker, name, tolerance) for name, tolerance in names.items()}
        return ""

    def checked(self, case: Case, quick: list[str]) -> Checked:
        """The sides that give what ours gives, ready to be timed; ``quick`` are the peers whose
        start can be.

        A way that fails here is left out of all that follows. Raises `BenchError` where ours does.
        """
        if case.mode == START:
            return self._starts(quick)
        found, compare = Checked(), self._tokens if case.mode == DECODE else self._logits
        compared = compare(case)
        for name, way in list(self.ways.items()):
            try:
                difference = compared(way)
            except (BenchError, DifferenceError) as error:
                if name == "ours":
                    raise
                del self.ways[name]
                found.excluded.append(_excluded(name, error))
                continue
            if difference is not None:
                found.differences[name] = difference
            found.turns[name] = partial(way.ask, case.mode, *self._timed(case))
        return found

    def _prompt(self, count: int) -> list[int]:
        return random_tokens(count, self.subject.sizes[1])

    def _opening(self, count: int) -> list[int]:
        """A prompt that leaves the context room for ``count`` tokens and one more."""
        return self._prompt(min(PROMPT, self.subject.sizes[0] - count - 1))

    def _input(self, case: Case) -> tuple[Any, ...]:
        """What logits are asked for."""
        if self.subject.is_text:
            return (self._opening(1) if case.mode == START else self._prompt(case.count),)
        return case.count, *self.subject.sizes

    def _timed(self, case: Case) -> tuple[Any, ...]:
        """What is timed."""
        if case.mode == DECODE:
            return self._opening(case.count), case.count
        return self._input(case) if self.subject.is_text else (case.count,)

    def _most(self, ours: Logits, way: Way) -> float:
        return allowed(ours, way.tolerance, self.subject.usual)

    def _logits(self, case: Case) -> Callable[[Way], float | None]:
        """A comparison of the logits of a way with ours, whose difference it gives."""
        given = self._input(case)
        ours = self.ways["ours"].logits(*given)
        return lambda way: check_logits(ours, way.logits(*given), self._most(ours, way))

    def _tokens(self, case: Case) -> Callable[[Way], float | None]:
        """A comparison of the tokens of a way with ours."""
        prompt, first = self._opening(case.count), self.ways["ours"]
        ours: list[int] = first.worker.ask("tokens", first.name, prompt, case.count + 1)

        def compare(way: Way) -> None:
            theirs: list[int] = way.worker.ask("tokens", way.name, prompt, case.count + 1)
            check_tokens(
                ours,
                theirs,
                lambda tokens: first.logits(prompt + tokens),
                lambda logits: self._most(logits, way),
            )

        return compare

    def _starts(self, quick: list[str]) -> Checked:
        """Those that can be started anew for one text or image, once they have been."""
        found, given = Checked(), self._input(Case(START, 1))
        sizes = (len(given[0]), self.subject.sizes[1]) if self.subject.is_text else given[1:]
        logits = self.ways["ours"].logits(*given)
        most = max(self._most(logits, way) for way in self.ways.values())
        for side in ("ours", *quick):
            command = ("-m", _MODULE, *self._arguments(side), ONCE, *map(str, sizes))
            started = partial(first_output, command, **self.settings)
            try:
                choice = int(started()[1].split()[0])
                check_choice(logits[0], int(logits[0].argmax()), choice, most)
            except (BenchError, DifferenceError) as error:
                if side == "ours":
                    raise
                found.excluded.append(_excluded(side, error))
                continue
            found.turns[side] = partial(_seconds, started)
        return found


def _seconds(started: Callable[[], tuple[float, str]]) -> float:
    return started()[0]


def _excluded(side: str, error: Exception) -> Excluded:
    """Why ``side`` is left out of a model's results, which and how is said later."""
    reason = error.problem if isinstance(error, BenchError) else str(error)
    return Excluded("", side, reason, is_wrong=isinstance(error, DifferenceError))
