"""The worker pool's control block: its words and their offsets, and an IR builder for code on it.

    | TICKET ... | DONE ... | KERNEL ARGUMENTS CHUNKS ... ASLEEP BUSY | LIMIT STOP JOINED LEFT ... |
    0            16         32                                        48     64 words, 512 bytes

16 words are 128 bytes, the unit that CPUs share lines in: ticket, done, job and limits are that far
apart. `gptrs.kernels.driver.worker_pool` describes the protocol.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from llvmlite import ir

MAX_CHUNKS = 0xFFFF
"""Pieces that a step's extent is cut into at most: the ticket has 16 bits for them."""

BLOCK_WORDS = 64
"""Words of the control block: zero at first, aligned to 128 bytes, never freed."""


class Word(IntEnum):
    """Offsets in the control block. 16 words are 128 bytes, the unit that CPUs share lines in."""

    TICKET = 0
    DONE = 16  # chunks finished; bit 31: the caller sleeps
    KERNEL = 32
    ARGUMENTS = 33
    CHUNKS = 34
    EXTENT = 35
    ASLEEP = 40
    BUSY = 41
    LIMIT = 48  # workers with an index from here on stay out
    STOP = 49
    JOINED = 50
    LEFT = 51  # workers that have stopped
    RECORDING = 52  # the buffer of timestamps (`gptrs.kernels.driver.recording`), or 0


I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
VOID = ir.VoidType()
WORDS = I64.as_pointer()
KERNEL = ir.FunctionType(VOID, [I64] * 3).as_pointer()


def i64(value: int) -> Any:
    return ir.Constant(I64, value)


def i32(value: int) -> Any:
    return ir.Constant(I32, value)


class PoolCode(ir.IRBuilder):
    """An IR builder in a new function: basic blocks by name, control block words by offset."""

    def __init__(
        self, module: Any, name: str, result: Any, *arguments: Any, public: bool = False
    ) -> None:
        self.made: Any = ir.Function(module, ir.FunctionType(result, arguments), name)
        if not public:
            self.made.linkage = "internal"
        super().__init__(self.made.append_basic_block("entry"))
        self.arguments: tuple[Any, ...] = self.made.args
        self._places: dict[str, Any] = {}

    def word(self, pointer: Any, offset: int) -> Any:
        return self.gep(pointer, [i64(offset)])

    def half(self, pointer: Any, offset: int, *, high: bool = False) -> Any:
        """The address of 32 bits of a word, as futexes are; both machines are little-endian."""
        halves = self.bitcast(self.word(pointer, offset), I32.as_pointer())
        return self.gep(halves, [i64(int(high))])

    def get(self, pointer: Any, offset: int, order: str = "") -> Any:
        address = self.word(pointer, offset)
        return self.load_atomic(address, order, 8) if order else self.load(address)

    def put(self, value: Any, pointer: Any, offset: int, order: str = "") -> None:
        address = self.word(pointer, offset)
        if order:
            self.store_atomic(value, address, order, 8)
        else:
            self.store(value, address)

    def local(self, value: Any) -> Any:
        """A variable that loops change; it ends up in a register."""
        slot = self.alloca(I64)
        self.store(value, slot)
        return slot

    def copy(self, source: Any, target: Any, size: Any) -> None:
        """Copy ``size`` bytes; both are pointers to I8, and the ranges do not overlap."""
        pointer = I8.as_pointer()
        function: Any = self.made.module.declare_intrinsic("llvm.memcpy", [pointer, pointer, I64])
        self.call(function, [target, source, size, ir.Constant(I1, False)])

    def bump(self, slot: Any) -> Any:
        more = self.add(self.load(slot), i64(1))
        self.store(more, slot)
        return more

    def place(self, name: str) -> Any:
        """The basic block called ``name``, created at the first use."""
        if name not in self._places:
            self._places[name] = self.append_basic_block(name)
        return self._places[name]

    def enter(self, name: str) -> None:
        """Go on in the block ``name``; this one falls into it unless it has ended."""
        here: Any = self.block
        if not here.is_terminated:
            self.branch(self.place(name))
        self.position_at_end(self.place(name))

    def go(self, name: str) -> None:
        self.branch(self.place(name))

    def go_if(self, test: Any, name: str) -> None:
        """Go to the block ``name`` if ``test`` holds, else go on here."""
        behind = self.append_basic_block("behind")
        self.cbranch(test, self.place(name), behind)
        self.position_at_end(behind)
