"""What generate and chat share: checked options, and the language models that they open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from gptrs.errors import ArgumentError

if TYPE_CHECKING:
    from gptrs.cli.running import CacheDtype
    from gptrs.loading.language_model import LanguageModel


def check_options(options: dict[str, Any], draft: str | None) -> None:
    """Raise a usage error for options that no model accepts."""
    from gptrs.text.options import GenerationOptions

    try:
        GenerationOptions(**options, draft=draft)
    except ArgumentError as error:
        raise typer.BadParameter(f"{error.problem}; {error.fix}") from None


def open_language_model(path: str, kv_cache: CacheDtype | None = None) -> LanguageModel:
    """The model of ``path``, with KV caches of this dtype.

    Raises `ArgumentError` for one that continues no text.
    """
    from gptrs.loading.load import load  # the engine loads after the options are known to be good

    opened = load(path, kv_cache_dtype=kv_cache and kv_cache.value)
    if opened.causal_lm is None:
        raise ArgumentError(
            f"{path} is a {opened.kind}, which continues no text",
            fix="gptrs forward --model runs it",
        )
    return opened


def open_draft(path: str | None, kv_cache: CacheDtype | None) -> dict[str, Any]:
    """The option ``draft``, if there is a model that guesses tokens; its cache is as the
    model's."""
    return {} if path is None else {"draft": open_language_model(path, kv_cache)}
