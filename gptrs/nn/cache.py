"""KV cache of fixed capacity: keys and values of earlier tokens, and causal attention to them.

A pytree that is donated to a model's call and returned with the new tokens. All layers share
one array each for keys and values; rows of a batch share one write position and are left-padded, so
one forward serves prefill and decode of prompts of different lengths.

    layers without a window   columns 0 .. capacity
    layers with a window      columns dropped .. dropped + R: the window and room for new tokens

With a `CacheLayout` that has ``slack``, layers with a window have arrays of their own. When these
are full, `KVCache.with_room` moves the columns that later tokens see back to the front. Attention
finds a row's first key at a negative place then, and its results keep their bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.ir.dims import DimLike
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, bf16, f16, f32
from gptrs.lazy_dataclass import dataclass
from gptrs.nn.cache_memory import zeros

CACHE_DTYPES = (f32, f16, bf16)
ROLLBACK = 64
"""Columns behind which a cache with windows can be cut at any time."""
_BLOCK = 64
"""The most keys of a block of the attention kernel, whose first key precedes the window's."""


@dataclass(frozen=True)
class CacheLayout:
    """How keys and values are stored. Narrow ones are rounded when they are stored, and attention
    adds up in f32."""

    dtype: DType = f32
    slack: int | None = None
    """Layers with a window have room for it and so many columns more; None: as many as others."""

    def local_columns(self, window: int, capacity: int) -> int:
        """How many columns layers with a ``window`` have in a cache of this ``capacity``."""
        assert self.slack is not None
        return min(capacity, _kept(window) + self.slack)


def _kept(window: int) -> int:
    """How many of the latest columns are kept for a ``window``."""
    return window + _BLOCK + ROLLBACK


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
    local_keys: Tensor | None = None  # [layers with a window, batch, heads, R, head size]
    local_values: Tensor | None = None
    local: Tensor | None = None
    """si32[3] of these: columns dropped before them, the largest window, columns to grow to."""

    @classmethod
    def empty(
        cls,
        layers: int,
        starts: NDArray[np.int32],
        heads: int,
        capacity: int,
        head_size: int,
        layout: CacheLayout | None = None,
        windows: Sequence[int | None] = (),
    ) -> KVCache:
        """A cache without tokens, in f32 unless the ``layout`` says else; ``windows`` are those of
        the layers."""
        layout = layout or CacheLayout()
        widths = [width for width in windows if width and layout.slack is not None]

        # All layers in one array: each argument costs time in each call.
        def array(layers: int, columns: int) -> Tensor:
            shape = (layers, len(starts), heads, columns, head_size)
            return ptir.tensor(zeros(shape, layout.dtype))

        count = layers - len(widths)
        keys, values = (array(count, capacity) for _ in range(2))
        length, start = (ptir.tensor(np.array(given, np.int32)) for given in (0, starts))
        made = cls(keys, values, length, start)
        if not widths:
            return made
        window = max(widths)
        columns = layout.local_columns(window, capacity)
        local_keys, local_values = (array(len(widths), columns) for _ in range(2))
        local = np.array([0, window, _kept(window) + (layout.slack or 0)], np.int32)
        return replace(
            made, local_keys=local_keys, local_values=local_values, local=ptir.tensor(local)
        )

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
        slot: int | None = None,
    ) -> tuple[Tensor, KVCache]:
        """Causal attention of new tokens (q [batch, heads, tokens, head size], k and v with as many
        heads as the cache) to all tokens so far, or the last ``window``. Returns the result, and
        the cache with the new keys and values of the layer, which is number ``slot`` among those
        that have a window, or none, as it has (a model that gives ``windows`` says it)."""
        batch, _, count, _ = q.shape
        keys, values, length, start = self.keys, self.values, self.length, self.start
        if self.local is not None:
            assert slot is not None
            layer = slot
        is_local = self.local is not None and window is not None
        if is_local:
            assert self.local_keys is not None
            assert self.local_values is not None
            assert self.local is not None
            keys, values = self.local_keys, self.local_values
            length, start = length - self.local[0], start - self.local[0]
        at = (layer, 0, 0, length, 0)
        keys, values = (
            ptir.dynamic_update_slice(kept, _as_stored(new, kept.dtype), at)
            for kept, new in ((keys, k), (values, v))
        )
        end = ptir.broadcast_to(length + count, shape=(batch,))
        y = ptir.attention(
            *(q, keys[layer], values[layer], start, end),
            causal=True,
            scale=scale,
            window=window,
            softcap=softcap,
        )
        if is_local:
            return y, replace(self, local_keys=keys, local_values=values)
        return y, replace(self, keys=keys, values=values)

    def cut(self, length: int) -> KVCache:
        """The cache with its first ``length`` columns; later tokens replace the others.

        Raises `ArgumentError` where layers with a window have dropped columns that they need.
        """
        if not self.reaches(length):
            raise ArgumentError(
                f"the cache cannot be cut to {length} columns: layers with a window have dropped"
                " some that it needs",
                fix="begin with an empty cache",
            )
        return replace(self, length=ptir.tensor(np.array(length, np.int32)))

    def reaches(self, length: int) -> bool:
        """Whether the cache can be cut to ``length`` columns: always to `ROLLBACK` fewer than it
        has, and to fewer if layers with a window still have what the next token sees."""
        if self.local is None:
            return True
        dropped, window, _ = self.local.numpy().tolist()
        return dropped == 0 or length - window - _BLOCK >= dropped

    def with_room(self, count: int) -> KVCache:
        """The cache, which this call takes, with room for ``count`` tokens in the layers with a
        window: columns that no later token sees are dropped, and the others move to the front."""
        if self.local is None or self.local_keys is None or self.local_values is None:
            return self
        length, (dropped, window, room) = int(self.length.numpy()), self.local.numpy().tolist()
        columns = int(self.local_keys.shape[3])
        if length - dropped + count <= columns:
            return self
        first = max(dropped, length - _kept(window))
        columns = max(columns, length - first + count, min(2 * columns, room))
        part = slice(first - dropped, length - dropped)
        local_keys, local_values = (
            _moved(kept, part, columns) for kept in (self.local_keys, self.local_values)
        )
        return replace(
            self,
            local_keys=local_keys,
            local_values=local_values,
            local=ptir.tensor(np.array([first, window, room], np.int32)),
        )

    def advanced(self, count: DimLike) -> KVCache:
        """The cache after a call in which all layers attended: ``count`` more columns."""
        return replace(self, length=self.length + count)


def _as_stored(new: Tensor, dtype: DType) -> Tensor:
    """New keys or values [batch, heads, tokens, head size] of a layer in the cache's dtype."""
    new = new.reshape(1, *new.shape)
    return new if new.dtype is dtype else ptir.cast(new, dtype=dtype)


def _moved(kept: Tensor, part: slice, columns: int) -> Tensor:
    """The columns ``part`` of ``kept`` [layers, batch, heads, R, head size], which is given away,
    at the front of an array with so many ``columns``: the same one if it has as many."""
    old = kept.numpy()
    new = old if old.shape[3] == columns and old.flags.writeable else None
    if new is None:
        new = zeros((*old.shape[:3], columns, old.shape[4]), kept.dtype)
    kept.donate("KVCache.with_room")
    count = part.stop - part.start
    for source, target in zip(old, new, strict=True):  # by layers: overlapping ones are copied
        target[:, :, :count] = source[:, :, part]
    return ptir.tensor(new)
