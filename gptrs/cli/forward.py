"""``gptrs forward``: run a model once, on images or on tokens."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gptrs import settings
from gptrs.cli import interrupt
from gptrs.cli.dumps import DumpDir, DumpModeName, dumping
from gptrs.cli.predictions import Predictions, likeliest_choices, print_json, print_tables
from gptrs.cli.profiling import ProfileOut, Profiling, profiling
from gptrs.cli.progress import progress
from gptrs.cli.running import Backend, Threads
from gptrs.cli.shell_completion import complete_model
from gptrs.errors import ArgumentError

if TYPE_CHECKING:
    from gptrs.ir.types import Array
    from gptrs.loading.image_classifier import ImageClassifier
    from gptrs.loading.language_model import LanguageModel

_SEED = 0


def forward(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="A Hugging Face directory, a checkpoint, or a model that ships with gptrs.",
            autocompletion=complete_model,
        ),
    ],
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--input",
            metavar="FILE",
            help="An image, or a .npy, .npz or .gten file of images or token ids; several make one"
            " batch. Arrays of bytes are pixels, of floats are used as they are.",
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="Run a language model on this text.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the logits to this .npy, .npz or .gten file."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Show this many classes or tokens.")] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object an input instead of tables.")
    ] = False,
    backend: Backend = None,
    threads: Threads = 0,
    dump_dir: DumpDir = None,
    dump_mode: DumpModeName = None,
    profile: Profiling = False,
    profile_out: ProfileOut = None,
) -> None:
    """Run a model once and print its likeliest classes, or the tokens that follow.

    gptrs forward --model resnet-50 --input cat.jpg --input dog.jpg
    """
    _check(inputs or [], text, out, backend)
    from gptrs import ptir  # the engine loads after the options are known to be good
    from gptrs.formats.array_files import write_array
    from gptrs.loading.load import load
    from gptrs.loading.threads import limit_threads

    with ExitStack() as stack:
        stack.enter_context(limit_threads(threads or settings.num_threads()))
        stack.enter_context(ptir.backend(backend or settings.backend()))
        stack.enter_context(dumping(dump_dir, dump_mode))
        stack.enter_context(profiling(profile, profile_out))
        end_progress = stack.enter_context(progress())
        opened = load(model)
        if opened.image_classifier is not None:
            logits, told = _classify(opened.image_classifier, inputs or [], text, top)
        else:
            logits, told = _continue(opened.causal_lm, inputs or [], text, top)
        end_progress()
        interrupt.check()
        if out is not None:
            write_array(out, "logits", logits)
        (print_json if as_json else print_tables)(told)


def _check(inputs: list[Path], text: str | None, out: Path | None, backend: str | None) -> None:
    """Raise a usage error for options that no model accepts."""
    from gptrs.backends.selection import check_name
    from gptrs.formats.array_files import check_target

    if inputs and text is not None:
        raise typer.BadParameter("give --input or --text, not both")
    try:
        if backend is not None:
            check_name(backend)
        if out is not None:
            check_target(out)
            if not out.parent.is_dir():
                raise ArgumentError(f"{out.parent} is no folder", fix="make it, or name another")
    except ArgumentError as error:
        raise typer.BadParameter(f"{error.problem}; {error.fix}") from None


def _classify(
    model: ImageClassifier, inputs: list[Path], text: str | None, top: int
) -> tuple[Array, Predictions]:
    from gptrs.loading.batches import image_batch, random_image

    if text is not None:
        raise ArgumentError("--text is for language models, and this one takes images")
    if inputs:
        names, images = image_batch(model, inputs)
    else:
        typer.echo(f"no --input: running on a random image (seed {_SEED})", err=True)
        names, images = ["random"], random_image(model, _SEED)
    logits = model.forward(images).numpy()
    choices = likeliest_choices(names, logits, top, model.labels.__getitem__)
    return logits, Predictions(names, choices, "class", "label")


def _continue(
    model: LanguageModel, inputs: list[Path], text: str | None, top: int
) -> tuple[Array, Predictions]:
    import numpy as np

    from gptrs.loading.batches import token_batch

    if inputs:
        names, ids = token_batch(inputs)
    elif text is not None:
        names, ids = [text], np.atleast_2d(np.array(model.tokenizer.encode(text), np.int64))
        if ids.size == 0:
            raise ArgumentError(
                f"--text {text!r} gives no token, expected at least one token",
                fix="give a longer text",
            )
    else:
        raise ArgumentError("there is nothing to run the model on", fix="give --text or --input")
    tokenizer = model.tokenizer if model.has_tokenizer else None
    logits = model.forward(ids).numpy()

    def spell(token: int) -> str | None:
        return tokenizer.spell(token) if tokenizer else None

    choices = likeliest_choices(names, logits[:, -1], top, spell)
    return logits, Predictions(names, choices, "id", "token" if tokenizer else None, quoted=True)
