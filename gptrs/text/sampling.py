"""Token sampling from logits: greedy, or by temperature, top-k, top-p and min-p.

Runs in NumPy and f64 between two model calls. Each row has its own random stream (Philox), so a row
gets the tokens that it would get alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs.errors import PtirError
from gptrs.text.options import GenerationOptions
from gptrs.text.penalties import Penalties, SeenTokens


class Sampler:
    """The samplers of a batch: each row has its own random stream and its own seen tokens, so that
    it does not depend on the other rows."""

    def __init__(self, options: GenerationOptions, prompts: Sequence[Sequence[int]]) -> None:
        self._options = options
        self._streams = [np.random.Generator(np.random.Philox(options.seed)) for _ in prompts]
        self._penalties = Penalties(options) if options.adjusts_logits else None
        self._seen = [SeenTokens(prompt) for prompt in prompts] if self._penalties else []

    def sample(self, logits: NDArray[Any], row: int) -> int:
        """The next token of ``row``, whose logits are ``logits`` [vocab]; it counts as seen."""
        if self._penalties is None:
            return sample(logits, self._options, self._streams[row])
        seen = self._seen[row]
        token = sample(self._penalties.apply(logits, seen), self._options, self._streams[row])
        seen.add(token)
        return token


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
    """softmax(logits / temperature) [vocab] over the tokens that top-k, top-p, then min-p keep.

    The first two keep the most likely tokens, the lowest id first among equals: top-k exactly k of
    them, top-p the fewest whose probabilities sum to p (Holtzman et al. 2020, arXiv:1904.09751).
    Min-p keeps what is at least p times as probable as the likeliest (Nguyen et al. 2024,
    arXiv:2407.01082).
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
    if options.min_p:
        chances[chances < options.min_p * chances[best]] = 0
        chances /= chances.sum()
    return chances


def top_ids(values: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The indices of the ``k`` largest of ``values``, unordered; the lowest among equals."""
    if k >= len(values):
        return np.arange(len(values))
    if k == 0:
        return np.arange(0)
    smallest = np.partition(values, -k)[-k]
    above = np.flatnonzero(values > smallest)
    return np.append(above, np.flatnonzero(values == smallest)[: k - len(above)])


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
    kept = top_ids(scaled, k)
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
