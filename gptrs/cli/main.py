"""The ``gptrs`` command. One verb a file."""

from __future__ import annotations

import sys

import typer

from gptrs import __version__, settings
from gptrs.cli.generate import generate
from gptrs.errors import PtirError

app = typer.Typer(
    name="gptrs",
    help="A CPU tensor JIT: run models through traced, portable tensor programs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"gptrs {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """A CPU tensor JIT: run models through traced, portable tensor programs."""
    for name in settings.unknown():
        typer.echo(f"warning: {name} is no setting of gptrs", err=True)


app.command()(generate)


def main() -> None:
    """Run the command line; errors are one message, Ctrl-C is quiet."""
    try:
        app()
    except PtirError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo(err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away: `gptrs generate | head`
        sys.stderr.close()
        sys.exit(141)


if __name__ == "__main__":
    main()
