"""Random inputs for comparisons, the same in every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gptrs.loading.loaded_model import LoadedModel

_SEED = 0


def random_tokens(handle: LoadedModel, rows: int, count: int) -> NDArray[np.int64]:
    """Token ids [rows, count] of a language model."""
    random = np.random.default_rng([_SEED, rows, count])
    return random.integers(0, handle.module.vocab_size, (rows, count))


def random_images(handle: LoadedModel, count: int) -> NDArray[np.float32]:
    """Images [count, H, W, C] of the size that the model was trained with, normalised."""
    size = handle.module.image_size
    shape = count, size, size, handle.config.num_channels
    return np.random.default_rng([_SEED, count]).standard_normal(shape, np.float32)
