"""The keys and values that attention has seen, kept between calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.ir.dims import DimLike
from gptrs.ir.tensor import Tensor


@dataclass(frozen=True)
class KVCache:
    """Room for ``capacity`` tokens a row, filled from column 0.

    Rows share one write position: shorter prompts are padded on the left, row ``b`` begins at
    column ``start[b]``. A call takes the cache (it is donated) and returns the next one.
    """

    keys: tuple[Tensor, ...]  # per layer [batch, heads, capacity, head size]
    values: tuple[Tensor, ...]
    length: Tensor  # si32[]: columns filled so far
    start: Tensor  # si32[batch]

    @classmethod
    def empty(
        cls, layers: int, starts: NDArray[np.int32], heads: int, capacity: int, head_size: int
    ) -> KVCache:
        """A cache without tokens, in f32."""
        shape = (len(starts), heads, capacity, head_size)
        # In one piece: systems give large pages to large pieces, and a first write into small ones
        # takes longer than the write. Arrays own their buffers: two views are not donated at once.
        rooms = np.zeros((2, layers, int(np.prod(shape))), np.float32)
        keys, values = (
            tuple(ptir.tensor(np.frombuffer(room.data, np.float32).reshape(shape)) for room in part)
            for part in rooms
        )
        return cls(
            keys,
            values,
            ptir.tensor(np.zeros((), np.int32)),
            ptir.tensor(np.array(starts, np.int32)),
        )

    def positions(self, count: DimLike) -> Tensor:
        """The position in its row's text of each of the next ``count`` tokens, [batch, count].

        Padding, which lies before the start, gets position 0.
        """
        columns = ptir.iota(shape=(1, count), axis=1) + self.length
        return ptir.maximum(columns - self.start.reshape(-1, 1), 0)

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, *, scale: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Causal attention of new tokens (q, k, v: [batch, heads, tokens, head size]) to all so
        far. Returns the result and the layer's keys and values with the new ones in."""
        batch, _, count, _ = q.shape
        at = (0, 0, self.length, 0)
        keys = ptir.dynamic_update_slice(self.keys[layer], k, at)
        values = ptir.dynamic_update_slice(self.values[layer], v, at)
        end = ptir.broadcast_to(self.length + count, shape=(batch,))
        y = ptir.attention(q, keys, values, self.start, end, causal=True, scale=scale)
        return y, keys, values

    def advanced(self, keys: list[Tensor], values: list[Tensor], count: DimLike) -> KVCache:
        """The cache after a call: new keys and values, ``count`` more columns."""
        return KVCache(tuple(keys), tuple(values), self.length + count, self.start)
