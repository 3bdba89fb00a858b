"""Decompression of weight panels into registers, inside the kernels that multiply them.

    for block of the panel (block_rows rows):
        decode block i + 1 into registers, an instruction or two after each multiply-add of block i
        if the next exception lies in block i:          # rare: one weight in thousands
            store the vectors, write the exceptions, load the vectors
        for row of block i:
            sums += A[:, row] · vectors of the row      # the caller's multiply-adds

`PanelDecoder` is the loop state for one panel; its `read` is a generator between whose rows the
caller emits its multiply-adds, and `advance` emits the next instructions of decoding there (a
software pipeline, where registers suffice: `can_pipeline`). Registers: the table, the vectors of a
block, and of the next one. Used by `gptrs.kernels.gemm.microkernel` and
`gptrs.kernels.gemm.packed_gemv`; the layout is that of `gptrs.kernels.weight_compression.format`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gptrs.kernels.compiler.ir_builder import Function, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.kernels.weight_compression.format import (
    Container,
    apply_exceptions,
    block_rows,
    decode_block,
    decode_steps,
    place_of,
    register_bytes,
)


def decoder_registers(isa: Isa) -> int:
    """Registers left for sums while weights are decoded."""
    return isa.registers - 6


def decoder_rows(isa: Isa) -> int:
    """The most rows of a tile that decodes a panel as it reads it."""
    return min(isa.tile_rows, decoder_registers(isa) // isa.tile_vectors)


def can_pipeline(isa: Isa, sums: int) -> bool:
    """Whether so many sums leave registers for decoding a block ahead (`PanelDecoder`).

    With 16 registers none are left.
    """
    return sums + 8 <= isa.registers and isa.registers > 16


class Decoder:
    """The state that all panel decoders of a function share: table, stack buffer.

    Constructed at the beginning of the function, as it allocates on the stack.
    """

    def __init__(self, f: Function, weights: WeightType, container: Container) -> None:
        self.f, self.container = f, container
        self._weights: WeightType = weights
        self._table = container.table()
        self._size = register_bytes(f.isa)
        self._beside = f.stack_array(self._size)

    def vectors(self, block: Any) -> list[Any]:
        """The vectors of a block without its exceptions, row by row."""
        return decode_block(self.f, self._weights, self._table, block)

    def begin(self, block: Any, vectors: list[Any]) -> Iterator[None]:
        """`vectors`, a few instructions at a time (`decode_steps`)."""
        return decode_steps(self.f, self._weights, self._table, block, vectors)

    def with_exceptions(
        self, vectors: list[Any], first: Any, following: tuple[Any, Any]
    ) -> tuple[list[Any], tuple[Any, Any]]:
        """The ``vectors`` of a block that begins at place ``first``, with its exceptions.

        ``following`` is the panel's next exception and its place; returned as it is afterwards.
        """
        f, (entry, place), before = self.f, following, self.f.block
        last = f.add(first, i64(self._size))
        with f.if_then(f.icmp_unsigned("<", place, last), likely=False):
            beside = [f.at(self._beside, i64(i * f.isa.lanes)) for i in range(len(vectors))]
            for vector, at in zip(vectors, beside, strict=True):
                f.write(vector, at)
            after = apply_exceptions(f, entry, self._beside, first, last)
            with_exceptions, end = [*(f.read(at) for at in beside), *after], f.block
        result: list[Any] = []
        for old, new in zip([*vectors, entry, place], with_exceptions, strict=True):
            result.append(f.phi(old.type))
            result[-1].add_incoming(old, before)
            result[-1].add_incoming(new, end)
        *vectors, entry, place = result
        return vectors, (entry, place)


class PanelDecoder:
    """Decodes ``depth`` rows of a panel from ``start`` on, a block per iteration of a loop.

    ``entry`` is the next exception, ``first`` the place in the panel of the first row. If
    ``pipelined``, a block is decoded between the multiply-adds of the one before (a software
    pipeline): decoded at once, it would keep busy the units that multiply. ``carried`` are the
    values carried from iteration to iteration.
    """

    def __init__(
        self, decoder: Decoder, start: Any, depth: Any, entry: Any, first: Any, *, pipelined: bool
    ) -> None:
        f = self._f = decoder.f
        self._decoder, self._start, self._first = decoder, start, first
        self.rows = block_rows(f.isa)
        self._final = f.sub(depth, i64(self.rows))
        self._pipelined = pipelined
        self._next_block: Iterator[None] = iter(())
        self.carried = [entry, place_of(f, entry)]
        if pipelined:
            self.carried += decoder.vectors(start)

    def block(self, row: Any) -> Any:
        """The address of the block that begins with ``row``."""
        return self._decoder.container.after(self._start, row)

    def read(self, row: Any) -> Iterator[tuple[int, list[Any]]]:
        """The vectors of each of the rows from ``row`` on, and its number."""
        f, count = self._f, self._f.isa.tile_vectors
        entry, place, *vectors = self.carried
        next_block: list[Any] = []
        if self._pipelined:
            # There may be no memory behind the last block, which is decoded once more instead.
            following = f.least(f.add(row, i64(self.rows)), self._final)
            self._next_block = self._decoder.begin(self.block(following), next_block)
        else:
            vectors = self._decoder.vectors(self.block(row))
        first = f.add(self._first, f.mul(row, i64(f.isa.tile_columns)))
        vectors, exception = self._decoder.with_exceptions(vectors, first, (entry, place))
        for i in range(0, len(vectors), count):
            yield i // count, vectors[i:][:count]
        for _ in self._next_block:
            pass
        self.carried = [*exception, *next_block]

    def advance(self) -> None:
        """Emit the next instructions of decoding, to interleave them with multiply-adds."""
        next(self._next_block, None)
