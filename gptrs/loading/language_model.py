"""`LanguageModel`: the handle of a loaded language model, text → text.

Combines the model, its tokenizer (read on first use) and the generation loop
(`gptrs.text.generation`); with its chat template, messages → an answer (`gptrs.text.chat`).
End-of-text tokens come from generation_config.json, else config.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.chat_files import ChatFiles, read_chat_files
from gptrs.formats.generation_config import (
    end_tokens_of,
    first_token_of,
    generation_defaults,
    read_generation_config,
)
from gptrs.formats.model_files import ModelFiles
from gptrs.ir.tensor import Tensor, as_array
from gptrs.jit.overrides import Policies
from gptrs.loading.loaded_model import LoadedModel
from gptrs.loading.weights import Weights
from gptrs.text.causal_model import CausalModel
from gptrs.text.chat import ChatCompletion, ChatModel, ChatStream, chat_request
from gptrs.text.completion import Completion, complete, stream_text
from gptrs.text.configured_model import ConfiguredModel, layout_for
from gptrs.text.generation import end_tokens, generate_logprobs, generate_tokens
from gptrs.text.logprobs import TokenLogprobs
from gptrs.text.options import GenerationOptions
from gptrs.text.session import PrefixCache
from gptrs.text.streaming import TextStream
from gptrs.text.tokenizer import Tokenizer

T = TypeVar("T")


class LanguageModel(LoadedModel):
    """A loaded model that continues text.

    ``module`` is the model itself (call it with tokens and a cache), ``config`` its configuration.
    ``cache_layout`` is how its KV caches are stored. Text and `forward` follow the checkpoint's
    ``runtime.functional_overrides``.
    """

    def __init__(
        self,
        files: ModelFiles,
        kind: str,
        module: Any,
        weights: Weights,
        overrides: Policies = (),
        kv_cache_dtype: object = None,
    ) -> None:
        super().__init__(files, kind, module, weights)
        self.cache_layout = layout_for(module, kv_cache_dtype)
        self._configured = ConfiguredModel(module, self.cache_layout, overrides)
        self._model: CausalModel = self._configured
        made = read_generation_config(files.directory)
        self._eos = end_tokens_of(made, files.config, files.config_file)
        self._bos = first_token_of(made, files.config, files.config_file)
        self._generation_config = made
        self._tokenizer: Tokenizer | None = None
        self._chat: ChatFiles | None = None
        self._chats: dict[str, ChatModel] = {}  # by the text of the template

    def set_backend(self, name: str | None) -> None:
        """Run the model on the backend ``name`` from now on; None: on that of each call."""
        super().set_backend(name)
        self._configured.backend = name

    @property
    def generator(self) -> CausalModel:
        """The model as text is generated with it: under the policies of its checkpoint, with its
        layout of KV caches."""
        return self._model

    @property
    def end_tokens(self) -> frozenset[int]:
        """The tokens that end a text."""
        return end_tokens(self._eos, GenerationOptions())

    @property
    def has_tokenizer(self) -> bool:
        """Whether the directory has a tokenizer; without one, only methods on token ids work."""
        return (self.directory / "tokenizer.json").exists()

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, read on first use. Raises `LoadError` if it cannot be used."""
        if self._tokenizer is None:
            if not self.directory.is_dir():
                raise LoadError(
                    f"{self.place} has no tokenizer",
                    fix="say where one is: gptrs.from_torch(module, directory=...)",
                )
            made = Tokenizer.from_directory(self.directory)
            config_file = self.files.config_file.name
            if made.vocab_size > self.module.vocab_size:
                raise LoadError(
                    f"{self.directory / 'tokenizer.json'} has {made.vocab_size} tokens, expected at"
                    f" most {self.module.vocab_size}, the vocab_size of {config_file}",
                    fix="check that tokenizer.json belongs to this model",
                )
            self._tokenizer = made
        return self._tokenizer

    def forward(self, tokens: object) -> Tensor:
        """Logits [..., tokens, vocabulary] for integer ``tokens`` [tokens] or [batch, tokens].

        Raises `ArgumentError` for other inputs, and for tokens that do not fit the model.
        """
        ids = _as_ids(tokens)
        for wrong in ids[(ids < 0) | (ids >= self.module.vocab_size)].flat[:1]:
            raise ArgumentError(
                f"tokens hold {wrong}, expected ids from 0 to {self.module.vocab_size - 1}",
                fix="encode the text with the tokenizer of this model",
            )
        if ids.shape[-1] > self.module.context_length:
            raise ArgumentError(
                f"{ids.shape[-1]} tokens do not fit the context of {self.module.context_length}",
                fix="pass fewer tokens",
            )
        logits, _ = self._model(np.atleast_2d(ids))
        return logits[0] if ids.ndim == 1 else logits

    @overload
    def generate(self, prompt: str, **options: Any) -> str: ...
    @overload
    def generate(self, prompt: list[str] | tuple[str, ...], **options: Any) -> list[str]: ...

    def generate(
        self, prompt: str | list[str] | tuple[str, ...], **options: Any
    ) -> str | list[str]:
        """The text that follows ``prompt``; of a list of prompts, the text that follows each.

        Options are those of `GenerationOptions`: ``max_tokens`` (to the end of the text or of the
        context), ``temperature`` (0, greedy), ``top_k``, ``top_p``, ``min_p``,
        ``repetition_penalty``, ``presence_penalty``, ``frequency_penalty``, ``logit_bias``,
        ``context_shift``, ``prompt_lookup``, ``draft``, ``draft_tokens``, ``prefill_chunk``,
        ``seed``, ``stop``, ``ignore_eos``. ``logprobs`` is one of `complete`.
        """
        _refuse_logprobs(options, "generate gives text", "complete")
        done = self.complete(prompt, **options)
        return [each.text for each in done] if isinstance(done, list) else done.text

    @overload
    def complete(self, prompt: str, **options: Any) -> Completion: ...
    @overload
    def complete(self, prompt: list[str] | tuple[str, ...], **options: Any) -> list[Completion]: ...

    def complete(
        self, prompt: str | list[str] | tuple[str, ...], **options: Any
    ) -> Completion | list[Completion]:
        """The text that follows ``prompt`` with its tokens, why it ended and, with ``logprobs=n``,
        how likely each token was; of a list of prompts, one for each. Options as for `generate`."""
        several = isinstance(prompt, list | tuple)
        settled = _options(options)
        ids = [self._encode(text) for text in (prompt if several else [prompt])]
        done = complete(self._model, self.tokenizer, ids, settled, self._eos)
        return done if several else done[0]

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
        """The text that follows ``prompt``, piece by piece. Options as for `generate`."""
        _refuse_logprobs(options, "stream gives text", "stream_logprobs")
        settled = _options(options)
        ids = self._encode(prompt)
        return stream_text(self._model, self.tokenizer, ids, settled, self._eos)

    def stream_tokens(self, ids: Sequence[int], **options: Any) -> Iterator[int]:
        """The tokens that follow ``ids``, one by one. Options as for `generate`; ``stop`` strings
        end the stream after the token that completes one."""
        _refuse_logprobs(options, "stream_tokens gives ids", "stream_logprobs")
        settled = _options(options)
        steps = generate_tokens(self._model, [ids], settled, eos=self._eos)
        tokens = (cast("int", token) for (token,) in steps)
        return _until_stop(tokens, self._text(settled), lambda token: token)

    def stream_logprobs(
        self, ids: Sequence[int], *, logprobs: int = 0, **options: Any
    ) -> Iterator[TokenLogprobs]:
        """What `stream_tokens` gives, with how likely each token and the ``logprobs`` likeliest
        ones were."""
        settled = _options({**options, "logprobs": logprobs})
        steps = generate_logprobs(self._model, [ids], settled, eos=self._eos)
        tokens = (cast("TokenLogprobs", token) for (token,) in steps)
        return _until_stop(tokens, self._text(settled), lambda token: token.token)

    @overload
    def chat(
        self, messages: object, *, stream: Literal[False] = False, **options: Any
    ) -> ChatCompletion: ...
    @overload
    def chat(self, messages: object, *, stream: Literal[True], **options: Any) -> ChatStream: ...

    def chat(
        self,
        messages: object,
        *,
        stream: bool = False,
        tools: object = None,
        system: str | None = None,
        thinking: str = "hide",
        continue_final_message: bool = False,
        chat_template: str | None = None,
        template_variables: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ChatCompletion | ChatStream:
        """The answer to ``messages``, which are those of the OpenAI API.

        ``stream`` gives an iterator of pieces, whose ``result`` is the answer then. ``tools`` are
        for the template, ``system`` is a message before the others. ``thinking`` "show" streams
        what the model thinks, "hide" leaves it to ``reasoning_content``, "off" has the template
        tell the model not to. ``continue_final_message`` goes on with the last message.
        ``chat_template`` takes the place of the model's own: text for jinja2, a name that the
        directory has, "chatml" or "plain"; ``template_variables`` are for it. Other options are
        those of `generate`, and the defaults are those of ``generation_config.json``
        (`generation_defaults`). Raises `ArgumentError` and `LoadError`.
        """
        asked = chat_request(
            messages,
            tools=tools,
            system=system,
            thinking=thinking,
            continue_final_message=continue_final_message,
            template_variables=template_variables,
        )
        made = ChatStream(self._chat_model(chat_template, bool(asked.tools)), asked, options)
        return made if stream else made.result

    def chat_prompt(
        self, messages: object, *, chat_template: str | None = None, **asked: Any
    ) -> str:
        """The text that the model reads for ``messages``, which an answer follows.

        The arguments are those of `chat`, without options of sampling.
        """
        request = chat_request(messages, **asked)
        chat = self._chat_model(chat_template, bool(request.tools))
        return chat.prompt(request)

    @property
    def has_chat_template(self) -> bool:
        """Whether the directory has a chat template; without one, `chat` needs to be given one."""
        return bool(self._chat_files().templates)

    @property
    def generation_defaults(self) -> dict[str, Any]:
        """The options that ``generation_config.json`` gives: the defaults of `chat`.

        `generate` and the other methods that continue text are greedy by default:
        ``model.generate(text, **model.generation_defaults)`` samples as the makers do.
        """
        return generation_defaults(self._generation_config, self.directory)

    def session(self) -> Session:
        """A handle of this model that keeps its KV cache from one text to the next."""
        return Session(self)

    def _chat_model(self, template: str | None, tools: bool) -> ChatModel:
        found = self._chat_files().template(template, tools=tools)
        chats = self._chats
        if (known := chats.get(found.source)) is None or known.template.place != found.place:
            known = chats[found.source] = ChatModel(
                self._model,
                self.tokenizer,
                found,
                self._eos,
                self.generation_defaults,
                self.place.name,
            )
        return known

    def _chat_files(self) -> ChatFiles:
        if self._chat is None:
            self._chat = read_chat_files(self.directory)
        return self._chat

    def _text(self, options: GenerationOptions) -> TextStream | None:
        return TextStream(self.tokenizer, options.stop) if options.stop else None

    def _encode(self, prompt: str) -> list[int]:
        if not isinstance(prompt, str):
            raise ArgumentError(
                f"a prompt is a {type(prompt).__name__}, expected a string",
                fix="pass text, or token ids to stream_tokens",
            )
        ids = self.tokenizer.encode(prompt)
        if ids:
            return ids
        if self._bos is None or not 0 <= self._bos < self.module.vocab_size:
            raise ArgumentError(
                "the prompt is empty, and the model has no token to begin with"
                f" (bos_token_id is {self._bos})",
                fix="pass a prompt of at least one character",
            )
        return [self._bos]

    @property
    def causal_lm(self) -> LanguageModel:
        """This handle: it continues text."""
        return self

    @property
    def image_classifier(self) -> None:
        """None: it takes no images."""
        return None


class Session(LanguageModel):
    """A handle that keeps the KV cache of its model from one text to the next.

    It has the methods of `LanguageModel`, whose results it gives, bit for bit; of a prompt it reads
    only what is new since the text before. Texts come one after the other, not in several threads.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.__dict__.update(model.__dict__)
        inner = model._model
        self._prefix = PrefixCache(inner.model if isinstance(inner, PrefixCache) else inner)
        self._model = self._prefix
        self._chats = {}

    @property
    def generator(self) -> CausalModel:
        """That of the model, which keeps no text."""
        return self._prefix.model

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens in the cache."""
        return tuple(self._prefix.tokens)

    def clear(self) -> None:
        """Give the cache up, with its memory; the next text is read whole."""
        self._prefix.clear()


def _options(options: dict[str, Any]) -> GenerationOptions:
    known = GenerationOptions.__dataclass_fields__
    if unknown := sorted(set(options) - set(known)):
        raise ArgumentError(f"unknown option {unknown[0]!r}", fix=f"use: {', '.join(known)}")
    return GenerationOptions(**options)


def _refuse_logprobs(options: dict[str, Any], gives: str, other: str) -> None:
    if options.get("logprobs") is not None:
        raise ArgumentError(
            f"option logprobs is {options['logprobs']!r}, and {gives} alone",
            fix=f"call {other}",
        )


def _until_stop(
    tokens: Iterator[T], text: TextStream | None, id_of: Callable[[T], int]
) -> Iterator[T]:
    for token in tokens:
        yield token
        if text is not None:
            text.push(id_of(token))
            if text.stopped:
                return


def _as_ids(tokens: object) -> NDArray[Any]:
    try:
        array = as_array(tokens)
        ids: NDArray[Any] = np.asarray(tokens) if array is None else array
    except ValueError:  # lists of different lengths
        raise ArgumentError(
            "tokens are rows of different lengths, expected integers [tokens] or [batch, tokens]",
            fix="call forward for each row, or generate with a list of prompts",
        ) from None
    if ids.ndim not in (1, 2) or ids.dtype.kind not in "iu" or ids.size == 0:
        raise ArgumentError(
            f"tokens have shape {ids.shape} and dtype {ids.dtype}, expected integers [tokens]"
            " or [batch, tokens], at least one token",
            fix="pass token ids: model.tokenizer.encode(text)",
        )
    return ids
