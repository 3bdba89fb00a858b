"""``gptrs cache``: the compiled kernels on disk: report, check, prune, clear."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from gptrs.byte_sizes import read_size, size_text
from gptrs.cli.lines import print_facts, print_lines
from gptrs.cli.model_argument import AsJson
from gptrs.cli.names import printable
from gptrs.cli.progress import step_progress

if TYPE_CHECKING:
    from gptrs.kernels.compiler.cache_upkeep import CacheState, Share

cache = typer.Typer(
    help="Report, check, prune or clear the compiled kernels on disk.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@cache.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Report, check, prune or clear the compiled kernels on disk."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache.command()
def info(as_json: AsJson = False) -> None:
    """Print where compiled kernels are kept, how many, their bytes, and what made them."""
    # Loads after the options are known to be good, here and below.
    from gptrs.kernels.compiler import cache_upkeep

    state = cache_upkeep.cache_state()
    versions = cache_upkeep.by_version() if state.entries else {}
    if as_json:
        made = {version: share._asdict() for version, share in versions.items()}
        typer.echo(json.dumps({**_report(state), "versions": made}))
        return
    print_facts("kernel cache", _rows(state))
    if versions:
        typer.echo()
        rows = [
            (printable(version), str(share.entries), size_text(share.bytes))
            for version, share in versions.items()
        ]
        print_lines(("made by", "entries", "size"), rows, right=(1, 2))


@cache.command()
def verify(
    remove: Annotated[bool, typer.Option("--remove", help="Delete damaged entries.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read every entry and compare its checksum; damaged ones are listed.

    Ends with code 1 if there are some, removed or not. A damaged entry is harmless: its kernel is
    compiled again where it is needed.
    """
    from gptrs.kernels.compiler import cache_upkeep

    with step_progress() as told:
        found = cache_upkeep.verify(
            remove=remove, told=lambda done, total: told("checking", done / max(total, 1))
        )
    damaged = [entry._asdict() for entry in found.damaged]
    if as_json:
        typer.echo(json.dumps({"entries": found.entries, "damaged": damaged}))
    else:
        for entry in found.damaged:
            done = " (removed)" if entry.is_removed else ""
            typer.echo(f"{printable(entry.path)}: {entry.problem}{done}")
        typer.echo(f"{_entries(found.entries)} checked, {len(damaged)} damaged")
    if damaged:
        raise typer.Exit(1)


@cache.command()
def prune(
    size: Annotated[
        str | None,
        typer.Option(
            "--bytes", metavar="SIZE", help="Keep at most this: 100MB; else GPTRS_CACHE_BYTES."
        ),
    ] = None,
    other_versions: Annotated[
        bool,
        typer.Option(
            "--other-versions", help="Remove what other versions of gptrs or llvmlite made."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove the least recently used entries beyond the limit.

    gptrs cache prune --bytes 100MB
    """
    limit = None if size is None else _bytes(size)
    from gptrs import settings
    from gptrs.kernels.compiler import cache_upkeep

    stale = cache_upkeep.prune_other_versions() if other_versions else cache_upkeep.Share(0, 0)
    rest = cache_upkeep.prune(settings.cache_bytes() if limit is None else limit)
    removed = cache_upkeep.Share(stale.entries + rest.entries, stale.bytes + rest.bytes)
    _print_removed(removed, as_json=as_json)


@cache.command()
def clear(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove all entries. Asks before, on a terminal. Other files of the folder stay."""
    from gptrs.kernels.compiler import cache_upkeep

    state = cache_upkeep.cache_state()
    stdin = cast("TextIO | None", sys.stdin)  # None where it is closed
    if state.entries and not yes and stdin is not None and stdin.isatty():
        what = f"{_entries(state.entries)}, {size_text(state.bytes)}, in {state.folder}"
        if not typer.confirm(f"Remove {what}?", err=True):
            raise typer.Exit(1)
    _print_removed(cache_upkeep.clear(), as_json=as_json)


def _bytes(size: str) -> int:
    try:
        return read_size(size)
    except ValueError:
        raise typer.BadParameter(
            f"--bytes is {size!r}, expected a size such as 100MB or 2GiB"
        ) from None


def _report(state: CacheState) -> dict[str, Any]:
    return {**asdict(state), "folder": None if state.folder is None else str(state.folder)}


def _rows(state: CacheState) -> list[tuple[str, str]]:
    folder = "none" if state.folder is None else printable(str(state.folder))
    absent = "" if state.exists or state.folder is None else ", not made yet"
    rows = [("folder", folder + absent)]
    if state.problem:
        rows.append(("problem", state.problem))
    rows += [
        ("entries", str(state.entries)),
        ("size", f"{size_text(state.bytes)} of at most {size_text(state.limit)}"),
    ]
    if state.oldest is not None and state.newest is not None:
        rows += [("least recent use", _time(state.oldest)), ("last use", _time(state.newest))]
    if state.temporary:
        rows.append(("unfinished", f"{state.temporary} files of writers, removed after an hour"))
    if state.others:
        rows.append(("other files", f"{state.others}, which are left alone"))
    return rows


def _time(seconds: float) -> str:
    """A file's time in words; files may have any."""
    try:
        return datetime.fromtimestamp(seconds).isoformat(" ", "minutes")
    except (OverflowError, OSError, ValueError):
        return "unknown"


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _print_removed(removed: Share, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"removed": removed._asdict()}))
    else:
        typer.echo(f"{_entries(removed.entries)} removed, {size_text(removed.bytes)}")
