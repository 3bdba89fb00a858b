"""Chain kernel: loops that read each other's results, block by block of their outermost axis.

    for slot in first … last:                           # a share of the planes of the last stage
        for each block b … e of the share:
            for stage in stages:
                stage.kernel(stage.block, the planes up to e + stage.high that are not there yet)
            move what the next block reads of each array to the front of its window

    argument block:  | `Field` ... | stages | arrays | uses | argument blocks of the stages |

    stages [count, 6]:  | kernel | rows | planes | low | high | its argument block |
    arrays [count, 4]:  | a word that holds its address | stage | bytes of a window | of a plane |
    uses [count, 2]:    | a word that holds the address of an array | array |

A plane is one index of the outermost axis, ``rows`` items of a kernel's extent. For the planes b …
e of the last stage another one computes b + low … e + high, as far as it has them. What it writes
for later stages lies in a window, one for each slot: the address that a kernel is given is that of
plane 0 if the window were the whole array. Words are counted from the begin of the argument block,
of which a call changes its own copy.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I1, I64, POINTER, VOID, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa

STAGE_WORDS, ARRAY_WORDS, USE_WORDS = 6, 4, 2
_ROOM = 64


class Field(IntEnum):
    """Words of the argument block before the rows."""

    STAGES = 0
    ARRAYS = 1
    USES = 2
    PLANES = 3  # of the last stage
    SLOTS = 4
    BLOCK = 5  # planes
    ROWS = 6


def room_for(words: int) -> int:
    """The words of an argument block that has so many, with those that are not used: there are
    kernels for few lengths."""
    return -(-words // _ROOM) * _ROOM


def stage_chain_kernel(isa: Isa, words: int) -> KernelText:
    """Stages whose argument block has at most so many ``words``; extent: slots."""
    name = f"stage_chain{words}"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    _Writer(f, words).write()
    return KernelText(str(module), name)


class _Writer:
    """Writes the kernel."""

    def __init__(self, f: Function, words: int) -> None:
        self._f = f
        address, self._first, self._last = f.arguments
        self._given = f.inttoptr(address, POINTER)
        self._words = f.stack_array(words, I64)
        self._field = {n: f.word(f.at(self._given, i64(n), I64)) for n in Field if n < Field.ROWS}
        field = self._field
        self._stages: Any = i64(Field.ROWS)
        self._arrays = f.add(self._stages, f.mul(field[Field.STAGES], i64(STAGE_WORDS)))
        self._uses = f.add(self._arrays, f.mul(field[Field.ARRAYS], i64(ARRAY_WORDS)))
        self._move = f.intrinsic("memmove.p0.p0.i64", VOID, POINTER, POINTER, I64, I1)
        self._kind = ir.FunctionType(VOID, [I64] * 3)
        self._done = f.stack_array(words // STAGE_WORDS, I64)  # by stage: the planes that are there
        with f.loop(i64(0), i64(words)) as word:
            f.write(self._given_at(word.index), f.at(self._words, word.index, I64))

    def write(self) -> None:
        f, field = self._f, self._field
        planes, slots = field[Field.PLANES], field[Field.SLOTS]
        with f.loop(self._first, self._last) as slot:
            begin = f.sdiv(f.mul(planes, slot.index), slots)
            end = f.sdiv(f.mul(planes, f.add(slot.index, i64(1))), slots)
            with f.loop(i64(0), field[Field.STAGES]) as stage:
                low = self._of_stage(stage.index, 3)
                start = f.positive(f.add(begin, low))
                f.write(start, f.at(self._done, stage.index, I64))
            with f.loop(begin, end, field[Field.BLOCK]) as block:
                after = f.least(f.add(block.index, field[Field.BLOCK]), end)
                self._place(slot.index, block.index)
                self._compute(after)
                self._keep(slot.index, block.index, after)
        f.ret_void()

    def _place(self, slot: Any, begin: Any) -> None:
        """Give each kernel the addresses of the arrays for the block from plane ``begin`` on."""
        f = self._f
        with f.loop(i64(0), self._field[Field.USES]) as use:
            place, array = (self._row(self._uses, use.index, USE_WORDS, n) for n in range(2))
            origin = self._origin(array, slot, f.add(begin, self._low_of(array)))
            f.write(f.add(self._given_at(place), origin), f.at(self._words, place, I64))

    def _compute(self, end: Any) -> None:
        """Run the stages for the block up to plane ``end``."""
        f = self._f
        with f.loop(i64(0), self._field[Field.STAGES]) as stage:
            kernel, rows, planes, _, high, block = (
                self._of_stage(stage.index, n) for n in range(STAGE_WORDS)
            )
            place = f.at(self._done, stage.index, I64)
            first, last = f.word(place), f.least(f.add(end, high), planes)
            with f.if_then(f.icmp_signed("<", first, last)):
                words = f.ptrtoint(f.at(self._words, block, I64), I64)
                given = [words, f.mul(first, rows), f.mul(last, rows)]
                f.call(f.inttoptr(kernel, self._kind.as_pointer()), given)
                f.write(last, place)

    def _keep(self, slot: Any, begin: Any, end: Any) -> None:
        """Move the planes that the block from plane ``end`` on reads."""
        f = self._f
        with f.loop(i64(0), self._field[Field.ARRAYS]) as array:
            stage = self._row(self._arrays, array.index, ARRAY_WORDS, 1)
            size = self._row(self._arrays, array.index, ARRAY_WORDS, 3)
            low = self._low_of(array.index)
            first = f.positive(f.add(end, low))
            count = f.sub(f.word(f.at(self._done, stage, I64)), first)
            with f.if_then(f.icmp_signed(">", count, i64(0))):
                place = self._row(self._arrays, array.index, ARRAY_WORDS, 0)
                base = f.add(self._given_at(place), f.mul(first, size))
                source, target = (
                    f.add(base, self._origin(array.index, slot, f.add(plane, low)))
                    for plane in (begin, end)
                )
                pointers = [f.inttoptr(each, POINTER) for each in (target, source)]
                f.call(self._move, [*pointers, f.mul(count, size), ir.Constant(I1, 0)])

    def _origin(self, array: Any, slot: Any, first: Any) -> Any:
        """Where plane 0 of an array would be, in bytes from its memory, if its window began with
        plane ``first``."""
        f = self._f
        window, size = (self._row(self._arrays, array, ARRAY_WORDS, n) for n in (2, 3))
        return f.sub(f.mul(slot, window), f.mul(first, size))

    def _low_of(self, array: Any) -> Any:
        return self._of_stage(self._row(self._arrays, array, ARRAY_WORDS, 1), 3)

    def _of_stage(self, stage: Any, number: int) -> Any:
        return self._row(self._stages, stage, STAGE_WORDS, number)

    def _row(self, table: Any, row: Any, width: int, number: int) -> Any:
        f = self._f
        return self._given_at(f.add(table, f.add(f.mul(row, i64(width)), i64(number))))

    def _given_at(self, place: Any) -> Any:
        return self._f.word(self._f.at(self._given, place, I64))
