"""What a user says, turn by turn: from a terminal or from a pipe, in one line or in several.

Three quotes begin and end a text of several lines, and a backslash at the end of a line goes on in
the next.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from gptrs.errors import ArgumentError
from gptrs.locks import late_import

if TYPE_CHECKING:
    from io import TextIOWrapper

QUOTES = '"""'
ASKING, MORE = ">>> ", "... "


def on_terminal() -> bool:
    """Whether somebody types at a terminal and reads there."""
    stdin = cast("TextIOWrapper | None", sys.stdin)
    return stdin is not None and stdin.isatty() and sys.stdout.isatty()


def line_reader() -> Callable[[str], str | None]:
    """A function that gives the next line of standard input without its end, None after the last.

    It takes what a terminal shows before the line. There, lines can be edited.
    """
    if not on_terminal():
        return lambda _: _piped_line()
    with suppress(ImportError):  # on Windows, whose console edits lines itself
        late_import("readline")  # gives `input` editing and history

    def ask(shown: str) -> str | None:
        try:
            return input(shown)
        except EOFError:
            print()
            return None

    return ask


def next_turn(read: Callable[[str], str | None]) -> str | None:
    """The next turn, with its lines; None after the last."""
    line = read(ASKING)
    if line is None:
        return None
    if line.lstrip().startswith(QUOTES):
        return _quoted(line.lstrip().removeprefix(QUOTES), read)
    lines: list[str] = []
    while line is not None and line.endswith("\\"):
        lines.append(line[:-1])
        line = read(MORE)
    return "\n".join([*lines, *([] if line is None else [line])])


def _quoted(line: str | None, read: Callable[[str], str | None]) -> str:
    lines: list[str] = []
    while line is not None:
        text, end, _ = line.partition(QUOTES)
        lines.append(text)
        if end:
            break
        line = read(MORE)
    return "\n".join(lines).strip("\n")


def _piped_line() -> str | None:
    stdin = cast("Any", sys.stdin)
    try:
        read: bytes = b"" if stdin is None else stdin.buffer.readline()
        return read.decode().rstrip("\r\n") if read else None
    except UnicodeDecodeError as error:
        raise ArgumentError(f"standard input is no UTF-8 text: {error}") from None
