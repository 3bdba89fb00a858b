"""KV cache of fixed capacity: keys and values of earlier tokens, and causal attention to them.

A pytree that is donated to a model's call and returned with the new tokens. All layers share
one array each for keys and values; rows of a batch share one write position and are left-padded, so
one forward serves prefill and decode of prompts of different lengths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.ir.dims import DimLike
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, bf16, f16, f32
from gptrs.nn.cache_memory import zeros

CACHE_DTYPES = (f32, f16, bf16)


@dataclass(frozen=True)
class CacheLayout:
    """How keys and values are stored. Narrow ones are rounded when they are stored, and attention
    adds up in f32."""

    dtype: DType = f32


@dataclass(frozen=True)
class KVCache:
    """Space for ``capacity`` tokens per row, filled from column 0.

    Rows share one write position: shorter prompts are padded on the left, row ``b`` begins at
    column ``start[b]``. A call takes the cache (it is donated) and returns the next one.
    """

    keys: Tensor  # [layers, batch, heads, capacity, head size]
    values: Tensor
    length: Tensor  # si32[]: columns filled so far
    start: Tensor  # si32[batch]

    @classmethod
    def empty(
        cls,
        layers: int,
        starts: NDArray[np.int32],
        heads: int,
        capacity: int,
        head_size: int,
        layout: CacheLayout | None = None,
    ) -> KVCache:
        """A cache without tokens, in f32 unless the ``layout`` says else."""
        dtype = (layout or CacheLayout()).dtype
        # All layers in one array: each argument costs time in each call.
        shape = (layers, len(starts), heads, capacity, head_size)
        keys, values = (ptir.tensor(zeros(shape, dtype)) for _ in range(2))
        length, start = (ptir.tensor(np.array(given, np.int32)) for given in (0, starts))
        return cls(keys, values, length, start)

    def positions(self, count: DimLike) -> Tensor:
        """The position in its row's text of each of the next ``count`` tokens, [batch, count].

        Padding, which precedes the start, gets position 0.
        """
        columns = ptir.iota(shape=(1, count), axis=1) + self.length
        return ptir.maximum(columns - self.start.reshape(-1, 1), 0)

    def lengths(self, count: DimLike) -> Tensor:
        """How many tokens each row's text has with the next ``count`` of them, si32[batch]."""
        return self.length + count - self.start

    def attend(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        scale: float,
        window: int | None = None,
        softcap: float | None = None,
    ) -> tuple[Tensor, KVCache]:
        """Causal attention of new tokens (q [batch, heads, tokens, head size], k and v with as many
        heads as the cache) to all tokens so far, or the last ``window``. Returns the result, and
        the cache with the new keys and values of the layer."""
        batch, _, count, _ = q.shape
        at = (layer, 0, 0, self.length, 0)
        keys, values = (
            ptir.dynamic_update_slice(kept, _as_stored(new, kept.dtype), at)
            for kept, new in ((self.keys, k), (self.values, v))
        )
        end = ptir.broadcast_to(self.length + count, shape=(batch,))
        y = ptir.attention(
            *(q, keys[layer], values[layer], self.start, end),
            causal=True,
            scale=scale,
            window=window,
            softcap=softcap,
        )
        return y, replace(self, keys=keys, values=values)

    def cut(self, length: int) -> KVCache:
        """The cache with its first ``length`` columns; later tokens replace the others."""
        return replace(self, length=ptir.tensor(np.array(length, np.int32)))

    def advanced(self, count: DimLike) -> KVCache:
        """The cache after a call in which all layers attended: ``count`` more columns."""
        return replace(self, length=self.length + count)


def _as_stored(new: Tensor, dtype: DType) -> Tensor:
    """New keys or values [batch, heads, tokens, head size] of a layer in the cache's dtype."""
    new = new.reshape(1, *new.shape)
    return new if new.dtype is dtype else ptir.cast(new, dtype=dtype)
