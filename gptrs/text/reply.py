"""The text of an answer from its tokens: what it says, apart from what the model thought first.

A block of thoughts is what stands between two marks at the begin of an answer
(``<think> ... </think>``). `Reply` takes tokens and gives pieces of text as they become certain,
`ThoughtSplitter` divides text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from gptrs.text.streaming import TextStream, certain_length
from gptrs.text.tokenizer import Tokenizer

Kind = Literal["content", "reasoning"]
MARKS = (("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>"))
"""What begins and ends thoughts, in different families; the first is the usual pair."""


class Piece(NamedTuple):
    """A part of an answer, or of the thoughts before it."""

    text: str
    kind: Kind


def marks_of(template: str) -> tuple[str, str]:
    """The pair of `MARKS` that ``template`` names, else the usual one."""
    return next((pair for pair in MARKS if pair[1] in template), MARKS[0])


class ThoughtSplitter:
    """Divides a growing text into thoughts and content.

    Space around both is left out if there are thoughts. Text is held back as long as it may be the
    begin of a mark, or such space.
    """

    def __init__(self, marks: tuple[str, str], *, thinking: bool = False) -> None:
        self._open, self._close = marks
        self._held = ""
        self._state: Literal["begin", "thoughts", "gap", "content"] = (
            "thoughts" if thinking else "begin"
        )
        self._thought = False  # some text of the thoughts was given

    def push(self, text: str) -> list[Piece]:
        """The pieces that became certain with ``text``."""
        self._held += text
        made: list[Piece] = []
        while (state := self._state) != "content":
            if state == "begin":
                self._begin()
            elif state == "thoughts":
                made += self._thoughts()
            elif self._held.strip():
                self._held, self._state = self._held.lstrip("\n"), "content"
            if self._state == state:
                return made
        if self._held:
            made.append(Piece(self._held, "content"))
            self._held = ""
        return made

    def flush(self) -> list[Piece]:
        """The rest, at the end of the text."""
        held, self._held = self._held, ""
        if self._state == "thoughts":
            held = held.rstrip() if self._thought else held.strip()
            return [Piece(held, "reasoning")] if held else []
        return [Piece(held, "content")] if held and self._state != "gap" else []

    def _begin(self) -> None:
        found = self._held.lstrip()
        if found.startswith(self._open):
            self._held, self._state = found[len(self._open) :], "thoughts"
        elif not self._open.startswith(found):
            self._state = "content"

    def _thoughts(self) -> list[Piece]:
        before, mark, after = self._held.partition(self._close)
        if mark:
            self._state, self._held = "gap", after
            rest = ""
        else:
            sure = certain_length(before, self._close)
            before, rest = before[:sure], before[sure:]
        text = before.rstrip()
        if not mark:
            self._held = before[len(text) :] + rest
        if not self._thought:
            text = text.lstrip()
        self._thought |= bool(text)
        return [Piece(text, "reasoning")] if text else []


class Reply:
    """The pieces of an answer whose tokens come one by one.

    Marks of thoughts that are special tokens count too. ``stopped`` says that a stop string has
    ended the text.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop: str | Iterable[str],
        marks: tuple[str, str],
        *,
        thinking: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self._stream = TextStream(tokenizer, stop)
        self._splitter = ThoughtSplitter(marks, thinking=thinking)
        named = [(tokenizer.token_id(mark), mark) for mark in marks]
        self._marks = {i: m for i, m in named if i is not None and tokenizer.is_skipped(i)}

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""
        return self._stream.stopped

    def push(self, token: int) -> list[Piece]:
        """The pieces that became certain with the id ``token``."""
        if (mark := self._marks.get(token)) is not None and not self.stopped:
            return self._splitter.push(self._stream.flush() + mark)
        return self._splitter.push(self._stream.push(token))

    def flush(self) -> list[Piece]:
        """The rest, at the end of the tokens."""
        return [*self._splitter.push(self._stream.flush()), *self._splitter.flush()]
