"""Small tokenizers that are made as those of known families: steps, added and special tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

WORDS = ["the", "he", "llo", "hello", "wor", "ld", "world", "is", "um"]
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _pairs(words: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The tokens and merges that make ``words``, letter by letter."""
    tokens: list[str] = []
    merges: list[tuple[str, str]] = []
    for word in words:
        for end in range(2, len(word) + 1):
            if word[:end] not in tokens:
                tokens.append(word[:end])
                merges.append((word[: end - 1], word[end - 1]))
    return tokens, merges


def _byte_level(*, ignore_merges: bool) -> Any:
    made, merges = _pairs([*WORDS, "Ġthe", "Ġwor", "Ġis"])
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: n for n, token in enumerate(dict.fromkeys([*letters, *made]))}
    backend: Any = tokenizers.Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, ignore_merges=ignore_merges)
    )
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    return backend


def _sentence_piece() -> Any:
    """BPE over letters with a mark for spaces; other letters are bytes."""
    made, merges = _pairs([*WORDS, "▁the", "▁wor", "▁is"])
    singles = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    letters = [*map(chr, range(33, 127)), "▁", "é", "ü"]
    vocabulary = {token: n for n, token in enumerate(dict.fromkeys([*singles, *letters, *made]))}
    backend: Any = tokenizers.Tokenizer(
        models.BPE(
            vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
        )
    )
    backend.add_special_tokens(["<unk>", "<s>", "</s>"])
    return backend


def _begins_with(backend: Any, token: str) -> None:
    backend.post_processor = processors.TemplateProcessing(
        single=f"{token} $A", pair=None, special_tokens=[(token, backend.token_to_id(token))]
    )


def llama_3() -> Any:
    backend = _byte_level(ignore_merges=True)
    marks = ("begin_of_text", "start_header_id", "end_header_id", "eot_id")
    backend.add_special_tokens([f"<|{mark}|>" for mark in marks])
    _begins_with(backend, "<|begin_of_text|>")
    return backend


def qwen_3() -> Any:
    backend = _byte_level(ignore_merges=False)
    backend.normalizer = normalizers.NFC()
    backend.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    marks = ("<think>", "</think>", "<tool_call>", "</tool_call>")
    backend.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in marks])
    return backend


def llama_2() -> Any:
    backend = _sentence_piece()
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [
            *(decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()),
            decoders.Strip(" ", 1, 0),
        ]
    )
    _begins_with(backend, "<s>")
    return backend


def mistral() -> Any:
    backend = _sentence_piece()
    backend.add_special_tokens(["[INST]", "[/INST]"])
    backend.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    backend.decoder = decoders.Sequence(
        [
            *(decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()),
            decoders.Strip(" ", 1, 0),
        ]
    )
    _begins_with(backend, "<s>")
    return backend


def gemma() -> Any:
    backend = _sentence_piece()
    backend.add_special_tokens(["<start_of_turn>", "<end_of_turn>"])
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    _begins_with(backend, "<s>")
    return backend


def phi_3() -> Any:
    backend = llama_2()
    marks = ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
    backend.add_special_tokens([AddedToken(m, rstrip=True, normalized=False) for m in marks])
    return backend


FAMILIES: dict[str, Callable[[], Any]] = {
    "llama-3": llama_3,
    "qwen-3": qwen_3,
    "llama-2": llama_2,
    "mistral": mistral,
    "gemma": gemma,
    "phi-3": phi_3,
}
