"""Lexical check of a program's text, before Python's own parser reads it.

Python's parser is recursive C code: an untrusted text must not overflow its stack or keep it busy
for seconds. The tokens are checked first, from left to right, against the tokens that programs are
printed with, and against limits on their number and nesting. Called by `gptrs.ir.parsing`.
"""

from __future__ import annotations

import re
from keyword import iskeyword

from gptrs.errors import ParseError

MOST_CHARACTERS = 1 << 28
MOST_WORDS = 1 << 19
MOST_BRACKETS = 64
"""The nesting of brackets."""
MOST_OPERATORS = 1024
"""Operators between two commas or brackets."""

_KEYWORDS = frozenset(["from", "import", "as", "def", "return", "True", "False", "None"])
_WORD = re.compile(
    r"(?P<space> +)|(?P<newline>\n+)|(?P<comment>\#[^\n\0\ud800-\udfff]*)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)(?P<prefix>[\"'])?"
    r"|(?P<number>(?:\d[\d.]*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)j?)"
    r"|(?P<text>\"[ !#-\[\]-~]*\"(?!\")|'[ -&(-\[\]-~]*'(?!'))"
    r"|(?P<open>[(\[])|(?P<close>[)\]])(?P<again>[ ]*[(\[.])?"
    r"|(?P<attribute>\.[ ]*[A-Za-z_][A-Za-z_0-9]*)(?P<deeper>[ ]*\.)?"
    r"|(?P<operator>->|[-+*/])|(?P<sign>[,:=])"
)


def check_words(text: str) -> None:
    """Raise `ParseError`, with the place, for a text with something that no program has in it: a
    character, a sign, a keyword; or with more than the limits of this file allow.

    ``text`` has line ends "\\n" only.
    """
    if len(text) > MOST_CHARACTERS:
        raise ParseError(
            f"the text has {len(text)} characters, expected at most {MOST_CHARACTERS}",
            line=1,
            column=1,
        )
    line, begin, at, words = 1, 0, 0, 0
    operators = [0]  # of the innermost bracket last
    while at < len(text):
        found = _WORD.match(text, at)
        kind = None if found is None else found.lastgroup
        problem = _problem(text, at, found)
        words += kind not in ("space", "newline", "comment")
        if found is not None and kind == "newline":
            line, begin = line + found.end() - at, found.end()
            if len(operators) == 1:
                operators[0] = 0
        elif kind == "open":
            operators.append(0)
        elif kind == "close" and len(operators) > 1:
            operators.pop()
        elif kind == "operator":
            operators[-1] += 1
        elif kind == "sign":
            operators[-1] = 0
        if words > MOST_WORDS:
            problem = f"the text has more than {MOST_WORDS} words"
        elif len(operators) > MOST_BRACKETS + 1 or operators[-1] > MOST_OPERATORS:
            problem = "the text is nested too deeply"
        if problem or found is None:
            raise ParseError(problem, line=line, column=at - begin + 1)
        at = found.end()


def _problem(text: str, at: int, found: re.Match[str] | None) -> str:
    """The problem with a token; empty when a program may contain it."""
    if found is None:
        return f"{text[at]!r} does not belong in a program"
    name = found["name"]
    wrong = (
        found["prefix"] is not None
        or found["again"] is not None
        or found["deeper"] is not None
        or (name is not None and iskeyword(name) and name not in _KEYWORDS)
    )
    shown = found[0] if len(found[0]) <= 60 else f"{found[0][:57]}..."
    return f"{shown!r} does not belong in a program" if wrong else ""
