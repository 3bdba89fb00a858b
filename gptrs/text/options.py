"""Generation options as one checked dataclass; each field has its rule in a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from numbers import Integral, Real
from typing import Any, NamedTuple, cast

from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass
from gptrs.text.prefill import CHUNK
from gptrs.text.streaming import stop_strings


@dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """The length of the generated text, and the choice of each token.

    The logits of the next token go through these options in the order of transformers:
    ``logit_bias``, ``repetition_penalty``, ``presence_penalty`` and ``frequency_penalty``, which
    greedy text (temperature 0) follows too; then ``temperature``, ``top_k``, ``top_p``, ``min_p``.

    ``repetition_penalty`` p divides a logit above 0 by p and multiplies another with p, once for
    each token that occurs in the prompt or the new text (Keskar et al. 2019, arXiv:1909.05858).
    The other two are those of the OpenAI API and look at the new text alone: the logit of a token
    that occurs n times in it falls by ``presence_penalty`` + n · ``frequency_penalty``.
    Tokens that a context shift dropped still count.

    ``min_p`` keeps the tokens that are at least min_p times as probable as the likeliest (Nguyen et
    al. 2024, arXiv:2407.01082).

    ``logprobs`` asks for the log-probability of each chosen token and of that many likeliest ones,
    in the model's own distribution: log softmax of its logits, before any of the above (as vLLM
    reports them).

    ``context_shift`` goes on past the context length. When a row holds as many tokens as the
    context, the older half of them (rounded down), the prompt's included, is dropped, and the model
    reads the rest anew: what follows is what follows the rest as a prompt. Memory stays bounded.
    Without it text ends with the context, and more ``max_tokens`` than fit are an error.

    ``prompt_lookup`` guesses up to so many tokens at once, those that followed where the last few
    tokens occurred before, and checks them in one call of the model (`gptrs.text.speculation`).
    Text is the same without it; where it repeats itself or the prompt, it comes faster.
    ``draft``, a smaller language model with the same tokens, guesses ``draft_tokens`` at a time
    instead; here, too, text is the same without it.

    ``prefill_chunk`` bounds the memory of reading prompts: so many tokens (of all rows together)
    are read at once. Text is the same with any (`gptrs.text.prefill`).

    Raises ArgumentError, which names the option, when a value is not accepted.
    """

    max_tokens: int | None = None  # new tokens at most; None: until the text or the context ends
    temperature: float = 0.0  # what logits are divided by; 0 takes the most likely token
    top_k: int | None = None  # choose among this many most likely tokens
    top_p: float | None = None  # choose among the fewest tokens whose probabilities sum to this
    min_p: float | None = None  # choose among tokens at least this share as likely as the likeliest
    repetition_penalty: float = 1.0  # above 1: tokens of prompt and text become less likely
    presence_penalty: float = 0.0  # above 0: tokens of the new text become less likely
    frequency_penalty: float = 0.0  # the same, in proportion to how often they occur
    logit_bias: Mapping[int, float] = field(  # added to the logits of token ids; -inf bans one
        default_factory=dict[int, float], hash=False
    )
    logprobs: int | None = None  # how many likeliest tokens to report beside the chosen one
    context_shift: bool = False  # drop the oldest tokens when the context is full, and go on
    prompt_lookup: int | None = None  # guess up to so many tokens from the text before, and check
    draft: Any = field(default=None, hash=False)  # a smaller model that guesses tokens
    draft_tokens: int = 4  # how many at a time
    prefill_chunk: int = CHUNK  # how many tokens of prompts are read at once
    seed: int | None = None  # the same seed gives the same tokens; None: others every time
    stop: str | Iterable[str] = ()  # strings that end the text, left out of it; kept as a tuple
    ignore_eos: bool = False  # an end-of-text token is a token like any other

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", stop_strings(self.stop))
        for rule in _RULES:
            value = getattr(self, rule.option)
            if not rule.accepts(value):
                raise ArgumentError(
                    f"option {rule.option} is {value!r}, expected {rule.expected}", fix=rule.fix
                )
        if self.draft is not None and self.prompt_lookup is not None:
            raise ArgumentError(
                "options draft and prompt_lookup both guess tokens", fix="leave one of them out"
            )
        bias = {int(token): float(added) for token, added in self.logit_bias.items()}
        object.__setattr__(self, "logit_bias", bias)

    @property
    def adjusts_logits(self) -> bool:
        """Whether a bias or penalty changes the logits of some tokens."""
        return bool(
            self.logit_bias
            or self.repetition_penalty != 1
            or self.presence_penalty
            or self.frequency_penalty
        )


class _Rule(NamedTuple):
    option: str
    accepts: Callable[[object], bool]
    expected: str
    fix: str


def _is_integer(value: object, *, least: int) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def _is_real(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)


def _real(within: Callable[[float], bool]) -> Callable[[object], bool]:
    return lambda value: _is_real(value) and within(cast("float", value))


def _or_none(accepts: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or accepts(value)


def _integer(least: int) -> Callable[[object], bool]:
    return lambda value: _is_integer(value, least=least)


def _integer_or_none(least: int) -> Callable[[object], bool]:
    return _or_none(_integer(least))


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_bias(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        _is_integer(token, least=0) and _is_real(added) and -math.inf <= added < math.inf
        for token, added in cast("Mapping[object, Any]", value).items()
    )


_PENALTY = (
    _real(math.isfinite),
    "a finite number",
    "pass 0 for no penalty; the OpenAI API takes -2 to 2",
)
_SWITCH = (_is_bool, "True or False", "pass one of them")
_RULES: tuple[_Rule, ...] = (
    _Rule(
        "max_tokens",
        _integer_or_none(0),
        "an integer from 0 up, or None",
        "leave it out to go on until the text or the context ends",
    ),
    _Rule(
        "temperature",
        _real(lambda value: 0 <= value < math.inf),
        "a finite number from 0 up",
        "pass 0 to take the most likely token, 1 to sample from the model's own distribution",
    ),
    _Rule(
        "top_k",
        _integer_or_none(1),
        "an integer from 1 up, or None",
        "leave it out to keep every token",
    ),
    _Rule(
        "top_p",
        _or_none(_real(lambda value: 0 < value <= 1)),
        "a number above 0 and at most 1, or None",
        "leave it out to keep every token",
    ),
    _Rule(
        "min_p",
        _or_none(_real(lambda value: 0 <= value <= 1)),
        "a number from 0 to 1, or None",
        "leave it out to keep every token",
    ),
    _Rule(
        "repetition_penalty",
        _real(lambda value: 0 < value < math.inf),
        "a finite number above 0",
        "pass 1 for no penalty",
    ),
    _Rule("presence_penalty", *_PENALTY),
    _Rule("frequency_penalty", *_PENALTY),
    _Rule(
        "logit_bias",
        _is_bias,
        "a mapping of token ids to numbers, finite or -inf",
        "pass {token id: number}; -inf bans a token, 100 all but forces one",
    ),
    _Rule(
        "logprobs",
        _integer_or_none(0),
        "an integer from 0 up, or None",
        "pass 0 for the chosen token's alone",
    ),
    _Rule("context_shift", *_SWITCH),
    _Rule(
        "prompt_lookup",
        _integer_or_none(1),
        "an integer from 1 up, or None",
        "leave it out for a call of the model for each token; 4 to 10 suit most text",
    ),
    _Rule(
        "draft_tokens",
        _integer(1),
        "an integer from 1 up",
        "leave it out for 4",
    ),
    _Rule(
        "prefill_chunk",
        _integer(1),
        "an integer from 1 up",
        f"leave it out for {CHUNK}",
    ),
    _Rule(
        "seed",
        _integer_or_none(0),
        "an integer from 0 up, or None",
        "leave it out for other tokens every time",
    ),
    _Rule("ignore_eos", *_SWITCH),
)
