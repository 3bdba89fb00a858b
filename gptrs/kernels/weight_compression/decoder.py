"""Decompression of weights into registers, inside the kernels that multiply them."""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gptrs.kernels.compiler.ir_builder import Function, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.kernels.weight_compression.format import (
    Container,
    block_rows,
    decoded,
    decoding,
    mend,
    place_of,
    register_bytes,
)


def decoding_registers(isa: Isa) -> int:
    """Registers for sums while weights are decoded."""
    return isa.registers - 6


def decoding_rows(isa: Isa) -> int:
    """How high a tile may be that decodes a panel as it reads it."""
    return min(isa.tile_rows, decoding_registers(isa) // isa.tile_vectors)


def can_be_early(isa: Isa, sums: int) -> bool:
    """Whether so many sums leave registers for a block that is decoded early (`CodedWalk`).

    Of 16 there are none to spare.
    """
    return sums + 8 <= isa.registers and isa.registers > 16


class Decoder:
    """What all walks of a function share. Made at its beginning, as it needs room."""

    def __init__(self, f: Function, weights: WeightType, container: Container) -> None:
        self.f, self.container = f, container
        self._weights: WeightType = weights
        self._table = container.table()
        self._size = register_bytes(f.isa)
        self._beside = f.room(self._size)

    def vectors(self, block: Any) -> list[Any]:
        """Those of a block without its exceptions, row by row."""
        return decoded(self.f, self._weights, self._table, block)

    def begin(self, block: Any, vectors: list[Any]) -> Iterator[None]:
        """`decoding` of the same."""
        return decoding(self.f, self._weights, self._table, block, vectors)

    def mended(
        self, vectors: list[Any], first: Any, following: tuple[Any, Any]
    ) -> tuple[list[Any], tuple[Any, Any]]:
        """The ``vectors`` of a block that begins at place ``first``, exceptions among them.

        ``following`` is the panel's next exception, and its place; then comes what it is after.
        """
        f, (entry, place), before = self.f, following, self.f.block
        last = f.add(first, i64(self._size))
        with f.if_then(f.icmp_unsigned("<", place, last), likely=False):
            beside = [f.at(self._beside, i64(i * f.isa.lanes)) for i in range(len(vectors))]
            for vector, at in zip(vectors, beside, strict=True):
                f.write(vector, at)
            after = mend(f, entry, self._beside, first, last)
            mended, end = [*(f.read(at) for at in beside), *after], f.block
        result: list[Any] = []
        for old, new in zip([*vectors, entry, place], mended, strict=True):
            result.append(f.phi(old.type))
            result[-1].add_incoming(old, before)
            result[-1].add_incoming(new, end)
        *vectors, entry, place = result
        return vectors, (entry, place)


class CodedWalk:
    """A walk over ``depth`` rows of a panel from ``start`` on, a block at a time.

    ``entry`` is the next exception, ``first`` the place in the panel where the walk begins. If it
    is ``early``, a block is decoded between the multiply-adds of the one before: by itself it would
    keep the units busy that are to multiply. ``carried`` goes from turn to turn.
    """

    def __init__(
        self, decoder: Decoder, start: Any, depth: Any, entry: Any, first: Any, *, early: bool
    ) -> None:
        f = self._f = decoder.f
        self._decoder, self._start, self._first = decoder, start, first
        self.rows = block_rows(f.isa)
        self._final = f.sub(depth, i64(self.rows))
        self._early = early
        self._coming: Iterator[None] = iter(())
        self.carried = [entry, place_of(f, entry)]
        if early:
            self.carried += decoder.vectors(start)

    def block(self, row: Any) -> Any:
        """Where the block is that begins with ``row``."""
        return self._decoder.container.after(self._start, row)

    def read(self, row: Any) -> Iterator[tuple[int, list[Any]]]:
        """The vectors of each of the rows from ``row`` on, and its number."""
        f, count = self._f, self._f.isa.tile_vectors
        entry, place, *vectors = self.carried
        coming: list[Any] = []
        if self._early:
            # Behind the last block there may be no memory: it is decoded once more.
            following = f.least(f.add(row, i64(self.rows)), self._final)
            self._coming = self._decoder.begin(self.block(following), coming)
        else:
            vectors = self._decoder.vectors(self.block(row))
        first = f.add(self._first, f.mul(row, i64(f.isa.tile_columns)))
        vectors, exception = self._decoder.mended(vectors, first, (entry, place))
        for i in range(0, len(vectors), count):
            yield i // count, vectors[i:][:count]
        for _ in self._coming:
            pass
        self.carried = [*exception, *coming]

    def proceed(self) -> None:
        """Go on with what stands between multiply-adds."""
        next(self._coming, None)
