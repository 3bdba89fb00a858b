"""Tables of many rows, and facts by name, as plain lines, without cropping."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import typer


def print_lines(
    head: Sequence[str], rows: Collection[Sequence[str]], right: Collection[int]
) -> None:
    """Print ``rows`` under ``head``, with the columns ``right`` aligned to the right.

    They look as rich's tables do, which lay out each row (a millisecond) and crop names to the
    width of a terminal; a terminal folds lines that are too long for it.
    """
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(head, *rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        text = ""
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            text += f" {space}{cell} " if number in right else f" {cell}{space} "
        return text.rstrip()

    typer.secho(line(head), bold=True)
    typer.echo("".join(f"{line(row)}\n" for row in rows), nl=False)


def print_facts(head: str, facts: Collection[tuple[str, str]]) -> None:
    """Print names and values in two columns under ``head``."""
    from rich.cells import cell_len

    width = max((cell_len(name) for name, _ in facts), default=0)
    typer.secho(head, bold=True)
    for name, value in facts:
        typer.echo(f"  {name}{' ' * (width - cell_len(name))}  {value}".rstrip())
