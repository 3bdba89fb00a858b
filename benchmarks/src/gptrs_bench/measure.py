"""A comparison: export the model, start a process per side, compare the results, and time the sides
interleaved.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gptrs
from gptrs import events
from gptrs.loading.random_model import write_random_model
from gptrs_bench import gpt2
from gptrs_bench.export import write_for_peers
from gptrs_bench.peers import BY_KIND, Peers
from gptrs_bench.plan import Case, Run
from gptrs_bench.processes import cores, on_cores, thread_settings
from gptrs_bench.results import Excluded, Result
from gptrs_bench.sides import Sides, Subject
from gptrs_bench.turns import in_turn

_NOBODY = Peers[Any]("", {})
"""Of models that are not built in."""


@dataclass(frozen=True)
class CaseBegan:
    """An event: the sides are compared, and then timed."""

    model: str
    case: Case
    threads: int


@dataclass(frozen=True)
class SideStarting:
    """An event: a side loads the model, and may convert it before."""

    model: str
    side: str


@dataclass(frozen=True)
class _Opened:
    """A model that is ready to be measured."""

    subject: Subject
    cases: list[Case]
    peers: Peers[Any]


def measure(run: Run) -> Generator[Result | Excluded]:
    """Results and those left out, as they come. Whatever is written is removed at the end.

    Raises `ArgumentError` for what does not fit the model, `LoadError` for a model that cannot be
    loaded, `BenchError` where our own side ends.
    """
    with tempfile.TemporaryDirectory(prefix="gptrs-bench-") as made:
        folder = Path(made)
        opened = _open(run, folder)
        names: list[str] = []
        for name in dict.fromkeys(run.against):
            if reason := _cannot_run(opened.peers, name):
                yield Excluded(run.label, name, reason)
            else:
                names.append(name)
        for threads in run.threads or (cores(),):
            yield from _measure_on(threads, run, opened, names)


def _open(run: Run, folder: Path) -> _Opened:
    """The model, written to a new folder in ``folder`` for others if there are any."""
    place = run.model
    if run.random is not None:
        place = str(folder / "random")
        write_random_model(run.random, Path(place))
    model: Any = gptrs.load(place)
    if model.causal_lm is not None:
        sizes = model.module.context_length, model.module.vocab_size
        cases, usual = run.text_cases(sizes[0]), gpt2.USUAL
    else:
        sizes = model.module.image_size, model.config.num_channels
        cases, usual = run.image_cases(), 1.0
    written, peers = folder / "model", BY_KIND.get(model.kind, _NOBODY)
    if run.against and peers is not _NOBODY:
        events.emit(SideStarting(run.label, "gptrs"))
        write_for_peers(model, written)
    is_text = model.causal_lm is not None
    return _Opened(Subject(is_text, place, str(written), sizes, usual), cases, peers)


def _cannot_run(peers: Peers[Any], name: str) -> str:
    """Why a peer cannot run here, or nothing."""
    if name not in peers.required:
        return "it is for models of another kind"
    missing = peers.missing(name)
    return f"not installed: {', '.join(missing)}" if missing else ""


def _measure_on(
    threads: int, run: Run, opened: _Opened, names: list[str]
) -> Iterator[Result | Excluded]:
    """All cases on so many threads, each on a core of its own as long as there are cores."""
    settings = thread_settings(threads)
    if run.backend:
        settings |= {"GPTRS_BACKEND": run.backend}
    with ExitStack() as stack:
        stack.enter_context(on_cores(threads))
        sides = stack.enter_context(Sides(opened.subject, threads, settings))
        started: list[str] = []
        for name in ("ours", *names):
            events.emit(SideStarting(run.label, name))
            if reason := sides.start(name):
                yield Excluded(run.label, name, reason, threads)
            elif name != "ours":
                started.append(name)
        for case in opened.cases:
            events.emit(CaseBegan(run.label, case, threads))
            checked = sides.checked(case, opened.peers.quick(started))
            for excluded in checked.excluded:
                yield replace(excluded, model=run.label, threads=threads)
            figures = in_turn(checked.turns, run.rounds)
            about = run.label, case.mode, case.count, threads, case.unit
            yield Result(*about, figures, checked.differences)
