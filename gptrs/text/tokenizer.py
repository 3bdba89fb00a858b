"""Tokenizer: text ↔ token ids, by the ``tokenizer.json`` of a model directory.

A wrapper around the `tokenizers` library with the behaviour of Hugging Face transformers. Files are
untrusted: their size, number of values and expansion (`gptrs.text.growth`) are bounded, and errors
of the library become `LoadError`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from string import hexdigits
from typing import TYPE_CHECKING

from gptrs.errors import ArgumentError, LoadError
from gptrs.extras import needed_for
from gptrs.text.growth import check_growth

if TYPE_CHECKING:  # importing it costs more than the rest of this package
    import tokenizers

_MOST = 2**26  # bytes: the largest of models have 2**25
_MARKS = ",:[{"  # at least one precedes each value and each name
_MOST_MARKS = 2**22  # the library takes 100 bytes for each: the largest of models have 2**21
_EXPECTED = "expected a tokenizer.json as the `tokenizers` library writes it"
_DOWNLOAD_AGAIN = "download the file again: it is cut short, or not the real one"
_CONVERT = (
    "copy tokenizer.json from the model's page; a directory with only vocab.json and merges.txt, "
    "or tokenizer.model, gets one from "
    "transformers.AutoTokenizer.from_pretrained(path).save_pretrained(path)"
)


class Tokenizer:
    """A `tokenizers.Tokenizer` that encodes and decodes as Hugging Face transformers does."""

    def __init__(self, backend: tokenizers.Tokenizer, file: Path | None = None) -> None:
        self._backend = backend
        self._file = file
        added = backend.get_added_tokens_decoder()
        self._special = frozenset(token for token, entry in added.items() if entry.special)
        self._bytes = _byte_tokens(backend)

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """The tokenizer of the model directory ``path``.

        Raises LoadError when its ``tokenizer.json`` is missing, cannot be read, or could make a
        text many times as long.
        """
        file = Path(path) / "tokenizer.json"
        backend = _load(file)
        try:
            check_growth(backend)
        except LoadError as error:
            raise LoadError(f"{file}: {error.problem}", fix=error.fix) from None
        # Left over from the training that wrote the file; a prompt is neither truncated nor padded.
        backend.no_truncation()
        backend.no_padding()
        return cls(backend, file)

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, added ones included."""
        return self._backend.get_vocab_size()

    def token_id(self, token: str) -> int | None:
        """The id of the token spelled ``token`` in the vocabulary, or None."""
        return self._backend.token_to_id(token)

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        """The token ids of ``text``. The tokenizer's own rules add special tokens (at the begin,
        for most that do), unless ``add_special`` is False; those spelled in ``text`` are found.

        Raises ArgumentError when ``text`` holds half of a surrogate pair, and LoadError where the
        tokenizer contradicts itself.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ArgumentError(
                f"the text to encode holds the lone surrogate {text[error.start]!r} at character "
                f"{error.start}, expected Unicode text",
                fix="read the text with errors='replace', or as UTF-8",
            ) from None
        try:
            return self._backend.encode(text, add_special_tokens=add_special).ids
        except BaseException as error:
            raise _unless_ended(error, self._file) from None

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``, without special tokens and ids outside the vocabulary.

        Bytes that are not UTF-8 become U+FFFD. Raises ArgumentError for what is no id at all.
        """
        try:
            return self._backend.decode(ids, skip_special_tokens=True)
        except (OverflowError, TypeError) as error:
            raise ArgumentError(
                f"ids to decode: {error}", fix="pass a list of token ids, integers from 0 up"
            ) from None
        except BaseException as error:
            raise _unless_ended(error, self._file) from None

    def spell(self, token: int) -> str:
        """The text of the id ``token`` alone, special tokens spelled out; bytes that are no whole
        character become U+FFFD, and an id outside the vocabulary nothing."""
        try:
            return self._backend.decode([token], skip_special_tokens=False)
        except BaseException as error:
            raise _unless_ended(error, self._file) from None

    def is_skipped(self, token: int) -> bool:
        """Whether ``decode`` leaves the id ``token`` out: special, or not in the vocabulary."""
        return token in self._special or self._backend.id_to_token(token) is None

    def is_special(self, token: int) -> bool:
        """Whether the id ``token`` is a special token of the tokenizer."""
        return token in self._special

    def is_byte(self, token: int) -> bool:
        """Whether the id ``token`` is a byte, whose text depends on the bytes around it.

        A ByteFallback decoder turns a run of byte tokens into text if all of it is UTF-8, and
        otherwise every byte of it into U+FFFD.
        """
        return token in self._bytes


def _load(file: Path) -> tokenizers.Tokenizer:
    with needed_for(f"reading {file}"):
        import tokenizers

    if file.exists() and not file.is_file():  # a pipe would be waited for
        raise LoadError(f"{file}: found no file, {_EXPECTED}", fix=_CONVERT)
    try:
        if (size := file.stat().st_size) > _MOST:
            found = f"{size} bytes, at most {_MOST} of which are read"
            raise LoadError(f"{file}: found {found}, {_EXPECTED}", fix=_DOWNLOAD_AGAIN)
        text = file.read_text(encoding="utf-8")
        marks = sum(map(text.count, _MARKS)) if len(text) > _MOST_MARKS else 0
        if marks > _MOST_MARKS:
            found = f"about {marks} values, at most {_MOST_MARKS} of which are read"
            raise LoadError(f"{file}: found {found}, {_EXPECTED}", fix=_DOWNLOAD_AGAIN)
    except OSError as error:
        raise LoadError(f"{file}: found {error.strerror}, {_EXPECTED}", fix=_CONVERT) from None
    except UnicodeDecodeError as error:
        raise LoadError(f"{file}: found {error}, {_EXPECTED}", fix=_DOWNLOAD_AGAIN) from None
    try:
        return tokenizers.Tokenizer.from_str(text)
    except BaseException as error:
        found = f"{len(text)} characters beginning with {text[:32]!r} that cannot be read"
        raise _unless_ended(error, file, found) from None


def _unless_ended(
    error: BaseException, file: Path | None, found: str = "entries that contradict each other"
) -> BaseException:
    """The `LoadError` for an error of the library; exceptions that end the program are returned.

    The library raises a bare Exception for a bad file, and a panic that is no Exception where it
    did not foresee one.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError):
        return error
    place = "the tokenizer" if file is None else file
    return LoadError(f"{place}: found {found} ({error}), {_EXPECTED}", fix=_DOWNLOAD_AGAIN)


def _byte_tokens(backend: tokenizers.Tokenizer) -> frozenset[int]:
    decoder = backend.decoder
    if decoder is None or b'"ByteFallback"' not in decoder.__getstate__():
        return frozenset()
    spellings = (f"<0x{high}{low}>" for high in hexdigits for low in hexdigits)
    ids = (backend.token_to_id(spelling) for spelling in spellings)
    return frozenset(token for token in ids if token is not None)
