"""Streaming: the joined pieces are the decoded text up to its first stop string."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from gptrs.errors import ArgumentError
from gptrs.text.streaming import TextStream
from gptrs.text.tokenizer import Tokenizer

CORPUS = ["hello there, hello world", "the world is über schön", "a €uro is 日本 🙂🙂"] * 3
SPECIAL = "<s>"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_level() -> Tokenizer:
    """Like the tokenizer of GPT-2: every token is a string of bytes."""
    made: Any = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=[SPECIAL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(CORPUS, trainer)
    made.add_tokens(["<tool>", "\ufffd!"])
    return Tokenizer(made)


def metaspace(decoder: decoders.Decoder) -> Tokenizer:
    """Like the tokenizer of Llama 2: words begin with ▁, what is not in the vocabulary is bytes."""
    words = ["▁", "▁▁", "a", "b", "▁a", "▁he", "llo", "▁is", "é", "\ufffd", "▁a▁b"]
    scores = [(token, -float(index)) for index, token in enumerate([SPECIAL, *BYTES, *words])]
    made: Any = tokenizers.Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    made.decoder = decoder
    made.add_special_tokens([SPECIAL])
    return Tokenizer(made)


BYTE_LEVEL = byte_level()
LLAMA = metaspace(
    decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
)
METASPACE = metaspace(decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]))
GEMMA = metaspace(
    decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
)
WORD_PIECE = metaspace(decoders.WordPiece(prefix="▁"))
TOKENIZERS = {
    "byte_level": BYTE_LEVEL,
    "llama": LLAMA,
    "metaspace": METASPACE,
    "gemma": GEMMA,
    "word_piece": WORD_PIECE,
}
every_tokenizer = pytest.mark.parametrize("name", TOKENIZERS)


def ids_of(tokenizer: Tokenizer) -> st.SearchStrategy[list[int]]:
    """Any ids, often those of long runs of bytes and of few different tokens."""
    size = tokenizer.vocab_size
    few = [tokenizer.token_id(token) for token in (SPECIAL, "▁", "a", "<0xE2>", "<0x82>", "<0xAC>")]
    some = st.sampled_from([token for token in few if token is not None])
    characters = st.sampled_from("a b€é🙂 \n").map(tokenizer.encode)
    one = st.one_of(st.integers(0, size + 2).map(lambda token: [token]), some.map(lambda t: [t]))
    parts = st.lists(st.one_of(one, characters), max_size=60)
    return parts.map(lambda lists: [token for part in lists for token in part])


def cut(text: str, stops: Sequence[str]) -> str:
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(found)] if found else text


def pieces(tokenizer: Tokenizer, ids: Sequence[int], stops: Sequence[str] = ()) -> list[str]:
    stream = TextStream(tokenizer, stops)
    pushed = [stream.push(token) for token in ids]
    return [*pushed, stream.flush()]


@pytest.mark.slow
@every_tokenizer
@settings(deadline=None)
@given(data=st.data())
def test_any_ids_and_stops(name: str, data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[name]
    ids = data.draw(ids_of(tokenizer))
    text = tokenizer.decode(ids)
    places = st.integers(0, max(len(text) - 1, 0))
    inside = st.tuples(places, st.integers(1, 6)).map(lambda at: text[at[0] : at[0] + at[1]])
    stops = data.draw(st.lists(st.one_of(inside, st.text("ab €\ufffd", max_size=4)), max_size=4))
    stops = [stop for stop in stops if stop]
    assert "".join(pieces(tokenizer, ids, stops)) == cut(text, stops)


@every_tokenizer
@settings(deadline=None)
@given(text=st.text())
@example("ab" * 40 + "€🙂" * 20 + "   ")
def test_any_text(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    ids = tokenizer.encode(text)
    assert "".join(pieces(tokenizer, ids)) == tokenizer.decode(ids)


@pytest.mark.slow
@settings(deadline=None)
@given(text=st.text("ab", max_size=40), stops=st.lists(st.text("ab", min_size=1), max_size=3))
@example("abc" * 9, ["abcd", "bc"])
@example("aab", ["aaab", "ab"])
def test_stop_strings_that_overlap(text: str, stops: list[str]) -> None:
    assert "".join(pieces(GEMMA, GEMMA.encode(text), stops)) == cut(
        GEMMA.decode(GEMMA.encode(text)), stops
    )


@settings(deadline=None)
@given(st.text())
def test_complete_characters_come_at_once(text: str) -> None:
    ids = BYTE_LEVEL.encode(text.replace("\ufffd", ""))
    streamed = accumulate(pieces(BYTE_LEVEL, ids)[:-1])
    for count, so_far in enumerate(streamed, 1):
        assert so_far == BYTE_LEVEL.decode(ids[:count]).rstrip("\ufffd")


def test_no_half_characters() -> None:
    euro = [BYTE_LEVEL.token_id(letter) for letter in "âĤ¬"]  # E2 82 AC, as byte-level BPE spells
    ids = [token for token in euro if token is not None]
    assert pieces(BYTE_LEVEL, ids) == ["", "", "€", ""]
    assert pieces(BYTE_LEVEL, ids[:2]) == ["", "", "\ufffd"]


def test_a_run_of_bytes_comes_when_it_ends() -> None:
    euro, a = [BYTES.index(f"<0x{byte:02X}>") + 1 for byte in "€".encode()], LLAMA.token_id("a")
    assert a is not None
    assert pieces(LLAMA, [a, *euro, a]) == ["a", "", "", "", "€a", ""]
    # One byte that is not UTF-8 makes the decoder give up on the whole run.
    assert pieces(LLAMA, [*euro, BYTES.index("<0xFF>") + 1, a])[4] == "\ufffd" * 4 + "a"


@pytest.mark.parametrize("name", ["llama", "metaspace", "word_piece"])
def test_many_tokens_without_text_do_not_begin_the_text_anew(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    space_a, end = tokenizer.token_id("▁a"), tokenizer.token_id(SPECIAL)
    assert space_a is not None
    assert end is not None
    ids = [space_a, *[end, tokenizer.vocab_size] * 40, space_a]
    assert "".join(pieces(tokenizer, ids)) == tokenizer.decode(ids)


def test_the_start_of_a_stop_string_is_held_back() -> None:
    ids = [token for letter in "xabxabc!" for token in BYTE_LEVEL.encode(letter)]
    stream = TextStream(BYTE_LEVEL, "abc")
    assert [stream.push(token) for token in ids] == ["x", "", "", "abx", "", "", "", ""]
    assert stream.stopped
    assert stream.flush() == ""


def test_the_start_of_a_stop_string_comes_when_the_text_ends() -> None:
    ids = [token for letter in "xab" for token in BYTE_LEVEL.encode(letter)]
    stream = TextStream(BYTE_LEVEL, ("abc",))
    assert [stream.push(token) for token in ids] == ["x", "", ""]
    assert (stream.flush(), stream.stopped) == ("ab", False)


def test_a_stop_string_that_only_the_end_decides() -> None:
    stream = TextStream(BYTE_LEVEL, ["abcd", "bc"])
    assert [stream.push(token) for letter in "abc" for token in BYTE_LEVEL.encode(letter)] == [
        ""
    ] * 3
    assert not stream.stopped
    assert (stream.flush(), stream.stopped) == ("a", True)


@pytest.mark.parametrize("stop", ["", ["a", ""], 3, b"a"])
def test_a_stop_that_is_no_string(stop: Any) -> None:
    with pytest.raises(ArgumentError, match="stop is"):
        TextStream(BYTE_LEVEL, stop)


class Counting(Tokenizer):
    """Keeps how many tokens it decoded, call by call."""

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        super().__init__(backend)
        self.decoded: list[int] = []

    def decode(self, ids: Sequence[int]) -> str:
        self.decoded.append(len(ids))
        return super().decode(ids)


@pytest.mark.parametrize("name", ["byte_level", "llama"])
@pytest.mark.parametrize("token", ["a", "▁", "ÿ", "\ufffd!", "<0xFF>", "<0x0A>", SPECIAL])
def test_the_work_per_token_does_not_grow(name: str, token: str) -> None:
    plain = TOKENIZERS[name]
    repeated = plain.token_id(token)
    ids = [plain.vocab_size if repeated is None else repeated] * 500
    counting = Counting(plain._backend)  # pyright: ignore[reportPrivateUsage]
    assert "".join(pieces(counting, ids, ["a" * 40 + "b"])) == plain.decode(ids)
    assert sum(counting.decoded) <= 30 * len(ids)
