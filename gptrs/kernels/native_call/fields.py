"""The words of a record, by number: what a native call compares, runs and returns.

Words are addresses of objects or of arrays of words, byte offsets of slots, and counts. Arrays of
the call are numbered, the inputs, then the outputs. Rows are:

    relocation           | array | address of the word | offset |
    arena relocation     | address of the word | offset |
    copy                 | source | target | bytes |
    held                 | array |
    output               | dtype | rank | address of the extents |
    result               | output | type | weakness |
"""

from __future__ import annotations

from enum import IntEnum, auto


class Field(IntEnum):
    """The words of a record."""

    ROWS = 0
    """The rows of `gptrs.jit.native_call.checks`."""
    # The state on the stack: its words, and the byte offsets of its parts.
    STATE = auto()
    ARRAYS = auto()
    OBJECTS = auto()
    NUMBERS = auto()
    # Arrays
    INPUTS = auto()
    HELD = auto()
    """Arrays of the arguments that the run reads: others may go meanwhile."""
    HELD_ROWS = auto()
    OUTPUTS = auto()
    OUTPUT_ROWS = auto()
    NEW_ARRAY = auto()
    NDARRAY = auto()
    RELOCATIONS = auto()
    RELOCATION_ROWS = auto()
    COPIES = auto()
    COPY_ROWS = auto()
    # The binding, which waits in a list of free ones, and an arena from the pool, if it needs one
    BOUND = auto()
    FREE = auto()
    ARENAS = auto()
    ARENA_BYTES = auto()
    ARENA_WORDS = auto()
    ARENA_ADDRESS = auto()
    """The word with the address of the arena that the binding is relocated to."""
    ARENA_RELOCATIONS = auto()
    ARENA_ROWS = auto()
    # The lease on packed weights, if there are any
    LEASE = auto()
    GIVEN = auto()
    LEASE_GIVEN = auto()
    LEASE_RUNNING = auto()
    LEASE_USED = auto()
    TIMES = auto()
    RUNNING = auto()
    IDLE = auto()
    # The program's slot in its cache, and the cached call
    SLOT = auto()
    SLOT_DROPPED = auto()
    SLOT_USED = auto()
    TICKS = auto()
    CACHED = auto()
    CACHED_USED = auto()
    KEPT = auto()
    """False, which a slot has that was not dropped."""
    # The run of the step table
    RUN = auto()
    BLOCK = auto()
    """The word with the address of the driver's control block."""
    ORDER = auto()
    STATUS = auto()
    POLL = auto()
    """The function that kernels poll, or 0."""
    BRIEF = auto()
    """Whether the run keeps the GIL."""
    MAIN = auto()
    """The word with the ident of the main thread."""
    # The results
    RESULTS = auto()
    RESULT_ROWS = auto()
    TENSOR = auto()
    TENSOR_TYPE = auto()
    TENSOR_ARRAY = auto()
    TENSOR_DONATED = auto()
    TENSOR_VALUE = auto()
    TENSOR_RECORDER = auto()
    TENSOR_WEAK = auto()
    NONE = auto()
    EMPTY = auto()
    JOIN = auto()
    """What makes the result from a list of Tensors; `SINGLE` or `TUPLE` without a call."""


SINGLE, TUPLE = 0, 1
