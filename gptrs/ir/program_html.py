"""Programs for notebooks: their text, with light highlighting and the user's lines as tooltips."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gptrs.html_tables import Markup, block, code, escaped, fragment, joined, styled

_LONGEST = 200  # letters of a string; arrays are printed as such
_MOST = 2000  # lines that are shown
_TOKEN = re.compile(
    r"(?P<dim>#.*)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<word>\b(?:def|return|from|import|as)\b)"
    r"|(?P<op>\bptir\.\w+)|(?P<number>(?<![\w.])\d[\w.]*)"
)
_INSTRUCTION = re.compile(r"\s+[\w, ]+ = ptir\.\w+\(.*  # ")


def program_html(text: str, places: Iterable[str]) -> Markup:
    """The ``text`` of a program; ``places`` are the users' lines of its instructions, in the order
    of the text."""
    lines, place = text.rstrip("\n").split("\n"), iter(places)
    shown = joined(_line(line, place) for line in lines[:_MOST])
    left = len(lines) - _MOST
    more = block(f"{left} more lines: print(program) writes them", "dim") if left > 0 else Markup()
    return fragment(code(shown), more)


def _line(line: str, places: Iterator[str]) -> Markup:
    title = next(places, "") if _INSTRUCTION.match(line) else ""
    return block(joined(_tokens(line)) or Markup("&nbsp;"), title=title)


def _tokens(line: str) -> Iterator[Markup]:
    end = 0
    for found in _TOKEN.finditer(line):
        yield escaped(line[end : found.start()])
        token = found[0]
        if len(token) > _LONGEST and found.lastgroup == "text":
            token = f"{token[:_LONGEST]}…{token[-1]}"
        yield styled(found.lastgroup or "", token)
        end = found.end()
    yield escaped(line[end:])
