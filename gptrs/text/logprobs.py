"""How likely a token was: log-probabilities of the chosen one and of the likeliest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs.text.sampling import top_ids


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """A chosen token and its natural log-probability in the model's own distribution.

    ``top`` holds (token id, log-probability) of the likeliest tokens, the likeliest first, the
    lowest id first among equals. The chosen token is among them only if it is that likely.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


def token_logprobs(logits: NDArray[Any], token: int, count: int) -> TokenLogprobs:
    """log softmax(logits) [vocab] at ``token``, and at the ``count`` likeliest tokens."""
    exact = np.asarray(logits, np.float64)
    shifted = exact - exact.max()
    logs = shifted - np.log(np.exp(shifted).sum())
    ids = top_ids(logs, count)
    ids = ids[np.lexsort((ids, -logs[ids]))]
    top = tuple(zip(ids.tolist(), logs[ids].tolist(), strict=True))
    return TokenLogprobs(token, float(logs[token]), top)
