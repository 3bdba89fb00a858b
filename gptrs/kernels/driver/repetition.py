"""Repetition of a step table: the iterations of a loop without a return to Python between them.

    repeat(order):                                              -> the iteration that it ended at
        for n in first..last:
            for each move:   word at address = (even or odd, by n) + n · stride
            run the condition's steps; its flag is 0: end
            run the body's steps; a step failed: end
            for each copy:   bytes at the target = bytes at the source, both moved like words

    moves, int64 [count, 4]:    | word | even | odd | stride |
    copies, int64 [count, 7]:   | source: even, odd, stride | target: even, odd, stride | bytes |

A loop's state lies in two buffers: an even iteration reads the first and writes the second, an odd
one the other way round. Arrays that are read or written along their first axis have a stride.
Drivers without native code for this do the same in Python (`repeat_in_python`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from gptrs.kernels.driver.control_block import I1, I8, I64, WORDS, PoolCode, i64
from gptrs.kernels.driver.step_table import Status, StepTable
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property

MOVE_WORDS, COPY_WORDS = 4, 7


class Steps(NamedTuple):
    """A step table with what it takes to run it."""

    table: StepTable
    status: Status
    threads: int


class Place(NamedTuple):
    """An address that changes from iteration to iteration."""

    even: int
    odd: int
    stride: int = 0

    def at(self, n: int) -> int:
        """The address in iteration ``n``."""
        return (self.odd if n % 2 else self.even) + n * self.stride


@dataclass(frozen=True, eq=False)
class Repetition:
    """What is run again and again. The caller keeps the memory alive that words point to. One
    thread runs it at a time."""

    body: Steps
    moves: NDArray[np.int64]
    """[count, `MOVE_WORDS`] in C order, as are `copies`, [count, `COPY_WORDS`]."""
    copies: NDArray[np.int64]
    condition: Steps | None = None
    flag: int = 0
    """The address of the byte that the condition's steps write."""

    def order(self, first: int, last: int) -> int:
        """The address of the order for the iterations ``first`` to ``last`` (`emit_repeat`). The
        next call changes it."""
        _, words, address = self._order
        words[0], words[1] = first, last
        return address

    @cached_property
    def _order(self) -> tuple[object, memoryview, int]:
        """What the order points to, its words and their address."""
        kept = [
            steps.table.order(0, steps.table.count, steps.status.address, steps.threads)
            for steps in (self.body, self.condition)
            if steps is not None
        ]
        body, condition = (kept[0][1], kept[1][1] if len(kept) > 1 else 0)
        words = [0, 0]
        for rows in (self.moves, self.copies):
            words += [rows.ctypes.data, len(rows)]
        order = np.array([*words, body, condition, self.flag], np.int64)
        return kept, order.data, order.ctypes.data

    @property
    def threads(self) -> int:
        """The most threads that its steps run on."""
        return max(self.body.threads, self.condition.threads if self.condition else 1)


def repeat_in_python(
    run: Callable[[Steps], bool], repetition: Repetition, first: int, last: int
) -> int:
    """The iterations ``first`` to ``last``; ``run`` says whether the steps failed."""
    moves = [(word, Place(*place)) for word, *place in repetition.moves.tolist()]
    copies = [(Place(*row[:3]), Place(*row[3:6]), row[6]) for row in repetition.copies.tolist()]
    for n in range(first, last):
        for word, place in moves:
            ctypes.c_int64.from_address(word).value = place.at(n)
        if (condition := repetition.condition) is not None and (
            run(condition) or not ctypes.c_int8.from_address(repetition.flag).value
        ):
            return n
        if run(repetition.body):
            return n
        for source, target, size in copies:
            ctypes.memmove(target.at(n), source.at(n), size)
    return last


def emit_repeat(module: Any, run: Any) -> None:
    """Add ``repeat(block, order)`` to the module of a pool whose function ``run(block, order)`` is
    given. The words of an order: first, last, moves and how many, copies and how many, the orders
    of the body and of the condition or 0, the address of the flag."""
    code = PoolCode(module, "repeat", I64, WORDS, WORDS, public=True)
    block, order = code.arguments
    first, last, moves, move_count, copies, copy_count, body, condition, flag = (
        code.get(order, place) for place in range(9)
    )
    n = code.local(first)
    row = code.local(i64(0))

    def moved(rows: Any, column: int) -> Any:
        """The address of a place, whose words begin at a column of the row."""
        odd = code.trunc(code.load(n), I1)
        start = code.select(odd, code.get(rows, column + 1), code.get(rows, column))
        return code.add(start, code.mul(code.load(n), code.get(rows, column + 2)))

    def row_of(rows: Any, width: int) -> Any:
        return code.gep(code.inttoptr(rows, WORDS), [code.mul(code.load(row), i64(width))])

    code.enter("iteration")
    code.go_if(code.icmp_signed(">=", code.load(n), last), "end")
    code.store(i64(0), row)
    code.enter("move")
    code.go_if(code.icmp_signed(">=", code.load(row), move_count), "moved")
    words = row_of(moves, MOVE_WORDS)
    code.store(moved(words, 1), code.inttoptr(code.get(words, 0), WORDS))
    code.bump(row)
    code.go("move")
    code.enter("moved")
    code.go_if(code.icmp_signed("==", condition, i64(0)), "body")
    asked = code.call(run, [block, code.inttoptr(condition, WORDS)])
    code.go_if(code.icmp_signed(">=", asked, i64(0)), "end")
    held = code.load(code.inttoptr(flag, I8.as_pointer()))
    code.go_if(code.icmp_signed("==", held, ir.Constant(I8, 0)), "end")
    code.enter("body")
    failed = code.call(run, [block, code.inttoptr(body, WORDS)])
    code.go_if(code.icmp_signed(">=", failed, i64(0)), "end")
    code.store(i64(0), row)
    code.enter("copy")
    code.go_if(code.icmp_signed(">=", code.load(row), copy_count), "copied")
    words = row_of(copies, COPY_WORDS)
    source, target = (code.inttoptr(moved(words, c), I8.as_pointer()) for c in (0, 3))
    code.copy(source, target, code.get(words, 6))
    code.bump(row)
    code.go("copy")
    code.enter("copied")
    code.bump(n)
    code.go("iteration")
    code.enter("end")
    code.ret(code.load(n))
