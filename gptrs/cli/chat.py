"""``gptrs chat``: talk with a model."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gptrs import settings
from gptrs.cli import interrupt, sampling
from gptrs.cli.language_models import check_options, open_draft, open_language_model
from gptrs.cli.model_argument import ModelName, ModelOption, either
from gptrs.cli.running import Backend, KvCache, Threads
from gptrs.cli.turns import line_reader, next_turn, on_terminal
from gptrs.errors import ArgumentError, PtirError

if TYPE_CHECKING:
    from io import TextIOWrapper

    from gptrs.cli.conversation import Conversation
    from gptrs.loading.language_model import LanguageModel


def chat(
    path: ModelName = None,
    model_option: ModelOption = None,
    system: Annotated[
        str | None, typer.Option("--system", "-s", metavar="TEXT", help="The system prompt.")
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option("--prompt", "-p", metavar="TEXT", help="Answer this one message, and end."),
    ] = None,
    thinking: Annotated[
        str,
        typer.Option(
            metavar="show|hide|off",
            help="What becomes of the thoughts of a model that thinks; off: it is told not to.",
        ),
    ] = "hide",
    chat_template: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A template by name: one of the model's own, chatml, or plain (text alone).",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", "-n", min=0, help="At most this many an answer.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="0 is greedy; else that of generation_config.json.")
    ] = None,
    top_k: sampling.TopK = None,
    top_p: sampling.TopP = None,
    min_p: sampling.MinP = None,
    repetition_penalty: Annotated[
        float | None,
        typer.Option(help="Above 1: tokens of the prompt and the text become less likely."),
    ] = None,
    prompt_lookup: sampling.PromptLookup = None,
    draft: sampling.Draft = None,
    draft_tokens: sampling.DraftTokens = 4,
    seed: sampling.Seed = None,
    stop: sampling.Stop = None,
    backend: Backend = None,
    threads: Threads = 0,
    kv_cache: KvCache = None,
    stats: Annotated[
        bool | None,
        typer.Option(
            "--stats/--no-stats", help="Print tokens/s after each answer: else on a terminal."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Each line of standard input is JSON: a text, a message, or a list of messages; an"
            " object chat.completion is printed for each.",
        ),
    ] = False,
) -> None:
    """Talk with a model: /help lists what can be said to it.

    gptrs chat path/to/model --system "Be brief."
    """
    from gptrs import ptir  # the engine loads after the options are known to be good
    from gptrs.cli.conversation import Conversation
    from gptrs.cli.progress import progress
    from gptrs.loading.threads import limit_threads

    given: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "prompt_lookup": prompt_lookup,
        "draft_tokens": draft_tokens if draft else None,
        "seed": seed,
        "stop": tuple(stop) if stop else None,
    }
    options = {name: value for name, value in given.items() if value is not None}
    if thinking not in ("show", "hide", "off"):
        raise typer.BadParameter(f"--thinking is {thinking!r}, expected show, hide or off")
    check_options(options, draft)
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="replace")
    interactive = on_terminal() and prompt is None and not as_json
    with ExitStack() as stack:
        stack.enter_context(limit_threads(threads or settings.num_threads()))
        stack.enter_context(ptir.backend(backend or settings.backend()))
        with progress():
            model = open_language_model(either(path, model_option) or "stories", kv_cache)
            options |= open_draft(draft, kv_cache)
        template = chat_template or _template(model)
        shown = interactive if stats is None else stats
        talk = Conversation(model.session(), system, thinking, template, options)
        talk.stats, talk.interactive = shown, interactive
        if as_json:
            _answer_json(talk)
        elif prompt is not None:
            talk.say(prompt)
        else:
            _talk(talk)


def _talk(talk: Conversation) -> None:
    from gptrs.cli.chat_commands import run_command

    read = line_reader()
    if talk.interactive:
        name = talk.model.place.name
        typer.secho(f"{name}: /help lists the commands, Ctrl-D ends", err=True, dim=True)
    while True:
        try:
            turn = next_turn(read)
            if turn is None:
                return
            if turn.startswith("/") and "\n" not in turn:
                if run_command(talk, turn):
                    return
            elif turn.strip():
                talk.say(turn)
        except KeyboardInterrupt:
            if not talk.interactive:
                raise
            interrupt.forget()
            typer.secho("\nCtrl-D or /quit ends", err=True, dim=True)
        except (PtirError, OSError) as error:
            if not talk.interactive:
                raise
            typer.echo(f"error: {error}", err=True)


def _answer_json(talk: Conversation) -> None:
    """An object for each line of standard input. A text goes on with the conversation, and so does
    a message; a list of messages is one of its own, and so is a request of the OpenAI API."""
    read, number = line_reader(), 0
    while (line := read("")) is not None:
        number += 1
        if not line.strip():
            continue
        asked = _request(line, f"line {number} of standard input")
        apart = "messages" in asked
        messages = asked.pop("messages") if apart else [*talk.messages, asked]
        try:
            asking: Any = talk.asked(messages, asked if apart else {})
            result = talk.model.chat(asking.pop("messages"), stream=False, **asking)
        except PtirError as error:
            error.context.append(f"line {number} of standard input")
            raise
        if not apart:
            talk.messages = [*messages, result.message]
        typer.echo(json.dumps(result.as_dict(), ensure_ascii=False))
        interrupt.check()


def _request(line: str, where: str) -> dict[str, Any]:
    """A message, or an object with ``messages`` and options, of a line of JSON."""
    expected = 'expected "text", {"role": "user", "content": "text"}, or a list of messages'
    try:
        given: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(
            f"{where} is no JSON: {error}, {expected}", fix="write one value of JSON a line"
        ) from None
    if isinstance(given, str):
        return {"role": "user", "content": given}
    if isinstance(given, list):
        return {"messages": given}
    if not isinstance(given, dict):
        raise ArgumentError(f"{where} is {given!r}, {expected}", fix="write one of these")
    asked = cast("dict[str, Any]", given)
    if "messages" in asked:
        for name in ("model", "stream", "n", "user"):  # of the API, and of no use here
            asked.pop(name, None)
    return asked


def _template(model: LanguageModel) -> str | None:
    """None for the model's own template; plain text where it has none."""
    if model.has_chat_template:
        return None
    typer.secho(
        f"{model.place.name} has no chat template: it goes on with the text (template 'plain')",
        err=True,
        dim=True,
    )
    return "plain"
