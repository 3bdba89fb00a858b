"""Comparison of logits with transformers' model on inputs of several sizes: ``gptrs validate``.

Compares the logits and, where the decision is clear, the largest one per row. Texts run at once,
through a KV cache, and left-padded in one cache; images alone and in batches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs import events
from gptrs.debug.numeric_diff.difference import Difference, difference
from gptrs.lazy_dataclass import dataclass
from gptrs.loading.image_classifier import ImageClassifier
from gptrs.loading.language_model import LanguageModel
from gptrs.parity.comparing import Comparing
from gptrs.parity.inputs import random_images, random_tokens
from gptrs.parity.tolerance import cache_tolerance, tolerance
from gptrs.parity.torch_models import TorchModel

Array = NDArray[Any]
Sides = Callable[[], tuple[Array, Array]]  # logits here, and by torch

_LENGTHS = (1, 7, 64)  # of texts; and one short of the context
_LONGEST = 1024  # tokens: a longer text takes long, and more memory for its logits than weights
_IMAGES = (1, 3)
_PROMPT, _STEPS = 5, 8  # tokens given at once to a cache, and one by one
_PADDED = (9, 4)  # tokens of rows that share a cache


@dataclass(frozen=True)
class Check:
    """Logits for one input, here and by torch."""

    name: str
    shape: tuple[int, ...]
    difference: Difference
    choices: int
    """The number of rows whose largest logit leads by more than the tolerance."""
    same: int
    """The number of these in which it is the same."""

    @property
    def agrees(self) -> bool:
        """Whether logits and choices are the same."""
        return self.difference.agrees and self.same == self.choices


@dataclass(frozen=True)
class Validation:
    """All checks of one model."""

    torch_name: str
    """The class name of transformers' model."""
    dtypes: tuple[str, ...]
    """The dtypes of the weights."""
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that do not agree."""
        return tuple(check for check in self.checks if not check.agrees)


def validate(handle: LanguageModel | ImageClassifier) -> Validation:
    """Compare the logits of a loaded model with those of transformers' model of the same files.

    Texts are of 1 token, of some and of nearly as many as fit, in one row or several, all at once
    and with a cache in the dtype that the handle was loaded with; images come alone and as a batch.
    Raises as `TorchModel` does.
    """
    torch = TorchModel(handle)
    if isinstance(handle, LanguageModel):
        assert handle.cache_layout is not None
        within, in_cache = tolerance("causal_lm"), cache_tolerance(handle.cache_layout.dtype)
        inputs = {name: (sides, within) for name, sides in _texts(handle, torch).items()}
        inputs |= {name: (sides, in_cache) for name, sides in _cached(handle, torch).items()}
    else:
        within = tolerance("image_classifier")
        inputs = {name: (sides, within) for name, sides in _images(handle, torch).items()}
    checks: list[Check] = []
    for name, (sides, within) in inputs.items():
        if events.listening():
            events.emit(Comparing(name, len(checks), len(inputs)))
        checks.append(_check(name, *sides(), within))
    dtypes = sorted({str(parameter.dtype) for parameter in handle.parameters().values()})
    return Validation(torch.name, tuple(dtypes), tuple(checks))


def _images(handle: ImageClassifier, torch: TorchModel) -> dict[str, Sides]:
    def sides(count: int) -> tuple[Array, Array]:
        images = random_images(handle, count)
        return handle.forward(images).numpy(), torch.logits(images)

    return {f"{count} image{'s' * (count > 1)}": partial(sides, count) for count in _IMAGES}


def _texts(handle: LanguageModel, torch: TorchModel) -> dict[str, Sides]:
    def sides(rows: int, length: int) -> tuple[Array, Array]:
        tokens = random_tokens(handle, rows, length)
        return handle.forward(tokens).numpy(), torch.logits(tokens)

    found: dict[str, Sides] = {}
    context = handle.module.context_length
    lengths = {*_LENGTHS, min(context, _LONGEST) - 1}
    shapes = [(1, length) for length in sorted(lengths) if 1 <= length <= context]
    for rows, length in [*shapes, (2, min(17, context))]:
        name = f"{length} token{'s' * (length > 1)}" + f", {rows} rows" * (rows > 1)
        found[name] = partial(sides, rows, length)
    return found


def _cached(handle: LanguageModel, torch: TorchModel) -> dict[str, Sides]:
    """Texts through a cache."""
    found: dict[str, Sides] = {}
    context = handle.module.context_length
    if context >= _PROMPT + _STEPS:
        name = f"{_PROMPT} tokens, then {_STEPS} with a cache"
        found[name] = partial(_continued, handle, torch)
    if context >= max(_PADDED):
        lengths = " and ".join(map(str, _PADDED))
        found[f"rows of {lengths} tokens in a cache"] = partial(_padded, handle, torch)
    return found


def _continued(handle: LanguageModel, torch: TorchModel) -> tuple[Array, Array]:
    """Logits [steps, vocabulary] after some tokens, and after each that follows but the last."""
    tokens = random_tokens(handle, 1, _PROMPT)
    following, expected = torch.continued(tokens, _STEPS)
    model, rows = handle.generator, list[Array]()
    cache = model.init_cache(np.zeros(1, np.int32), tokens.shape[1] + len(following))
    for given in [tokens, *(np.array([[token]]) for token in following[:-1])]:
        logits, cache = model(given, cache, logits="last")
        rows.append(logits.numpy()[0, -1])
    return np.stack(rows), expected


def _padded(handle: LanguageModel, torch: TorchModel) -> tuple[Array, Array]:
    """The last logits [rows, vocabulary] of rows of different lengths, padded on the left."""
    rows = [random_tokens(handle, 1, length) for length in _PADDED]
    expected = np.concatenate([torch.logits(row)[:, -1] for row in rows])
    model, longest = handle.generator, max(row.shape[1] for row in rows)
    starts = [longest - row.shape[1] for row in rows]
    tokens = np.concatenate(
        [np.pad(row, ((0, 0), (start, 0))) for row, start in zip(rows, starts, strict=True)]
    )
    cache = model.init_cache(np.array(starts, np.int32), longest)
    logits, _ = model(tokens, cache, logits="last")
    return logits.numpy()[:, -1], expected


def _check(name: str, found: Array, expected: Array, within: float) -> Check:
    apart = difference(found, expected, within)
    flat = expected.reshape(-1, expected.shape[-1])
    largest = flat.argmax(axis=1)
    decided = _margins(flat) > 2 * apart.tolerance
    same = found.reshape(flat.shape).argmax(axis=1) == largest
    choices, equal = int(decided.sum()), int((decided & same).sum())
    return Check(name, found.shape, apart, choices, equal)


def _margins(logits: Array) -> Array:
    """The difference of the two largest logits of each row."""
    if logits.shape[1] < 2:
        return np.full(len(logits), np.inf)
    top = np.partition(logits, -2, axis=1)[:, -2:]
    return top[:, 1] - top[:, 0]
