"""How the next token is chosen from logits: greedy, or drawn after temperature, top-k and top-p."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs.errors import ArgumentError, PtirError
from gptrs.text.streaming import stop_strings


@dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """How much text to generate, and how each token of it is chosen.

    Raises ArgumentError, which names the option, when a value is not accepted.
    """

    max_tokens: int | None = None  # new tokens at most; None: until the text or the context ends
    temperature: float = 0.0  # what logits are divided by; 0 takes the most likely token
    top_k: int | None = None  # choose among this many most likely tokens
    top_p: float | None = None  # choose among the fewest tokens whose probabilities sum to this
    seed: int | None = None  # the same seed gives the same tokens; None: others every time
    stop: str | Iterable[str] = ()  # strings that end the text, left out of it; kept as a tuple
    ignore_eos: bool = False  # an end-of-text token is a token like any other

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", stop_strings(self.stop))
        _check(
            "max_tokens",
            self.max_tokens,
            self.max_tokens is None or _is_integer(self.max_tokens, least=0),
            "an integer from 0 up, or None",
            "leave it out to go on until the text or the context ends",
        )
        _check(
            "temperature",
            self.temperature,
            _is_real(self.temperature) and 0 <= self.temperature < math.inf,
            "a finite number from 0 up",
            "pass 0 to take the most likely token, 1 to sample from the model's own distribution",
        )
        _check(
            "top_k",
            self.top_k,
            self.top_k is None or _is_integer(self.top_k, least=1),
            "an integer from 1 up, or None",
            "leave it out to keep every token",
        )
        _check(
            "top_p",
            self.top_p,
            self.top_p is None or (_is_real(self.top_p) and 0 < self.top_p <= 1),
            "a number above 0 and at most 1, or None",
            "leave it out to keep every token",
        )
        _check(
            "seed",
            self.seed,
            self.seed is None or _is_integer(self.seed, least=0),
            "an integer from 0 up, or None",
            "leave it out for other tokens every time",
        )
        _check(
            "ignore_eos",
            self.ignore_eos,
            isinstance(self.ignore_eos, bool),  # pyright: ignore[reportUnnecessaryIsInstance]
            "True or False",
            "pass one of them",
        )


def _is_integer(value: object, *, least: int) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def _is_real(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)


def _check(option: str, value: object, accepted: bool, expected: str, fix: str) -> None:
    if not accepted:
        raise ArgumentError(f"option {option} is {value!r}, expected {expected}", fix=fix)


class Sampler:
    """The choices of a batch: every row draws from the random stream it would have alone."""

    def __init__(self, options: GenerationOptions, rows: int) -> None:
        self._options = options
        self._streams = [np.random.Generator(np.random.Philox(options.seed)) for _ in range(rows)]

    def sample(self, logits: NDArray[Any], row: int) -> int:
        """The next token of ``row``, whose logits are ``logits`` [vocab]."""
        return sample(logits, self._options, self._streams[row])


def sample(logits: NDArray[Any], options: GenerationOptions, rng: np.random.Generator) -> int:
    """A token id chosen from ``logits`` [vocab]: the first maximum if the temperature is 0,
    otherwise the inverse of the cumulative distribution at one uniform number of ``rng``.

    Raises PtirError when no distribution follows from the logits.
    """
    if options.temperature == 0:
        return _first_maximum(logits)
    chances = probabilities(logits, options)
    tokens = np.flatnonzero(chances)
    cumulative = np.cumsum(chances[tokens])
    drawn = int(cumulative.searchsorted(rng.random() * float(cumulative[-1]), side="right"))
    return int(tokens[min(drawn, len(tokens) - 1)])  # the product may round up to the last sum


def probabilities(logits: NDArray[Any], options: GenerationOptions) -> NDArray[np.float64]:
    """softmax(logits / temperature) [vocab] over the tokens that top-k and then top-p keep.

    Both keep the most likely tokens, the lowest id first among equals: top-k exactly k of them,
    top-p the fewest whose probabilities sum to p (Holtzman et al. 2020, arXiv:1904.09751).
    A temperature of 0 gives the first maximum all of it. Raises PtirError as ``sample`` does.
    """
    best = _first_maximum(logits)
    if options.temperature == 0:
        certain = np.zeros(len(logits))
        certain[best] = 1.0
        return certain
    exact = np.asarray(logits, np.float64)
    with np.errstate(over="ignore"):  # far below the maximum, a small temperature makes -inf
        scaled = (exact - exact[best]) / float(options.temperature)
    if options.top_k is not None and options.top_k < len(scaled):
        scaled = _keep_top_k(scaled, options.top_k)
    chances = np.exp(scaled)
    chances /= chances.sum()
    if options.top_p is not None and options.top_p < 1:
        chances = _keep_top_p(chances, options.top_p)
    return chances


def _first_maximum(logits: NDArray[Any]) -> int:
    if logits.ndim != 1 or logits.size == 0:
        raise PtirError(f"logits to sample from have shape {logits.shape}, expected [vocab]")
    best = int(np.argmax(logits))  # the first NaN, if there is one
    if not np.isfinite(logits[best]):
        raise PtirError(
            f"the largest logit is {logits[best]} (token {best}), expected a finite number",
            fix="the model computed no distribution: look at its weights and its input",
        )
    return best


def _keep_top_k(scaled: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    smallest = np.partition(scaled, -k)[-k]
    above = scaled > smallest
    equal = np.flatnonzero(scaled == smallest)
    kept = np.append(np.flatnonzero(above), equal[: k - np.count_nonzero(above)])
    result = np.full_like(scaled, -np.inf)
    result[kept] = scaled[kept]
    return result


def _keep_top_p(chances: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    # Tokens this unlikely sum to less than 1 - p, so the set is found without sorting them.
    candidates = np.flatnonzero(chances > (1 - p) / (2 * len(chances)))
    order = candidates[np.argsort(-chances[candidates], kind="stable")]
    enough = int(np.cumsum(chances[order]).searchsorted(p)) + 1
    kept = order[:enough]
    result = np.zeros_like(chances)
    result[kept] = chances[kept] / chances[kept].sum()
    return result
