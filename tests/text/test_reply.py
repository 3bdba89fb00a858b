"""Answers apart from thoughts: marks in any pieces of text, special tokens, stop strings."""

from __future__ import annotations

from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers

from gptrs.text.reply import MARKS, Piece, Reply, ThoughtSplitter, marks_of
from gptrs.text.tokenizer import Tokenizer
from tests.support.fake_model import TOKENIZER

THINK = MARKS[0]
# text, whether the prompt began the thoughts → thoughts, content
CASES: list[tuple[str, bool, str, str]] = [
    ("Hello", False, "", "Hello"),
    ("", False, "", ""),
    ("  Hello\n", False, "", "  Hello\n"),
    ("<think>\nhm, well\n</think>\n\nYes.\n", False, "hm, well", "Yes.\n"),
    ("\n<think>a</think>b", False, "a", "b"),
    ("a</think>\n\nb", True, "a", "b"),
    ("<think>\n\n</think>\n\nYes", False, "", "Yes"),
    ("<think>never ends \n", False, "never ends", ""),
    ("never ends", True, "never ends", ""),
    ("<think>a </th b</think>c</think>", False, "a </th b", "c</think>"),
    ("<thin", False, "", "<thin"),
    ("<thing>", False, "", "<thing>"),
    ("Say <think>a</think>", False, "", "Say <think>a</think>"),
    ("<think>a</think>\n", False, "a", ""),
    ("<think>a\n\nb</think> c", False, "a\n\nb", " c"),
]


def joined(pieces: list[Piece]) -> tuple[str, str]:
    assert all(piece.text for piece in pieces)
    return tuple("".join(p.text for p in pieces if p.kind == k) for k in ("reasoning", "content"))  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize(("text", "thinking", "thoughts", "content"), CASES)
def test_thoughts_and_content(
    text: str, thinking: bool, thoughts: str, content: str, size: int
) -> None:
    splitter = ThoughtSplitter(THINK, thinking=thinking)
    pieces: list[Piece] = []
    for begin in range(0, len(text), size):
        pieces += splitter.push(text[begin : begin + size])
    assert joined([*pieces, *splitter.flush()]) == (thoughts, content)


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "\n", "a", "</thi", " b "])), st.data()
)
def test_pieces_do_not_matter(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    whole = ThoughtSplitter(THINK)
    expected = joined([*whole.push(text), *whole.flush()])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    splitter, pieces = ThoughtSplitter(THINK), list[Piece]()
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        pieces += splitter.push(text[begin:end])
    assert joined([*pieces, *splitter.flush()]) == expected


def test_marks_are_those_of_the_template() -> None:
    assert marks_of("... '</think>' ...") == ("<think>", "</think>")
    assert marks_of("... [THINK] ... [/THINK]") == ("[THINK]", "[/THINK]")
    assert marks_of("nothing") == MARKS[0]


def run(reply: Reply, tokens: list[int]) -> tuple[str, str]:
    pieces = [piece for token in tokens for piece in reply.push(token)]
    return joined([*pieces, *reply.flush()])


def test_no_broken_characters() -> None:
    reply = Reply(TOKENIZER, (), THINK)
    tokens = TOKENIZER.encode("<think>é😀</think>ü日")
    pieces = [piece.text for token in tokens for piece in reply.push(token)]
    assert pieces == ["é", "😀", "ü", "日"]


def test_a_stop_string_ends_it() -> None:
    reply = Reply(TOKENIZER, "STOP", THINK)
    assert run(reply, TOKENIZER.encode("<think>a</think>b STOP c")) == ("a", "b ")
    assert reply.stopped


def test_marks_that_are_special_tokens() -> None:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made: Any = tokenizers.Tokenizer(
        models.BPE(vocab={letter: token for token, letter in enumerate(letters)}, merges=[])
    )
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<think>", "</think>"])
    tokenizer = Tokenizer(made)
    tokens = tokenizer.encode("<think>\nhm é</think>Yes")
    assert tokenizer.is_skipped(tokens[0])
    assert run(Reply(tokenizer, (), THINK), tokens) == ("hm é", "Yes")
    assert run(Reply(tokenizer, (), THINK), tokenizer.encode("Yes")) == ("", "Yes")
