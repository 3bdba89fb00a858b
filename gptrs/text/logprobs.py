"""Log-probabilities of the chosen token and of the likeliest tokens, from unmodified logits."""

from __future__ import annotations

from math import exp
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gptrs.errors import PtirError
from gptrs.lazy_dataclass import dataclass
from gptrs.text.sampling import top_ids

Choices: TypeAlias = tuple[tuple[int, float], ...]
"""(id, natural log-probability) pairs."""


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """A chosen token and its natural log-probability in the model's own distribution.

    ``top`` holds (token id, log-probability) of the likeliest tokens, the likeliest first, the
    lowest id first among equals. The chosen token is among them only if it is that likely.
    """

    token: int
    logprob: float
    top: Choices


def token_logprobs(logits: NDArray[Any], token: int, count: int) -> TokenLogprobs:
    """log softmax(logits) [vocab] at ``token``, and at the ``count`` likeliest tokens."""
    logs = _log_softmax(logits)
    return TokenLogprobs(token, float(logs[token]), _top(logs, count))


def likeliest(logits: NDArray[Any], count: int) -> list[tuple[int, float]]:
    """The ``count`` likeliest of ``logits`` [choices] with their probabilities, in the order of
    `TokenLogprobs.top`.

    Raises PtirError when no distribution follows from the logits.
    """
    if not np.isfinite(largest := logits.max()):
        raise PtirError(
            f"the largest logit is {largest}, expected a finite number",
            fix="the model computed no distribution: look at its weights and its input",
        )
    return [(choice, exp(logprob)) for choice, logprob in _top(_log_softmax(logits), count)]


def _log_softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    exact = np.asarray(logits, np.float64)
    shifted = exact - exact.max()
    return shifted - np.log(np.exp(shifted).sum())


def _top(logs: NDArray[np.float64], count: int) -> Choices:
    ids = top_ids(logs, count)
    ids = ids[np.lexsort((ids, -logs[ids]))]
    return tuple(zip(ids.tolist(), logs[ids].tolist(), strict=True))
