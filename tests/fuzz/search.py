"""A fuzzing run over many programs in one process, and its statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from gptrs.backends.discovery import get_backend
from gptrs.backends.reference import ReferenceBackend
from gptrs.ir.dims import Dim
from gptrs.ir.program import Program
from gptrs.passes.base import Context, run_passes
from gptrs.passes.dce import eliminate_dead_code
from tests.fuzz.compare import Comparison, Mismatch, Tally
from tests.fuzz.control import GENERATORS
from tests.fuzz.matrices import MATRICES
from tests.fuzz.programs import Example, examples, family
from tests.fuzz.replay import text_of
from tests.support.scalar_operations import checked_plans


class DisagreementError(AssertionError):
    """A program for which two ways to run it differ."""


@dataclass
class Search:
    """What was run, and the failing program, made as small as it gets."""

    programs: int = 0
    instructions: Counter[str] = field(default_factory=Counter[str])
    """By family."""
    tally: Tally = field(default_factory=Tally)
    failure: tuple[Example, Mismatch] | None = None

    def run(
        self,
        count: int,
        number: int,
        *,
        native: Callable[[Example], bool] = lambda _: True,
        current: Path | None = None,
        shrink: bool = True,
        ops: Iterable[str] = GENERATORS,
        backend: str = "faer",
    ) -> None:
        """Run ``count`` programs of ``ops``, up to the first that fails: those that the seed
        ``number`` stands for, the same ones at any time.

        With ``native`` it is said which of them also run on the native backend. ``current`` is a
        file that always has the program that runs. ``backend`` is the native one.
        """
        ways = {
            flag: Comparison(native=flag, tally=self.tally, backend=get_backend(backend))
            for flag in (False, True)
        }

        def check(example: Example) -> None:
            if current is not None:
                current.write_text(
                    text_of(example, "nothing, if it could be run", f"seed {number}", backend)
                )
            mismatch = ways[native(example)].mismatch(example)
            if mismatch is not None:
                self.failure = example, mismatch
                raise DisagreementError
            if self.failure is None:
                self.programs += 1
                _count(example.program, self.instructions)

        chosen = settings(
            max_examples=count,
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            print_blob=False,
            report_multiple_bugs=False,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        )
        if backend != "faer":  # the radii are those of LAPACK and pocketfft, as NumPy calls them
            ops = [name for name in ops if name not in MATRICES]
        test = chosen(given(examples(ops))(check))
        try:
            with checked_plans():
                seed(number)(test)()
        except DisagreementError:
            assert self.failure is not None
            example, mismatch = self.failure
            self.failure = smaller(example, ways[native(example)], mismatch)
            raise DisagreementError(text_of(*self.failure, f"seed {number}", backend)) from None


def smaller(example: Example, comparison: Comparison, found: Mismatch) -> tuple[Example, Mismatch]:
    """The example without what its mismatch does not need: results, then instructions and
    parameters that nothing reads."""
    program = example.program
    if len(program.results) > 1:
        for result in program.results:
            alone = replace(example, program=program.with_body(program.body, (result,)))
            if (again := comparison.mismatch(alone)) is not None:
                example, found = alone, again
                break
    pruned = _pruned(example)
    again = comparison.mismatch(pruned)
    return (example, found) if again is None else (pruned, again)


def _pruned(example: Example) -> Example:
    program = run_passes(example.program, (eliminate_dead_code,), Context(ReferenceBackend()))
    read = {*program.results, *(value for i in program.body for value in i.values())}
    kept = [
        (param, array)
        for param, array in zip(program.params, example.inputs, strict=True)
        if param in read or any(isinstance(n, Dim) for n in param.type.shape)
    ]
    smaller = Program(program.name, tuple(p for p, _ in kept), program.body, program.results)
    return replace(example, program=smaller, inputs=tuple(array for _, array in kept))


def _count(program: Program, found: Counter[str]) -> None:
    for instruction in program.body:
        found[family(instruction.op.name)] += 1
        for region in instruction.regions():
            _count(region, found)
