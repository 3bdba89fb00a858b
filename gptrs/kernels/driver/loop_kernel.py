"""The kernel of a loop: a step that repeats the steps of a body, without a return to Python.

    loop(arguments):
        each row of *before*:   copy bytes              the initial state, to its buffers
        each row of *pointers*: word at address = value arrays that stay where they are
        repeat the body in batches (`gptrs.kernels.driver.repetition`); poll for signals in between
        a step failed: its status becomes the plan's, and the loop ends
        each row of *after*, if the last state lies in the second buffers: copy bytes

    arguments, int64:  | `Field` ... | before | pointers | moves | copies | after |

    before, after [count, 3]:  | target | source | bytes |
    pointers [count, 2]:       | word | value |

Its extent is 1: the calling thread runs it, and the steps of the body use the pool's workers.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.compile import Kernel, compile_ir
from gptrs.kernels.driver.control_block import I8, I64, VOID, WORDS, PoolCode, i64
from gptrs.kernels.driver.repetition import COPY_WORDS, MOVE_WORDS
from gptrs.kernels.driver.step_table import CODE, EXCEPTION, INTERRUPTED, POLL

BYTES_WORDS, POINTER_WORDS = 3, 2
_FIRST = 8  # iterations of the first batch
_BRIEF, _LONG = (
    1 << 23,
    1 << 25,
)  # ticks of a batch, some 3 to 12 ms: the next one is longer, shorter
_POLLED = 1 << 24  # ticks between looks at signals


class Field(IntEnum):
    """Words of the argument block before the rows."""

    DRIVER = 0  # address of the words of `gptrs.kernels.driver.driver.NativeDriver`
    REPEAT = 1  # its functions
    TICKS = 2
    STATUS = 3  # of the plan
    BODY = 4  # an order of the pool
    BODY_STATUS = 5
    CONDITION = 6  # an order, or 0
    CONDITION_STATUS = 7  # the body's where there is no condition
    FLAG = 8
    LENGTH = 9  # iterations at most
    BEFORE = 10  # numbers of rows, in their order
    POINTERS = 11
    MOVES = 12
    COPIES = 13
    AFTER = 14
    ROWS = 15


@cache
def loop_kernel() -> Kernel:
    """The kernel."""
    return compile_ir(_build(), "loop")


def _build() -> str:
    module: Any = ir.Module("gptrs_loop")
    code = PoolCode(module, "loop", VOID, *[I64] * 3, public=True)
    words = code.inttoptr(code.arguments[0], WORDS)
    field = {name: code.get(words, name) for name in Field if name is not Field.ROWS}
    rows, place = dict[Field, Any](), code.word(words, Field.ROWS)
    widths = (BYTES_WORDS, POINTER_WORDS, MOVE_WORDS, COPY_WORDS, BYTES_WORDS)
    for name, width in zip(list(Field)[Field.BEFORE : Field.ROWS], widths, strict=True):
        rows[name] = place
        place = code.gep(place, [code.mul(field[name], i64(width))])
    status, *inner = (
        code.inttoptr(field[name], WORDS)
        for name in (Field.STATUS, Field.BODY_STATUS, Field.CONDITION_STATUS)
    )
    poll = code.get(status, POLL)
    for each in inner:
        code.put(poll, each, POLL)
        code.put(i64(0), each, CODE)
    _each_row(code, "before", rows[Field.BEFORE], field[Field.BEFORE], BYTES_WORDS, _copy)
    _each_row(code, "pointer", rows[Field.POINTERS], field[Field.POINTERS], POINTER_WORDS, _point)
    n = code.local(i64(0))
    _emit_batches(code, field, rows, status, n)
    code.enter("stopped")
    for number, each in enumerate(inner):
        failed = code.get(each, CODE)
        code.go_if(code.icmp_signed("==", failed, i64(0)), f"well {number}")
        for word in (CODE, CODE + 1, *range(EXCEPTION, EXCEPTION + 3)):
            code.put(code.get(each, word), status, word)
        code.ret_void()
        code.enter(f"well {number}")
    code.enter("end")
    odd = code.and_(code.load(n), i64(1))
    count = code.select(code.icmp_unsigned("!=", odd, i64(0)), field[Field.AFTER], i64(0))
    _each_row(code, "after", rows[Field.AFTER], count, BYTES_WORDS, _copy)
    code.ret_void()
    return str(module)


def _emit_batches(
    code: PoolCode, field: dict[Field, Any], rows: dict[Field, Any], status: Any, n: Any
) -> None:
    """Repeat the body: on to ``stopped`` where an iteration did not run, else to ``end``."""
    repeat = _function(code, field[Field.REPEAT], I64, WORDS, WORDS)
    ticks = _function(code, field[Field.TICKS], I64)
    block = code.inttoptr(code.load(code.inttoptr(field[Field.DRIVER], WORDS)), WORDS)
    order = code.alloca(I64, 9)
    given = [rows[Field.MOVES], field[Field.MOVES], rows[Field.COPIES], field[Field.COPIES]]
    given = [code.ptrtoint(w, I64) if w.type == WORDS else w for w in given]
    given += [field[Field.BODY], field[Field.CONDITION], field[Field.FLAG]]
    for place, word in enumerate(given, 2):
        code.put(word, order, place)
    batch, polled = code.local(i64(_FIRST)), code.local(code.call(ticks, []))
    code.enter("batch")
    first, length = code.load(n), field[Field.LENGTH]
    code.go_if(code.icmp_signed(">=", first, length), "end")
    last = code.add(first, code.load(batch))
    last = code.select(code.icmp_signed("<", last, length), last, length)
    code.put(first, order, 0)
    code.put(last, order, 1)
    start = code.call(ticks, [])
    code.store(code.call(repeat, [block, order]), n)
    code.go_if(code.icmp_signed("<", code.load(n), last), "stopped")
    now = code.call(ticks, [])
    took, size = code.sub(now, start), code.load(batch)
    shorter = code.select(code.icmp_signed(">", size, i64(1)), code.lshr(size, i64(1)), size)
    size = code.select(code.icmp_signed(">", took, i64(_LONG)), shorter, size)
    longer = code.select(code.icmp_signed("<", took, i64(_BRIEF)), code.shl(size, i64(1)), size)
    code.store(longer, batch)
    waited = code.sub(now, code.load(polled))
    code.go_if(code.icmp_signed("<", waited, i64(_POLLED)), "batch")
    code.store(now, polled)
    address = code.get(status, POLL)
    code.go_if(code.icmp_unsigned("==", address, i64(0)), "batch")
    raised = code.call(_function(code, address, I64, WORDS), [status])
    code.go_if(code.icmp_unsigned("==", raised, i64(0)), "batch")
    code.put(i64(INTERRUPTED), status, CODE)
    code.ret_void()


def _each_row(
    code: PoolCode,
    name: str,
    rows: Any,
    count: Any,
    width: int,
    write: Callable[[PoolCode, Any], None],
) -> None:
    """``write`` for each of ``count`` rows."""
    row = code.local(i64(0))
    code.enter(name)
    code.go_if(code.icmp_signed(">=", code.load(row), count), f"{name} done")
    write(code, code.gep(rows, [code.mul(code.load(row), i64(width))]))
    code.bump(row)
    code.go(name)
    code.enter(f"{name} done")


def _copy(code: PoolCode, row: Any) -> None:
    target, source = (code.inttoptr(code.get(row, place), I8.as_pointer()) for place in (0, 1))
    code.copy(source, target, code.get(row, 2))


def _point(code: PoolCode, row: Any) -> None:
    code.store(code.get(row, 1), code.inttoptr(code.get(row, 0), WORDS))


def _function(code: PoolCode, address: Any, result: Any, *arguments: Any) -> Any:
    return code.inttoptr(address, ir.FunctionType(result, arguments).as_pointer())
