"""``gptrs generate``: continue a text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gptrs import events, settings
from gptrs.cli import interrupt, sampling
from gptrs.cli.completions import print_json, print_texts
from gptrs.cli.dumps import DumpDir, DumpModeName, dumping
from gptrs.cli.language_models import check_options, open_draft, open_language_model
from gptrs.cli.profiling import ProfileOut, Profiling, profiling
from gptrs.cli.progress import progress
from gptrs.cli.running import Backend, KvCache, Threads
from gptrs.cli.shell_completion import complete_model
from gptrs.cli.times import Times, print_times
from gptrs.errors import ArgumentError

if TYPE_CHECKING:
    from io import TextIOWrapper

    from gptrs.loading.language_model import LanguageModel


def generate(
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="PROMPT",
            help="The text to continue; - reads it from standard input, without a last newline, and"
            " so does none at all where that is no terminal.",
        ),
    ] = None,
    prompt_option: Annotated[
        str | None,
        typer.Option("--prompt", "-p", metavar="PROMPT", help="The text, as an option."),
    ] = None,
    prompt_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Continue each line of this file, all at once; - is standard input.",
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="A Hugging Face directory, a checkpoint, or a model that ships with gptrs.",
            autocompletion=complete_model,
        ),
    ] = "stories",
    max_tokens: sampling.MaxTokens = None,
    temperature: sampling.Temperature = 0.0,
    top_k: sampling.TopK = None,
    top_p: sampling.TopP = None,
    min_p: sampling.MinP = None,
    repetition_penalty: sampling.RepetitionPenalty = 1.0,
    presence_penalty: sampling.PresencePenalty = 0.0,
    frequency_penalty: sampling.FrequencyPenalty = 0.0,
    logit_bias: sampling.LogitBias = None,
    logprobs: sampling.Logprobs = None,
    context_shift: sampling.ContextShift = False,
    prompt_lookup: sampling.PromptLookup = None,
    draft: sampling.Draft = None,
    draft_tokens: sampling.DraftTokens = 4,
    prefill_chunk: sampling.PrefillChunk = 512,
    seed: sampling.Seed = None,
    stop: sampling.Stop = None,
    ignore_eos: sampling.IgnoreEos = False,
    backend: Backend = None,
    threads: Threads = 0,
    kv_cache: KvCache = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print times at the end.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a prompt instead of streaming.")
    ] = False,
    dump_dir: DumpDir = None,
    dump_mode: DumpModeName = None,
    profile: Profiling = False,
    profile_out: ProfileOut = None,
) -> None:
    """Continue a text, streaming it to the terminal.

    gptrs generate "Once upon a time" --temperature 0.8 --seed 1
    """
    from gptrs import ptir  # the engine loads after the options are known to be good
    from gptrs.loading.threads import limit_threads

    options: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "presence_penalty": presence_penalty,
        "frequency_penalty": frequency_penalty,
        "logit_bias": sampling.read_logit_bias(logit_bias),
        "logprobs": logprobs,
        "context_shift": context_shift,
        "prompt_lookup": prompt_lookup,
        "draft_tokens": draft_tokens,
        "prefill_chunk": prefill_chunk,
        "seed": seed,
        "stop": tuple(stop or ()),
        "ignore_eos": ignore_eos,
    }
    if prompt is not None and prompt_option is not None:
        raise typer.BadParameter("give PROMPT or --prompt, not both")
    check_options(options, draft)
    _check(backend)
    prompts = _prompts(prompt if prompt_option is None else prompt_option, prompt_file)
    # What a terminal cannot show is no error.
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="replace")
    times = Times()
    with ExitStack() as stack:
        stack.enter_context(limit_threads(threads or settings.num_threads()))
        stack.enter_context(ptir.backend(backend or settings.backend()))
        stack.enter_context(events.listen(times.hear))
        stack.enter_context(dumping(dump_dir, dump_mode))
        stack.enter_context(profiling(profile, profile_out))
        end_progress = stack.enter_context(progress())
        began = perf_counter()
        opened = open_language_model(model, kv_cache)
        options |= open_draft(draft, kv_cache)
        times.load_seconds = perf_counter() - began
        streaming = not as_json and prompt_file is None and logprobs is None
        if streaming:
            _stream(opened, prompts[0], options, end_progress)
        else:
            completions = opened.complete(prompts, **options)
            end_progress()
            interrupt.check()
            spell = opened.tokenizer.spell
            if as_json:
                print_json(prompts, completions, spell, times.report() if stats else None)
            else:
                print_texts(prompts, completions, spell)
    if stats and not as_json:
        print_times(times)


def _stream(
    model: LanguageModel, prompt: str, options: dict[str, Any], end_progress: Callable[[], None]
) -> None:
    pieces = model.stream(prompt, **options)
    first = next(pieces, "")
    end_progress()
    _write(prompt + first)
    for piece in pieces:
        _write(piece)
    _write("\n")


def _check(backend: str | None) -> None:
    """Raise a usage error for a backend that there is not."""
    from gptrs.backends.selection import check_name

    try:
        if backend is not None:
            check_name(backend)
    except ArgumentError as error:
        raise typer.BadParameter(f"{error.problem}; {error.fix}") from None


def _prompts(prompt: str | None, file: Path | None) -> list[str]:
    if file is None:
        if prompt is None:
            return [_piped()]
        return [_standard_input() if prompt == "-" else prompt]
    if prompt:
        raise typer.BadParameter("give a prompt or --prompt-file, not both")
    lines = _standard_input() if file == Path("-") else _text(file.read_bytes(), str(file))
    if not lines:
        raise ArgumentError(
            f"{file} is empty, expected a prompt in each line", fix="write one in it"
        )
    return [line.removesuffix("\r") for line in lines.split("\n")]


def _piped() -> str:
    """What another program or a file gives; nothing where standard input is a terminal, closed, or
    cannot be read."""
    stdin = cast("TextIOWrapper | None", sys.stdin)
    if stdin is None or stdin.isatty():
        return ""
    try:
        return _standard_input()
    except OSError:
        return ""


def _standard_input() -> str:
    return _text(sys.stdin.buffer.read(), "standard input")


def _text(read: bytes, name: str) -> str:
    try:
        return read.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{name} is no UTF-8 text: {error}") from None


def _write(text: str) -> None:
    interrupt.check()
    sys.stdout.write(text)
    sys.stdout.flush()
