"""``gptrs generate``: continue a text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gptrs import events, settings
from gptrs.cli import interrupt
from gptrs.cli.dumps import DumpDir, DumpModeName, dumping
from gptrs.errors import ArgumentError

if TYPE_CHECKING:
    from io import TextIOWrapper

    from rich.console import Console

    from gptrs.runtime.load import LanguageModel


def generate(
    prompt: Annotated[
        str,
        typer.Argument(
            help="The text to continue; - reads it from standard input, without a last newline."
        ),
    ] = "",
    model: Annotated[
        str, typer.Option(help="A Hugging Face directory, or a model that ships with gptrs.")
    ] = "stories",
    max_tokens: Annotated[
        int | None,
        typer.Option(min=0, help="At most this many new tokens [default: as the context allows]."),
    ] = None,
    temperature: Annotated[float, typer.Option(min=0, help="0 is greedy.")] = 0.0,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Choose among the k likeliest tokens.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Choose among the likeliest tokens of this total share.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Makes sampling repeatable.")] = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="End before this text; may be given several times.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="The backend to run on [default: GPTRS_BACKEND].")
    ] = None,
    threads: Annotated[
        int, typer.Option(min=0, help="Threads to use; 0: GPTRS_NUM_THREADS, else all cores.")
    ] = 0,
    stats: Annotated[bool, typer.Option("--stats", help="Print times at the end.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of streaming.")
    ] = False,
    dump_dir: DumpDir = None,
    dump_mode: DumpModeName = None,
) -> None:
    """Continue a text, streaming it to the terminal."""
    from gptrs import ptir  # the engine loads after the options are known to be good
    from gptrs.runtime.threads import limit_threads

    options = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "stop": tuple(stop or ()),
    }
    _check(options, backend)
    text = _standard_input() if prompt == "-" else prompt
    # What a terminal cannot show is no error.
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="replace")
    times = Times()
    with ExitStack() as stack:
        stack.enter_context(limit_threads(threads or settings.num_threads()))
        stack.enter_context(ptir.backend(backend or settings.backend()))
        stack.enter_context(events.listen(times.hear))
        stack.enter_context(dumping(dump_dir, dump_mode))
        end_progress = stack.enter_context(_progress())
        pieces = _open(model, times).stream(text, **options)
        first = next(pieces, "")
        end_progress()
        if as_json:
            answer = "".join([first, *pieces])
            report = {"prompt": text, "text": answer} | ({"stats": times.report()} if stats else {})
            typer.echo(json.dumps(report, ensure_ascii=False))
            return
        _write(text + first)
        for piece in pieces:
            _write(piece)
        _write("\n")
    if stats:
        _print_stats(times)


def _check(options: dict[str, Any], backend: str | None) -> None:
    """Raise a usage error for options that no model accepts."""
    from gptrs.backends.discovery import get_backend
    from gptrs.text.sampling import GenerationOptions

    try:
        GenerationOptions(**options)
        if backend is not None:
            get_backend(backend)
    except ArgumentError as error:
        raise typer.BadParameter(f"{error.problem}; {error.fix}") from None


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"standard input is no UTF-8 text: {error}") from None


def _open(path: str, times: Times) -> LanguageModel:
    from gptrs.runtime.load import load

    began = perf_counter()
    opened = load(path)
    times.load_seconds = perf_counter() - began
    return opened


def _write(text: str) -> None:
    interrupt.check()
    sys.stdout.write(text)
    sys.stdout.flush()


@dataclass
class Times:
    """What a run spent its time on, gathered from events. Times are in seconds."""

    load_seconds: float = 0.0
    compile_seconds: float = 0.0
    programs: int = 0
    kernels: int = 0
    kernels_compiled: int = 0  # the others came from the cache on disk
    prefill_tokens: int = 0
    prefill_seconds: float = 0.0
    decode_tokens: int = 0
    decode_seconds: float = 0.0

    def hear(self, event: object) -> None:
        """Add what ``event`` says."""
        from gptrs.jit.cache import Retrace
        from gptrs.kernels.compile import KernelReady
        from gptrs.text.generation import Decoded, Prefilled

        compiled = self.compile_seconds
        if isinstance(event, Retrace):
            self.programs += 1
            self.compile_seconds = compiled + event.milliseconds / 1e3
        elif isinstance(event, KernelReady):
            self.kernels += event.kernel
            self.kernels_compiled += event.kernel and not event.cached
        elif isinstance(event, Prefilled):
            self.prefill_tokens += event.tokens
            self.prefill_seconds += max(event.seconds - compiled, 0.0)
        elif isinstance(event, Decoded):
            self.decode_tokens += event.tokens
            self.decode_seconds += event.seconds

    def report(self) -> dict[str, float]:
        """The times and the rates, tokens per second."""
        return asdict(self) | {
            "prefill_rate": self.prefill_tokens / self.prefill_seconds
            if self.prefill_seconds
            else 0.0,
            "decode_rate": self.decode_tokens / self.decode_seconds if self.decode_seconds else 0.0,
        }


@contextmanager
def _progress() -> Generator[Callable[[], None]]:
    """A progress bar on the terminal while weights load and programs compile.

    Yields a function that takes the bar away before text is written.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    from gptrs.runtime.weights import WeightRead, WeightsOpened

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("loading", total=None)

    def hear(event: object) -> None:
        if isinstance(event, WeightsOpened):
            bar.update(task, description="compiling", total=event.size)
        elif isinstance(event, WeightRead):
            bar.update(task, description="loading", advance=event.size)

    def end() -> None:
        with interrupt.deferred():
            bar.stop()

    try:  # a bar that is half started or half stopped would leave the cursor hidden
        with interrupt.deferred():
            bar.start()
        with events.listen(hear):
            yield end
    finally:
        end()


def _print_stats(times: Times) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("step", "seconds", "tokens", "tokens/s", box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    rates = times.report()
    table.add_row("load", f"{times.load_seconds:.3f}", "", "")
    table.add_row(f"compile ({times.programs} programs)", f"{times.compile_seconds:.3f}", "", "")
    if times.kernels:
        compiled = times.kernels_compiled
        note = f"{compiled} compiled" if compiled else "all from the cache"
        table.add_row(f"kernels: {times.kernels}, {note}", "", "", "")
    for step in ("prefill", "decode"):
        seconds, tokens, rate = (rates[f"{step}_{n}"] for n in ("seconds", "tokens", "rate"))
        table.add_row(step, f"{seconds:.3f}", f"{tokens:.0f}", f"{rate:.1f}")
    console: Console = Console(stderr=True)
    console.print(table)
