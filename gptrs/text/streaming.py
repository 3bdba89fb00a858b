"""Incremental detokenization: final text pieces from single tokens, with stop strings.

`TextStream` decodes a window of the last tokens and releases text that no later token can change:
no partial characters, no beginning of a stop string.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from gptrs.errors import ArgumentError
from gptrs.text.tokenizer import Tokenizer

# Later text depends on this many last tokens: an incomplete character began at most three tokens
# ago, and a decoder that drops a leading space does so in the first token.
_CONTEXT = 8
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def stop_strings(stop: object) -> tuple[str, ...]:
    """``stop``, a string or an iterable of strings, as a tuple.

    Raises ArgumentError for anything else, and for an empty string.
    """
    entries = (stop,)
    if isinstance(stop, Iterable) and not isinstance(stop, str):
        entries = tuple(cast(Iterable[object], stop))
    strings = tuple(entry for entry in entries if isinstance(entry, str) and entry)
    if len(strings) < len(entries):
        raise ArgumentError(
            f"stop is {stop!r}, expected one string or several, each of at least one character",
            fix="leave out what is empty, and pass text rather than bytes or ids",
        )
    return strings


class TextStream:
    """The text of a growing list of tokens, in pieces that never have to be taken back.

    The pieces joined are ``tokenizer.decode(all tokens)``, cut before the stop string that begins
    first. A piece is held back while later tokens can change it: the bytes of a character that is
    not complete, a run of byte tokens (see ``Tokenizer.is_byte``), the start of a stop string.
    """

    def __init__(self, tokenizer: Tokenizer, stop: str | Iterable[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._stops = stop_strings(stop)
        self._window: list[int] = []  # the last tokens
        self._settled = 0  # characters of decode(window) that were final before this push
        self._held = ""  # final text that may be the start of a stop string
        self.stopped = False  # a stop string was found: the text has ended

    def push(self, token: int) -> str:
        """The text that became final with the id ``token``, often empty."""
        if self.stopped or self._tokenizer.is_skipped(token):
            return ""
        self._window.append(token)
        if self._tokenizer.is_byte(token):
            return ""
        text = self._tokenizer.decode(self._window)
        uncertain = int(text.endswith(_REPLACEMENT))
        piece = text[self._settled : len(text) - uncertain]
        if len(self._window) > 2 * _CONTEXT:
            self._window = self._window[-_CONTEXT:]
            text = self._tokenizer.decode(self._window)
        self._settled = len(text) - uncertain
        return self._release(piece)

    def flush(self) -> str:
        """The rest of the text at the end of the tokens; the stream is empty afterwards."""
        rest = "" if self.stopped else self._tokenizer.decode(self._window)[self._settled :]
        self._window, self._settled = [], 0
        return self._release(rest, last=True)

    def _release(self, piece: str, *, last: bool = False) -> str:
        """The part of the held text and ``piece`` that cannot belong to a stop string."""
        text = self._held + piece
        begun = len(text)
        if not last:
            begun = min((certain_length(text, stop) for stop in self._stops), default=begun)
        found = min((at for stop in self._stops if (at := text.find(stop)) >= 0), default=None)
        if found is not None and found <= begun:
            self.stopped, self._held = True, ""
            return text[:found]
        self._held = text[begun:]
        return text[:begun]


def certain_length(text: str, mark: str) -> int:
    """How many characters of ``text`` are before what may be the begin of ``mark``: the start of
    its longest suffix that is a proper prefix of ``mark``, else all."""
    for length in range(min(len(mark) - 1, len(text)), 0, -1):
        if text.endswith(mark[:length]):
            return len(text) - length
    return len(text)
