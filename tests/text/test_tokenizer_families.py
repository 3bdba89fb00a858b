"""Tokenizers made as those of known families: ids of transformers, streams without broken text."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from gptrs.text.chat_template import ChatTemplate
from gptrs.text.reply import MARKS, Reply
from gptrs.text.streaming import TextStream
from gptrs.text.tokenizer import Tokenizer
from tests.support.chat_templates import CONVERSATIONS, TEMPLATES
from tests.support.family_tokenizers import FAMILIES

TEXTS = [
    *(
        "",
        "hello world",
        " the  world\n\n is",
        "été über 日本語",
        "😀👩‍👩‍👧 é",
        "a\tb\r\nc",
        "e\u0301",
    ),
    *(
        "<s>hello</s>",
        "<|im_start|>user\nhello<|im_end|>",
        "[INST] the [/INST]",
        "<think>he</think>",
    ),
    "<|user|>\n hello<|end|>\n",
]
TEMPLATE_OF = {"llama-2": "mistral"}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def tokenizer(family: str, tmp_path: Path) -> Tokenizer:
    FAMILIES[family]().save(str(tmp_path / "tokenizer.json"))
    return Tokenizer.from_directory(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("tokenizer")
def test_ids_of_transformers(family: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    transformers = pytest.importorskip("transformers")
    special = {n: token for n, token in SPECIAL.items() if tokenizer.token_id(token) is not None}
    theirs: Any = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json"), **special
    )
    for text in TEXTS:
        ids = theirs(text)["input_ids"]
        assert tokenizer.encode(text) == ids
        assert tokenizer.encode(text, add_special=False) == theirs.encode(
            text, add_special_tokens=False
        )
        assert tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    source = TEMPLATES[TEMPLATE_OF.get(family, family)]
    for messages in (CONVERSATIONS["one"], CONVERSATIONS["three"]):
        text = ChatTemplate(source, "here", special).render(messages, add_generation_prompt=True)
        expected = theirs.apply_chat_template(
            messages, chat_template=source, add_generation_prompt=True
        )
        assert tokenizer.encode(text, add_special=False) == expected["input_ids"]


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_are_whole(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    for stream in (TextStream(tokenizer), Reply(tokenizer, (), MARKS[1])):
        pieces = [piece for token in ids for piece in _texts(stream.push(token))]
        pieces += _texts(stream.flush())
        assert "".join(pieces) == tokenizer.decode(ids)
        assert not any("\ufffd" in piece for piece in pieces)


def test_pieces_of_any_tokens(tokenizer: Tokenizer) -> None:
    """Also of tokens that no text has: broken characters are where `decode` has them."""
    rng = random.Random(1)
    for _ in range(60):
        ids = [rng.randrange(tokenizer.vocab_size) for _ in range(rng.randrange(30))]
        stream = TextStream(tokenizer)
        pieces = [*(stream.push(token) for token in ids), stream.flush()]
        assert "".join(pieces) == tokenizer.decode(ids)


def _texts(pieces: Any) -> list[str]:
    return [pieces] if isinstance(pieces, str) else [piece.text for piece in pieces]
