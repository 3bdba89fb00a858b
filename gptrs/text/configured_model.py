"""`ConfiguredModel`: a causal model under the options that it was loaded with."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gptrs.errors import ArgumentError
from gptrs.ir.types import as_dtype, f32
from gptrs.jit.modes import model_scope
from gptrs.jit.overrides import Policies
from gptrs.nn.cache import CACHE_DTYPES, CacheLayout, KVCache
from gptrs.text.causal_model import CausalModel, WrappedModel
from gptrs.text.prefill import CHUNK


class ConfiguredModel(WrappedModel):
    """``model`` with KV caches of ``layout``, whose calls follow the implementation ``policies`` of
    its checkpoint, on the ``backend`` that was chosen for it, if any."""

    def __init__(self, model: CausalModel, layout: CacheLayout, policies: Policies = ()) -> None:
        super().__init__(model)
        self._layout, self._policies = layout, policies
        self.backend: str | None = None

    def init_cache(self, starts: NDArray[np.int32], capacity: int) -> Any:
        """As the model's, in the layout."""
        return cache_of(self.model, starts, capacity, self._layout)

    def __call__(
        self,
        tokens: NDArray[np.int64],
        cache: Any = None,
        *,
        logits: Literal["all", "last"] = "all",
    ) -> tuple[Any, Any]:
        """As the model's."""
        if type(cache) is KVCache:
            cache = cache.with_room(tokens.shape[1])
        with model_scope(self._policies, self.backend):
            return self.model(tokens, cache, logits=logits)


def cache_of(model: Any, starts: NDArray[np.int32], capacity: int, layout: CacheLayout) -> Any:
    """An empty cache of ``model`` in this layout; its default one needs no parameter for it."""
    if layout == CacheLayout():
        return model.init_cache(starts, capacity)
    return model.init_cache(starts, capacity, layout)


def layout_for(module: Any, kv_cache_dtype: object = None) -> CacheLayout:
    """The layout of caches with keys and values of this dtype (None: f32), and room for a chunk of
    a prompt beside each window.

    Raises `ArgumentError` for another dtype, and for a model that makes caches in its own way only.
    """
    dtype = f32 if kv_cache_dtype is None else as_dtype(kv_cache_dtype)
    if dtype not in CACHE_DTYPES:
        raise ArgumentError(
            f"kv_cache_dtype is {dtype}, expected one of {', '.join(map(str, CACHE_DTYPES))}"
        )
    if takes_layout(module):
        return CacheLayout(dtype, slack=CHUNK)
    if dtype is not f32:
        raise ArgumentError(
            f"kv_cache_dtype is {dtype}, and init_cache of {type(module).__name__} takes no layout",
            fix="let it take a gptrs.nn.CacheLayout after starts and capacity, or leave it out",
        )
    return CacheLayout()


def takes_layout(module: Any) -> bool:
    """Whether ``init_cache`` of a model takes a `CacheLayout`."""
    return len(inspect.signature(module.init_cache).parameters) > 2
