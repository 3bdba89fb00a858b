"""The tokenizer against Hugging Face transformers, and invalid files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from gptrs.errors import ArgumentError, LoadError
from gptrs.text.tokenizer import Tokenizer

CORPUS = ["hello there, hello world", "the world is über schön", "a €uro is 日本 🙂"] * 3
END = "<|endoftext|>"
SPECIAL = 0


def byte_level() -> tokenizers.Tokenizer:
    """A small tokenizer made like the one of GPT-2."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer: Any = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(CORPUS, trainer)
    return made


BACKEND = byte_level()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    BACKEND.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@settings(deadline=None)
@given(st.text())
def test_decode_undoes_encode(text: str) -> None:
    tokenizer = Tokenizer(BACKEND)
    assert tokenizer.decode(tokenizer.encode(text)) == text.replace(END, "")


def test_vocabulary(directory: Path) -> None:
    tokenizer = Tokenizer.from_directory(directory)
    assert tokenizer.vocab_size == len(BACKEND.get_vocab())
    assert tokenizer.token_id(END) == SPECIAL
    assert tokenizer.token_id("not a token") is None


def test_single_tokens_are_spelled() -> None:
    tokenizer = Tokenizer(BACKEND)
    (hello,) = tokenizer.encode(" hello")
    assert tokenizer.spell(hello) == " hello"
    assert (tokenizer.spell(SPECIAL), tokenizer.decode([SPECIAL])) == (END, "")
    assert "\ufffd" in tokenizer.spell(tokenizer.encode("日")[0])
    assert tokenizer.spell(tokenizer.vocab_size) == ""


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "hello", " hello  world\n", "日本🙂 é", f"a{END}b"])
def test_ids_and_text_of_transformers(directory: Path, text: str) -> None:
    transformers = pytest.importorskip("transformers")
    bpe = json.loads(BACKEND.to_str())["model"]
    theirs = transformers.GPT2TokenizerFast(
        vocab=bpe["vocab"], merges=[tuple(pair) for pair in bpe["merges"]]
    )
    ours = Tokenizer.from_directory(directory)
    ids = ours.encode(text)
    assert ids == theirs(text)["input_ids"]
    assert ours.decode(ids) == theirs.decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )


def test_a_special_token_that_the_post_processor_wants(tmp_path: Path) -> None:
    backend = byte_level()
    template: Any = processors.TemplateProcessing(
        single=f"{END} $A", pair=None, special_tokens=[(END, SPECIAL)]
    )
    backend.post_processor = template
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.from_directory(tmp_path)
    assert tokenizer.encode("hello") == [SPECIAL, *Tokenizer(BACKEND).encode("hello")]


def test_prompts_are_neither_cut_nor_padded(tmp_path: Path) -> None:
    backend: Any = byte_level()
    backend.enable_truncation(2)
    backend.enable_padding(length=9)
    backend.save(str(tmp_path / "tokenizer.json"))
    text = "hello there, world"
    ids = Tokenizer.from_directory(tmp_path).encode(text)
    assert ids == Tokenizer(BACKEND).encode(text)
    assert len(ids) > 2


def test_decode_leaves_out_special_and_unknown_ids() -> None:
    tokenizer = Tokenizer(BACKEND)
    unknown = tokenizer.vocab_size + 7
    assert tokenizer.decode([SPECIAL, *tokenizer.encode("hi"), unknown]) == "hi"
    assert tokenizer.is_skipped(SPECIAL)
    assert tokenizer.is_skipped(unknown)
    assert not tokenizer.is_skipped(tokenizer.encode("h")[0])


def test_bytes_only_with_a_byte_fallback_decoder() -> None:
    backend = tokenizers.Tokenizer(
        models.BPE(vocab={"a": 0, "<0xE2>": 1, "<0x82>": 2}, merges=[], byte_fallback=True)
    )
    assert not Tokenizer(backend).is_byte(1)
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    assert [Tokenizer(backend).is_byte(token) for token in range(3)] == [False, True, True]


@pytest.mark.parametrize("ids", [[-1], [2**40], [1.5], ["a"]])
def test_decode_refuses_what_is_no_id(ids: Any) -> None:
    with pytest.raises(ArgumentError, match="ids to decode"):
        Tokenizer(BACKEND).decode(ids)


def test_encode_refuses_half_a_surrogate_pair() -> None:
    with pytest.raises(ArgumentError, match=r"lone surrogate '\\ud83d' at character 2"):
        Tokenizer(BACKEND).encode("ab\ud83d")


def cut_short(file: Path) -> None:
    BACKEND.save(str(file))
    file.write_bytes(file.read_bytes()[:500])


BAD_FILES: list[tuple[Callable[[Path], object], str]] = [
    (lambda file: None, "No such file"),
    (lambda file: file.mkdir(), "directory"),
    (cut_short, "cannot be read"),
    (lambda file: file.write_text(""), "found 0 characters"),
    (lambda file: file.write_text("[]"), "cannot be read"),
    (lambda file: file.write_text("[" + "0," * 2**22 + "0]"), "about 4194305 values, at most"),
    (lambda file: file.write_text("version https://git-lfs.github.com/spec/v1\n"), "git-lfs"),
    (lambda file: file.write_bytes(b"\xff\xfe\x00"), "can't decode byte"),
]


@pytest.mark.parametrize(("write", "found"), BAD_FILES)
def test_a_file_that_cannot_be_used(
    tmp_path: Path, write: Callable[[Path], object], found: str
) -> None:
    file = tmp_path / "tokenizer.json"
    write(file)
    with pytest.raises(LoadError, match=found) as raised:
        Tokenizer.from_directory(tmp_path)
    assert str(file) in raised.value.problem
    assert "expected a tokenizer.json" in raised.value.problem
    assert raised.value.fix


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="No such file"):
        Tokenizer.from_directory(tmp_path / "missing")
