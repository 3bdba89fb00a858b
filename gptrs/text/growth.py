"""Bounds on the expansion of text by a ``tokenizer.json``, against hostile files.

A normalizer step may replace one letter by two: thirty such steps, in a file of 3 KB, make 2³⁰
letters of one. Each step has an upper bound on the letters (or tokens) that it makes of one; the
bounds of consecutive steps multiply, and the product must not exceed `MOST`. Checked when a
tokenizer is loaded.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from gptrs.errors import LoadError

if TYPE_CHECKING:
    import tokenizers

MOST = 256
"""The largest expansion factor that is accepted; those of known models stay below 100."""

Rule: TypeAlias = float | Callable[[dict[str, Any]], float]

# Zero-width assertions, whose matches depend on the surroundings: lookaround, line and word ends.
_LOOKS = re.compile(r"\(\?(?![:imsx-])|\(\*|(?<!\[)\^|\$|\\[AzZbBGKyY]")


def _replace(step: dict[str, Any]) -> float:
    pattern, content = step["pattern"], len(step["content"])
    if "String" in pattern and (replaced := len(pattern["String"])):
        return max(1, content / replaced)
    expression = pattern.get("Regex", "")
    if expression and not _LOOKS.search(expression) and not _matches_nothing(expression):
        return max(1, content)
    return 1 + 2 * content  # before each letter, and at the end


def _matches_nothing(expression: str) -> bool:
    """Whether ``expression`` may match the empty text."""
    from tokenizers import Regex, normalizers

    try:
        between: Any = normalizers.Replace(Regex(f"<(?:{expression})>"), "")
    except Exception:  # such as an expression that ends with a comment
        return True
    return not between.normalize_str("<>")


def _precompiled(step: dict[str, Any]) -> float:
    """The charsmap ends with the replacement texts, each terminated by a zero byte."""
    table = b64decode(step["precompiled_charsmap"] or "")
    texts = table[4 + int.from_bytes(table[:4], "little") :].split(b"\0")
    return max(1, *(len(text.decode(errors="replace")) for text in texts))


def _template(step: dict[str, Any]) -> float:
    """The sequences and special tokens of the template for a single text."""
    special = {name: len(token["ids"]) for name, token in step["special_tokens"].items()}
    pieces: list[dict[str, Any]] = step["single"]
    return sum(
        special.get(piece["SpecialToken"]["id"], 0) if "SpecialToken" in piece else 1
        for piece in pieces
    )


# Tests measure these over the letters of Unicode. An unlisted step counts 2.
_NORMALIZERS: dict[str, Rule] = {
    "Replace": _replace,
    "Prepend": lambda step: 1 + len(step["prepend"]),
    "Precompiled": _precompiled,
    "ByteLevel": 4,
    "BertNormalizer": 4,
    "NFC": 3,
    "NFD": 4,
    "NFKC": 18,
    "NFKD": 18,
    **dict.fromkeys(("Strip", "StripAccents", "Nmt"), 1),
}
_PRE_TOKENIZERS: dict[str, Rule] = {
    "ByteLevel": 5,  # the bytes of a letter, and a space before each word
    **dict.fromkeys(("Split", "Whitespace", "WhitespaceSplit", "CharDelimiterSplit"), 1),
    **dict.fromkeys(("Digits", "Punctuation", "BertPreTokenizer", "UnicodeScripts"), 1),
}
_POST_PROCESSORS: dict[str, Rule] = {
    "TemplateProcessing": _template,
    "ByteLevel": 1,
    **dict.fromkeys(("BertProcessing", "RobertaProcessing"), 3),
}
_DECODERS: dict[str, Rule] = {
    "Replace": _replace,
    **dict.fromkeys(("ByteFallback", "ByteLevel", "Fuse", "Strip", "Metaspace", "CTC"), 1),
}
_PARTS = {
    "normalizer": ("normalizers", _NORMALIZERS),
    "pre_tokenizer": ("pretokenizers", _PRE_TOKENIZERS),
    "post_processor": ("processors", _POST_PROCESSORS),
    "decoder": ("decoders", _DECODERS),
}


def check_growth(backend: tokenizers.Tokenizer) -> None:
    """Raise `LoadError` for a part whose expansion may exceed `MOST`."""
    for name, (sequence, rules) in _PARTS.items():
        if (part := getattr(backend, name)) is None:
            continue
        steps = _steps(json.loads(part.__getstate__()), sequence)
        if (grown := prod(_growth(step, rules) for step in steps)) > MOST:
            raise LoadError(
                f"{name}: its steps ({len(steps)}) could make a text {grown:.3g} times as long,"
                f" expected at most {MOST} times",
                fix="take the tokenizer.json of the model's own page",
            )


def _steps(step: dict[str, Any], sequence: str) -> list[dict[str, Any]]:
    """The steps of a part, nested sequences flattened."""
    if step["type"] != "Sequence":
        return [step]
    return [each for inner in step[sequence] for each in _steps(inner, sequence)]


def _growth(step: dict[str, Any], rules: dict[str, Rule]) -> float:
    rule = rules.get(step["type"], 2)
    return float(rule(step) if callable(rule) else rule)
