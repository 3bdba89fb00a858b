"""``gptrs patterns``: the rewrite rules, and the composites that are recognised."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pkgutil import walk_packages
from typing import Annotated, cast

import typer

from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Pattern:
    """A line of the table."""

    name: str
    kind: str
    """``rule`` or ``composite``."""
    file: str
    rounds: bool | None
    """Whether it changes how results are rounded, so that GPTRS_PRECISE leaves it out; None for a
    composite, where that depends on the spelling."""
    meaning: str


def patterns(
    words: Annotated[str, typer.Argument(metavar="FILTER", help="Only those with this text.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the rewrite rules, and the composites that are recognised when they are spelt out."""
    every = [*_rules(), *_composites()]
    found = [p for p in every if words.lower() in f"{p.name} {p.file} {p.meaning}".lower()]
    if not found:
        raise ArgumentError(
            f"no rule or composite has {words!r} in its name, file or meaning",
            fix="give another text, or none to see all",
        )
    if as_json:
        parts = {"rules": "rule", "composites": "composite"}
        report = {
            name: [asdict(p) for p in found if p.kind == kind] for name, kind in parts.items()
        }
        typer.echo(json.dumps(report, ensure_ascii=False))
        return
    _print(found)


def _rules() -> Iterator[Pattern]:
    """Every rule in the files of the passes, in their order there."""
    import gptrs.passes  # the engine loads when it is needed
    from gptrs.ir.rewrite import Rule

    for info in walk_packages(gptrs.passes.__path__, "gptrs.passes."):
        found: list[object] = []
        for value in vars(import_module(info.name)).values():
            found += cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        rules = {rule.name: rule for rule in found if isinstance(rule, Rule)}
        for name, rule in rules.items():
            if rule.source.__module__ == info.name:  # and not imported from another file
                meaning = rule.doc.partition("\n")[0]
                yield Pattern(name, "rule", _file(info.name), rule.rounds, meaning)


def _composites() -> Iterator[Pattern]:
    """Every composite that is found where programs spell it out."""
    from gptrs.passes.raisable import RAISABLE  # the engine loads when it is needed

    for each in RAISABLE:
        yield Pattern(each.name, "composite", _file(each.op.body.__module__), None, each.doc)


def _file(module: str) -> str:
    return module.removeprefix("gptrs.").replace(".", "/") + ".py"


def _print(found: list[Pattern]) -> None:
    """Print a table, without a width limit where the output is no terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False)
    for title, kind in (("rules", "rule"), ("composites", "composite")):
        rows = [p for p in found if p.kind == kind]
        if not rows:
            continue
        table = Table(f"{len(rows)} {title}", "file", "", "what it does", box=None)
        for row in rows:
            table.add_row(row.name, row.file, "rounds" if row.rounds else "", row.meaning)
        console.print(table)
