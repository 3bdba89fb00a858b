"""``model.view``: the program of a model as an HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptrs.errors import ArgumentError
from gptrs.jit.overrides import Policies, checkpoint_overrides

if TYPE_CHECKING:
    from gptrs.debug.view.view import View


def view(module: Any, policies: Policies, batch: int, tokens: int | None, *, decode: bool) -> View:
    """The page of `gptrs.loading.loaded_model.LoadedModel.view`."""
    arguments = _inputs(module, batch, tokens, decode=decode)
    call: Any = type(module).__call__
    with checkpoint_overrides(policies):
        return call.view(module, *arguments)


def _inputs(module: Any, batch: int, tokens: int | None, *, decode: bool) -> list[Any]:
    if batch < 1:
        raise ArgumentError(f"batch is {batch}, expected 1 or more")
    if not hasattr(module, "context_length"):
        if tokens is not None or decode:
            raise ArgumentError("tokens and decode are of language models", fix="leave them out")
        size = module.image_size
        return [np.zeros((batch, size, size, module.config.num_channels), np.float32)]
    most = module.context_length - decode
    count = min(64, most) if tokens is None else tokens
    if not 1 <= count <= most:
        raise ArgumentError(f"tokens is {count}, expected 1 to {most}, the context of the model")
    if not decode:
        return [np.zeros((batch, count), np.int64)]
    cache = module.init_cache(np.zeros(batch, np.int32), count + 1)
    return [np.zeros((batch, 1), np.int64), cache]
