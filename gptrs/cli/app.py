"""The typer application: registration of the subcommands, global options, errors as one message."""

from __future__ import annotations

from typing import Any, cast

import typer

from gptrs import __version__, settings
from gptrs.cli.backends import backends
from gptrs.cli.bench import NumbersCommand, bench
from gptrs.cli.bisect import bisect
from gptrs.cli.cache import cache
from gptrs.cli.chat import chat
from gptrs.cli.convert import convert
from gptrs.cli.env import env
from gptrs.cli.export import export
from gptrs.cli.fit import fit
from gptrs.cli.forward import forward
from gptrs.cli.generate import generate
from gptrs.cli.info import info
from gptrs.cli.patterns import patterns
from gptrs.cli.trace import trace
from gptrs.cli.validate import validate
from gptrs.cli.view import view
from gptrs.errors import PtirError

# Typer exports none of the errors for wrong usage but this one, whose base they share.
_UsageError = cast("Any", typer.BadParameter.__base__)

app = typer.Typer(
    name="gptrs",
    help="A CPU tensor JIT: run models through traced, portable tensor programs.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"gptrs {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """A CPU tensor JIT: run models through traced, portable tensor programs."""
    for text, _ in settings.complaints():
        typer.echo(f"warning: {text}", err=True)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command()(generate)
app.command()(chat)
app.command()(forward)
app.command()(convert)
app.command()(export)
app.command()(info)
app.command()(fit)
app.command()(validate)
app.command()(trace)
app.command()(view)
app.command()(bisect)
app.command(cls=NumbersCommand)(bench)
app.command()(patterns)
app.command()(env)
app.command()(backends)
app.add_typer(cache, name="cache")


def run() -> int:
    """Run the command of ``sys.argv``; errors are one message. Returns the exit code."""
    try:
        return app(prog_name="gptrs", standalone_mode=False) or 0
    except _UsageError as error:
        typer.echo(f"error: {error.format_message()}", err=True)
        return 2
    except (PtirError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        return 1
    except typer.Abort:  # Ctrl-C, in older versions of Typer
        return 130
