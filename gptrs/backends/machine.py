"""The machine's measured figures: what loads, rows, operations and threads cost.

One table that fusion (`gptrs.backends.fusion`), the choice of the axis of vectors
(`gptrs.backends.vectorization`), tiles and the number of chunks of a step read. Times are in
nanoseconds on one thread, per element of f32 in a vectorised loop unless said, measured on cores
with AVX-512 at 2.5 to 3.5 GHz; what is decided by them are ratios, so that other cores do well
with the same table.
"""

from __future__ import annotations

from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Machine:
    """Costs and sizes of one core."""

    vector_bytes: int = 64
    """A vector register, and a cache line."""
    l1_bytes: int = 32 << 10
    """What a loop may count on of the first cache, for data."""
    l2_bytes: int = 1 << 20
    """What a loop may count on of the second cache."""
    l3_bytes: int = 16 << 20
    """What a loop may count on of the last cache."""
    l2_byte: float = 0.012
    """Reading or writing a byte of an array that the second cache holds."""
    l3_byte: float = 0.018
    """One of an array that the last cache holds."""
    memory_byte: float = 0.045
    """One of an array in memory. A store beyond the second cache reads the line first."""
    vector_operation: float = 0.012
    """An addition, a load or a store in a loop that is not limited by memory."""
    vector_function: float = 0.035
    """A unit of the cost of an operation of several instructions, such as exp, there."""
    overlap: float = 0.75
    """The part of arithmetic that goes on while lines are on their way, or the reverse."""
    least_gain: float = 100.0
    """The gain of a call for which a longer kernel is compiled."""
    contiguous: float = 0.1
    """A load or store of an element that is adjacent to the next one, in the first cache."""
    strided: float = 0.8
    """One of an element that is not."""
    copied: float = 0.45
    """The copy of an element of a short row to where those of other rows are adjacent to it."""
    operation: float = 0.1
    """An addition; other operations by `Operation.cost`."""
    lane: float = 0.2
    """The load and store of a partial sum that lies in memory rather than in a register."""
    group: float = 0.05
    """The same where the elements of a group are added first."""
    start_of_sum: float = 2.4
    """The start and the end of the sum of a row that is read where it lies."""
    start_of_row: float = 16.0
    """The start and the end of any other reduction of a row."""
    serial: float = 8000.0
    """The time of a step below which waking a thread costs more than it saves."""
    piece: float = 4000.0
    """The least time of a chunk of a step that several threads share."""
    streamed_piece: float = 25_000.0
    """The same of a step that waits for weights from memory: a chunk begins new streams, which
    prefetchers follow slowly at first (SmolLM2-135M in bf16 decodes some 2 % slower at 4,000)."""
    few_rows: int = 16
    """The rows, or tiles of rows, up to which threads share the reductions of each."""
    recomputation: float = 1.5
    """The operations of a fused loop over those of its instructions one by one, at most: beyond
    this, storing a value and reading it costs less than computing it again."""
    spread: int = 4
    """The operations in which a value may be computed again from arrays that are as many times
    smaller, rather than stored."""

    def traffic(self, read: float, written: float) -> float:
        """Reading and writing so many bytes, in the cache that holds them all."""
        if read + written <= self.l2_bytes:
            return self.l2_byte * (read + written)
        byte = self.l3_byte if read + written <= self.l3_bytes else self.memory_byte
        return byte * (read + 2 * written)  # a line is read before it is written


MACHINE = Machine()
