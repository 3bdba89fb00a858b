"""Parameters of the attention kernel's code (`Head`), block sizes, and its scratch arrays.

    stack of one work item, about 150 KB at most (R rows, width = D rounded up to vectors):
    queries [R, width]   keys [D, block]   values [block, width]   scores [2, tile rows, block]
    sums    [R, width]   states [R]: (maximum, factor, ...) and a vector of sums    positions [R]

`States` is the layout of the online softmax per row: the greatest score so far, the factor that
rescales the row's sums, and in each lane a sum of weights.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal

from gptrs.kernels.compiler.ir_builder import I64, Function, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import WeightType, element_type
from gptrs.lazy_dataclass import dataclass

Index = Literal["i32", "i64"]


@dataclass(frozen=True)
class Head:
    """Parameters of the kernel's code besides the vector level."""

    size: int
    """D, from 1 to 256."""
    scale: float | None = None
    """1/√D unless given."""
    softcap: float | None = None
    """Scores s become softcap·tanh(s/softcap)."""
    causal: bool = False
    window: bool = False
    start: bool = False
    length: bool = False
    index: Index = "i32"
    """The type of kv_start and kv_len."""
    stored: WeightType = "f32"
    """The type of keys and values in memory, which are widened to f32 as they are read."""

    @property
    def element(self) -> Any:
        """The LLVM type of a stored key's elements."""
        return element_type(self.stored)

    @property
    def block(self) -> int:
        """How many keys a block has: as many as keep the packed ones at 16 KB or less."""
        return 64 if self.size <= 64 else 32 if self.size <= 128 else 16

    @property
    def label(self) -> str:
        """A part of the kernel's name."""
        flags = [n for n in ("causal", "window", "start", "length") if getattr(self, n)]
        if self.softcap is not None:
            flags.append("softcap")
        if self.stored != "f32":
            flags.append(self.stored)
        return "_".join([str(self.size), *flags])

    @property
    def factor(self) -> float:
        """The factor of the scores."""
        return self.scale if self.scale is not None else 1 / math.sqrt(self.size)

    def width(self, isa: Isa) -> int:
        """The size of a head, filled up to whole vectors."""
        return -(-self.size // isa.lanes) * isa.lanes


def most_rows(isa: Isa, size: int) -> int:
    """The longest row block for a head size: queries and sums of 48 KB each, or of 144 rows."""
    return max(4, min(144, 12288 // size) // isa.tile_rows) * isa.tile_rows


UNPACKED_ROWS = 4
"""Up to so many queries, keys are taken from where they lie; for more they are packed."""


def variants(isa: Isa) -> list[int]:
    """Numbers of rows that tiles are made for; others are filled up to the next."""
    return [rows for rows in (1, UNPACKED_ROWS, 8) if rows < isa.tile_rows] + [isa.tile_rows]


def vectors_of(isa: Isa, rows: int, most: int) -> int:
    """How many vectors of each row fit into registers, a power of two."""
    count = 1
    while 2 * count <= most:
        used = 2 * count * rows + (2 * count if rows > 1 else 0) + 1
        if used > isa.registers:
            break
        count *= 2
    return count


@contextmanager
def short_loop(f: Function, last: int, step: int) -> Generator[Any]:
    """``for index in range(0, last, step)`` that LLVM does not unroll: bodies are long, and
    unrolled they would take most of the time to compile."""
    with f.loop(i64(0), i64(last), i64(step)) as loop:
        yield loop.index
        end: Any = f.block
    hint: Any = f.module.add_metadata([])
    # Self-referential, as LLVM's distinct loop metadata is.
    hint.operands = (hint, f.module.add_metadata(["llvm.loop.unroll.disable"]))
    end.terminator.set_metadata("llvm.loop", hint)


class States:
    """Of each row: the greatest score, the factor that brings sums up to date, and in each lane a
    sum of weights."""

    def __init__(self, f: Function) -> None:
        self._f = f
        self.stride = 2 * f.isa.lanes

    def of(self, states: Any, row: Any) -> Any:
        """The state of a row."""
        return self._f.at(states, self._f.mul(row, i64(self.stride)))

    def top(self, state: Any) -> Any:
        """The address of the greatest score."""
        return state

    def factor(self, state: Any) -> Any:
        """The address of the factor, which is 1 after it was applied."""
        return self._f.at(state, i64(1))

    def total(self, state: Any) -> Any:
        """The address of the vector of sums."""
        return self._f.at(state, i64(self._f.isa.lanes))


class Scratch:
    """Arrays on the stack, for one item at a time: about 150 KB at most."""

    def __init__(self, f: Function, head: Head) -> None:
        rows, width = most_rows(f.isa, head.size), head.width(f.isa)

        self.queries = f.stack_array(rows * width)  # [row, width]
        self.keys = f.stack_array(head.size * head.block)  # [D, block]
        self.values = f.stack_array(head.block * width)  # [block, width]
        self.scores = f.stack_array(
            2 * f.isa.tile_rows * head.block
        )  # [2, row of a tile, block]; weights
        self.sums = f.stack_array(rows * width)  # [row, width]
        self.states = f.stack_array(rows * States(f).stride)
        self.positions = f.stack_array(rows, I64)
