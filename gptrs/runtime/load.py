"""``gptrs.load``: a model by its directory, ready to use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast, overload

import numpy as np

from gptrs.errors import ArgumentError, LoadError
from gptrs.ir.tensor import Tensor, as_array
from gptrs.models import BUNDLED, MODELS
from gptrs.runtime.files import config_from_json, read_json
from gptrs.runtime.weights import Weights
from gptrs.text.generation import complete, generate_tokens, stream_text
from gptrs.text.sampling import GenerationOptions
from gptrs.text.streaming import TextStream
from gptrs.text.tokenizer import Tokenizer


def load(path: str | os.PathLike[str] = "stories") -> LanguageModel:
    """Open a Hugging Face model directory, or a model that ships with gptrs (``"stories"``).

    Weights are read when they are first needed. Raises `LoadError` naming the file and what is
    wrong with it.
    """
    directory = BUNDLED.get(str(path), Path(path))
    if not directory.is_dir():
        raise LoadError(
            f"there is no model directory {str(path)!r}",
            fix=f"give the path of a Hugging Face directory, or one of: {', '.join(BUNDLED)}",
        )
    file = directory / "config.json"
    data = read_json(file)
    kind = data.get("model_type")
    if kind not in MODELS:
        raise LoadError(
            f"{file}: model_type is {kind!r}, expected one of {', '.join(sorted(MODELS))}"
        )
    module, _, attribute = MODELS[kind].partition(":")
    model = getattr(import_module(module), attribute)
    config = config_from_json(model.config_type, data, file)
    weights = Weights(directory, model.renames, model.ignored)
    built = model.build(config, weights.parameter)
    weights.finish(model.unused(config))
    return LanguageModel(directory, kind, built, data)


class LanguageModel:
    """A loaded model that continues text.

    ``module`` is the model itself (call it with tokens and a cache), ``config`` its configuration.
    """

    def __init__(self, directory: Path, kind: str, module: Any, config: dict[str, Any]) -> None:
        self.directory = directory
        self.kind = kind
        self.module = module
        self.config = module.config
        self._eos = _end_of_text(directory, config)
        self._bos = config.get("bos_token_id")
        self._tokenizer: Tokenizer | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, read when it is first needed."""
        if self._tokenizer is None:
            self._tokenizer = Tokenizer.from_directory(self.directory)
        return self._tokenizer

    def forward(self, tokens: object) -> Tensor:
        """Logits [..., tokens, vocabulary] for integer ``tokens`` [tokens] or [batch, tokens]."""
        ids = as_array(tokens)
        ids = np.asarray(tokens) if ids is None else ids
        if ids.ndim not in (1, 2) or ids.dtype.kind not in "iu" or ids.shape[-1] == 0:
            raise ArgumentError(
                f"tokens have shape {ids.shape} and dtype {ids.dtype}, expected integers [tokens]"
                " or [batch, tokens], at least one token"
            )
        if ids.shape[-1] > self.module.context_length:
            raise ArgumentError(
                f"{ids.shape[-1]} tokens do not fit the context of {self.module.context_length}",
                fix="pass fewer tokens",
            )
        logits, _ = self.module(np.atleast_2d(ids))
        return logits[0] if ids.ndim == 1 else logits

    @overload
    def generate(self, prompt: str, **options: Any) -> str: ...
    @overload
    def generate(self, prompt: Sequence[str], **options: Any) -> list[str]: ...

    def generate(self, prompt: str | Sequence[str], **options: Any) -> str | list[str]:
        """The text that follows ``prompt``; of a list of prompts, the text that follows each.

        Options are those of `GenerationOptions`: ``max_tokens`` (to the end of the text or of the
        context), ``temperature`` (0, greedy), ``top_k``, ``top_p``, ``seed``, ``stop``,
        ``ignore_eos``.
        """
        prompts = [prompt] if isinstance(prompt, str) else list(prompt)
        ids = [self._encode(text) for text in prompts]
        texts = complete(self.module, self.tokenizer, ids, _options(options), self._eos)
        return texts[0] if isinstance(prompt, str) else texts

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
        """The text that follows ``prompt``, piece by piece. Options as for `generate`."""
        ids = self._encode(prompt)
        return stream_text(self.module, self.tokenizer, ids, _options(options), self._eos)

    def stream_tokens(self, ids: Sequence[int], **options: Any) -> Iterator[int]:
        """The tokens that follow ``ids``, one by one. Options as for `generate`; ``stop`` strings
        end the stream after the token that completes one."""
        settled = _options(options)
        steps = generate_tokens(self.module, [ids], settled, eos=self._eos)
        return self._until_stop(steps, settled)

    def _until_stop(
        self, steps: Iterator[list[int | None]], options: GenerationOptions
    ) -> Iterator[int]:
        text = TextStream(self.tokenizer, options.stop) if options.stop else None
        for (token,) in steps:
            yield cast("int", token)
            if text is not None:
                text.push(cast("int", token))
                if text.stopped:
                    return

    def _encode(self, prompt: str) -> list[int]:
        if not isinstance(prompt, str):
            raise ArgumentError(f"prompt is a {type(prompt).__name__}, expected a string")
        ids = self.tokenizer.encode(prompt)
        if ids:
            return ids
        if self._bos is None:
            raise ArgumentError("the prompt is empty, and the model has no token to begin with")
        return [self._bos]

    def __repr__(self) -> str:
        count = sum(int(p.size) for p in self.module.parameters().values())
        return f"<{self.kind} {self.directory.name}: {count:,} parameters>"


def _options(options: dict[str, Any]) -> GenerationOptions:
    known = GenerationOptions.__dataclass_fields__
    if unknown := sorted(set(options) - set(known)):
        raise ArgumentError(f"unknown option {unknown[0]!r}", fix=f"use: {', '.join(known)}")
    return GenerationOptions(**options)


def _end_of_text(directory: Path, config: dict[str, Any]) -> int | tuple[int, ...] | None:
    """The tokens that end a text: generation_config.json counts before config.json."""
    file = directory / "generation_config.json"
    given = (read_json(file) if file.exists() else {}).get("eos_token_id")
    if given is None:
        file, given = directory / "config.json", config.get("eos_token_id")
    ids = given if isinstance(given, list) else [given]
    if given is not None and not all(type(i) is int for i in ids):  # pyright: ignore[reportUnknownVariableType]
        raise LoadError(f"{file}: eos_token_id is {given!r}, expected an integer or several")
    return None if given is None else tuple(ids)  # pyright: ignore[reportUnknownArgumentType]
