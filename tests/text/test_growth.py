"""Bounds on how much a tokenizer.json may expand a text."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from gptrs.errors import LoadError
from gptrs.text import growth, tokenizer
from gptrs.text.growth import MOST, check_growth

NORMALIZERS = growth._NORMALIZERS  # pyright: ignore[reportPrivateUsage]
PRE_TOKENIZERS = growth._PRE_TOKENIZERS  # pyright: ignore[reportPrivateUsage]
of_step: Callable[[Any, Any], float] = growth._growth  # pyright: ignore[reportPrivateUsage]


@cache
def letters() -> list[str]:
    """The letters up to U+2FFF, and those above that a normalizer may change."""
    beyond = map(chr, range(0x3000, sys.maxunicode + 1))
    changed = (x for x in beyond if unicodedata.decomposition(x) or x.lower() != x or x == "가")
    return [*map(chr, range(0x3000)), *changed]


def replace(pattern: str | Regex, content: str) -> Any:
    return normalizers.Replace(pattern, content)


def said(step: Any) -> Any:
    return json.loads(step.__getstate__())


def blank(**parts: Any) -> Tokenizer:
    made = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    for name, part in parts.items():
        setattr(made, name, part)
    return made


STEPS: list[Any] = [
    *(normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD()),
    *(normalizers.Lowercase(), normalizers.Strip(), normalizers.StripAccents(), normalizers.Nmt()),
    *(normalizers.BertNormalizer(strip_accents=True), normalizers.ByteLevel()),
    *(normalizers.Prepend("▁"), replace(" ", "▁"), replace("a", ""), replace("", "b")),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_no_letter_becomes_more_than_the_bound(step: Any) -> None:
    bound = of_step(said(step), NORMALIZERS)
    for letter in letters():
        assert len(step.normalize_str(letter)) <= bound, letter


EXPRESSIONS = [
    *("a", "a*", "a?", r"\s+", " {2,}", ".", ".*", "(?:a|)", "^", "$", r"\b", r"\B", "(?=a)"),
    *(
        "(?<!b)",
        r".|^",
        r"a\K",
        r"\G",
        "[^a]",
        "(?i:A)",
        r"(a)?\1",
        "a|b",
        "(?>a*)",
        r"\z",
        "(?!.)",
    ),
]


@pytest.mark.slow
@given(st.sampled_from(EXPRESSIONS), st.sampled_from(["", "a", "\n", "ab", "€"]), st.text("ab \n€"))
def test_no_expression_makes_more_than_the_bound(expression: str, content: str, text: str) -> None:
    step = replace(Regex(expression), content)
    grown, bound = step.normalize_str(text), of_step(said(step), NORMALIZERS)
    assert len(grown) <= bound * len(text)


@given(st.text("a b\n€é🙂", min_size=1))
def test_no_pre_tokenizer_makes_more_than_the_bound(text: str) -> None:
    for step in (
        pre_tokenizers.ByteLevel(),
        pre_tokenizers.ByteLevel(use_regex=False),
        pre_tokenizers.Metaspace(),
        pre_tokenizers.Metaspace(replacement="_", prepend_scheme="first"),
    ):
        pieces = step.pre_tokenize_str(text)
        grown = sum(len(piece) for piece, _ in pieces)
        assert grown <= of_step(said(step), PRE_TOKENIZERS) * len(text)


def test_bytes_of_bytes_double() -> None:
    """Why steps that are harmless alone have a bound."""
    doubling = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(use_regex=False)] * 12)
    grown = sum(len(piece) for piece, _ in doubling.pre_tokenize_str("é"))
    assert grown > 2**11


def of_t5() -> Any:
    """A table as that of T5: the longest that a letter becomes has 33 bytes."""
    texts = b"".join(text.encode() + b"\0" for text in ("a", " ", "صلى الله عليه وسلم"))
    table = (1028).to_bytes(4, "little") + bytes(1028) + texts
    return normalizers.Precompiled(table)


KNOWN: dict[str, Any] = {
    "GPT-2": {"pre_tokenizer": pre_tokenizers.ByteLevel(), "decoder": decoders.ByteLevel()},
    "Llama": {
        "normalizer": normalizers.Sequence([normalizers.Prepend("▁"), replace(" ", "▁")]),
        "decoder": decoders.Sequence(
            [
                decoders.Replace("▁", " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
                decoders.Strip(" ", 1, 0),
            ]
        ),
    },
    "BERT": {"normalizer": normalizers.BertNormalizer(), "decoder": decoders.WordPiece()},
    "ALBERT": {
        "normalizer": normalizers.Sequence(
            [
                *(replace("``", '"'), replace("''", '"'), normalizers.NFKD()),
                *(
                    normalizers.StripAccents(),
                    normalizers.Lowercase(),
                    replace(Regex(" {2,}"), " "),
                ),
            ]
        ),
        "pre_tokenizer": pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        ),
    },
    "CLIP": {
        "normalizer": normalizers.Sequence(
            [normalizers.NFC(), replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
        )
    },
    "forty signs of a script": {
        "normalizer": normalizers.Sequence([replace("ي", "ی"), replace(Regex("ك+"), "ک")] * 20)
    },
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_models_use_is_within_the_bound(name: str) -> None:
    check_growth(blank(**KNOWN[name]))


def template(times: int) -> dict[str, Any]:
    piece = {"Sequence": {"id": "A", "type_id": 0}}
    pair = [piece, {"Sequence": {"id": "B", "type_id": 0}}]
    return {
        "type": "TemplateProcessing",
        "single": [piece] * times,
        "pair": pair,
        "special_tokens": {},
    }


BOMBS: dict[str, tuple[str, Any]] = {
    "letters": ("normalizer", {"pattern": {"String": "a"}, "content": "aa", "type": "Replace"}),
    "expression": ("normalizer", {"pattern": {"Regex": "."}, "content": "aa", "type": "Replace"}),
    "starts": ("normalizer", {"pattern": {"Regex": ".|^"}, "content": "\n", "type": "Replace"}),
    "bytes": ("normalizer", {"type": "ByteLevel"}),
    "prefix": ("normalizer", {"type": "Prepend", "prepend": "a" * 20}),
    "words": (
        "pre_tokenizer",
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False},
    ),
    "template": ("post_processor", template(2)),
    "decoder": ("decoder", {"pattern": {"String": "a"}, "content": "aa", "type": "Replace"}),
    "suffix": ("decoder", {"type": "BPEDecoder", "suffix": ""}),
}
LISTS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", BOMBS)
def test_what_multiplies_is_refused(kind: str, nested: bool, tmp_path: Path) -> None:
    part, step = BOMBS[kind]

    def several(steps: list[Any]) -> dict[str, Any]:
        return {"type": "Sequence", LISTS[part]: steps}

    whole = several([several([step] * 5)] * 6) if nested else several([step] * 30)
    text = json.loads(blank().to_str()) | {part: whole}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(text))
    with pytest.raises(LoadError) as found:
        tokenizer.Tokenizer.from_directory(tmp_path)
    assert str(found.value).startswith(f"{file}: {part}: its steps (30) could make a text ")
    assert f"expected at most {MOST} times" in str(found.value)
