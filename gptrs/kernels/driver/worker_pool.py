"""The worker pool that executes a step table, as LLVM IR: one ticket word, bounded spins, a futex.

    run: for step in first..last:                   work: loop until STOP:
           one chunk: call the kernel                       chunk = claim from the back
           else: store job, store ticket, wake                  if none: pause, yield, then sleep
                 while chunk = claim from the front:        while chunk: call the kernel on it,
                     call the kernel on it                      claim the next
                 done += chunks; wait until all done        done += chunks

    ticket, 64 bits:  | generation 32 | end 16 | begin 16 |     chunks begin..end are left

`build_pool_ir` gives a module with five functions (every word has 64 bits):

    run(block, order) -> the step that failed, or -1; an order is what to run, the words table,
                    first, last, status and threads
    repeat(block, order)    runs again and again (`gptrs.kernels.driver.repetition`)
    work(block)     the function of a worker thread, until `stop`
    stop(block)     lets the workers leave
    ticks()         the counter of the timestamps (`gptrs.kernels.driver.recording`)

A parallel step: the caller writes the job (kernel, arguments, how the extent is cut) and then
stores the *ticket*: generation << 32 | end << 16 | begin, the chunks that are left. The caller
raises the begin by a compare-exchange, a worker lowers the end: chunks that lie side by side stay
with one thread, step after step, so that the data a step wrote is in that thread's cache in the
next (two threads go through a half of the extent each, both upwards). The thread that made the
exchange owns the chunk, and reads the job only then: a step does not end before its last chunk, so
the job cannot change under an owner, and a ticket that comes back with the same bits after 2^32
steps is as good as the first. A missing worker costs time alone. Each thread adds the number of its
chunks to *done*; the caller leaves when done equals chunks.

Order of memory, for CPUs that order weakly:
- job before ticket: the ticket is stored with release or stronger and claimed with acquire;
- results before done: done is raised with release and read by the caller with acquire;
- ticket before sleepers: a worker raises *asleep* and then reads the ticket, the caller stores the
  ticket and then reads *asleep*. All four are sequentially consistent, so that one of the two sees
  the other; the futex compares the generation once more, so no wake-up is lost in between.

A caller that finds the pool *busy* runs its chunks itself: the same cuts, without waiting.
"""

from __future__ import annotations

import platform
import sys
from functools import cache
from typing import Any

from llvmlite import ir

from gptrs.kernels.driver.chunks import Chunks, left
from gptrs.kernels.driver.control_block import (
    I1,
    I32,
    I64,
    KERNEL,
    MAX_CHUNKS,
    VOID,
    WORDS,
    PoolCode,
    Word,
    i32,
    i64,
)
from gptrs.kernels.driver.recording import Stamps
from gptrs.kernels.driver.repetition import emit_repeat
from gptrs.kernels.driver.waiting import EVERYBODY, FUTEX, PAUSES, WAIT, WAKE, YIELDS, Waiting

_SLEEPS = 1 << 31  # in *done*: the caller sleeps


@cache
def supported() -> bool:
    """Whether the pool runs here: Linux on 64-bit x86 or Arm."""
    return sys.platform == "linux" and platform.machine() in FUTEX and sys.maxsize > 1 << 32


def build_pool_ir(machine: str = "") -> str:
    """The module for ``machine``, ``x86_64`` or ``aarch64`` (this one if empty).

    Equal machines get equal text. Raises `KeyError` for any other machine.
    """
    return str(_Pool(machine or platform.machine()).module)


class _Pool:
    """The module's functions, each generated after its callees."""

    def __init__(self, machine: str) -> None:
        self.module: Any = ir.Module("gptrs_pool")
        self._waiting = Waiting(self.module, machine)
        self._chunks = Chunks(self.module)
        self._stamps = Stamps(self.module, machine)
        self._drain = self._emit_drain()
        self._retire = self._emit_retire()
        self._doze = self._emit_doze()
        self._emit_work()
        self._admit = self._emit_admit()
        self._publish = self._emit_publish()
        self._join = self._emit_join()
        self._parallel = self._emit_parallel()
        emit_repeat(self.module, self._emit_run())
        self._emit_stop()

    def _finish(self, code: PoolCode, block: Any, count: Any) -> Any:
        """Add ``count`` to *done* and give its new value, 32 bits."""
        count = code.trunc(count, I32)
        address = code.half(block, Word.DONE)
        return code.add(code.atomic_rmw("add", address, count, "acq_rel"), count)

    def _emit_drain(self) -> Any:
        """drain(block, chunk, last, worker) -> how many: `Chunks.drain`, recorded."""
        code = PoolCode(self.module, "drain_recorded", I64, WORDS, I64, I1, I64)
        block, chunk, last, worker = code.arguments
        buffer = code.get(block, Word.RECORDING, "monotonic")
        with code.if_then(code.icmp_unsigned("==", buffer, i64(0)), likely=True):
            code.ret(code.call(self._chunks.drain, [block, chunk, last]))
        arguments = code.get(block, Word.ARGUMENTS)
        before = self._stamps.ticks(code)
        count = code.call(self._chunks.drain, [block, chunk, last])
        record = [code.inttoptr(buffer, WORDS), arguments, worker, count, before]
        code.call(self._stamps.chunks, record)
        code.ret(count)
        return code.made

    def _emit_retire(self) -> Any:
        """retire(block, count): a worker's chunks are done; the last one wakes the caller."""
        code = PoolCode(self.module, "retire", VOID, WORDS, I64)
        block, count = code.arguments
        chunks = code.trunc(code.get(block, Word.CHUNKS), I32)  # before the job may change
        done = self._finish(code, block, count)
        with code.if_then(code.icmp_unsigned("==", done, code.or_(chunks, i32(_SLEEPS)))):
            self._waiting.futex(code, code.half(block, Word.DONE), WAKE, i64(1))
        code.ret_void()
        return code.made

    def _emit_doze(self) -> Any:
        """doze(block): sleep until the next step, unless there is work or an end right now."""
        code = PoolCode(self.module, "doze", VOID, WORDS)
        (block,) = code.arguments
        asleep = code.word(block, Word.ASLEEP)
        code.atomic_rmw("add", asleep, i64(1), "seq_cst")
        ticket = code.get(block, Word.TICKET, "seq_cst")
        code.go_if(code.icmp_unsigned("<", *left(code, ticket)), "up")
        stopped = code.get(block, Word.STOP, "seq_cst")
        code.go_if(code.icmp_unsigned("!=", stopped, i64(0)), "up")
        generation = code.lshr(ticket, i64(32))
        self._waiting.futex(code, code.half(block, Word.TICKET, high=True), WAIT, generation)
        code.enter("up")
        code.atomic_rmw("sub", asleep, i64(1), "monotonic")
        code.ret_void()
        return code.made

    def _emit_work(self) -> None:
        """work(block) -> null: the main function of a worker thread."""
        code = PoolCode(self.module, "work", WORDS, WORDS, public=True)
        (block,) = code.arguments
        one = i64(1)
        index = code.add(
            code.atomic_rmw("add", code.word(block, Word.JOINED), one, "monotonic"), one
        )
        looks = code.local(i64(0))
        code.enter("fresh")
        code.store(i64(0), looks)
        code.enter("look")
        stopped = code.get(block, Word.STOP, "acquire")
        code.go_if(code.icmp_unsigned("!=", stopped, i64(0)), "leave")
        limit = code.get(block, Word.LIMIT, "monotonic")
        code.go_if(code.icmp_unsigned(">=", index, limit), "out")
        last = ir.Constant(I1, True)
        chunk = code.call(self._chunks.claim, [block, last])
        code.go_if(code.icmp_signed(">=", chunk, i64(0)), "chunk")
        looked = code.bump(looks)
        code.go_if(code.icmp_unsigned(">", looked, i64(PAUSES + YIELDS)), "doze")
        self._waiting.pause(code, looked)
        code.go("look")
        code.enter("chunk")
        code.call(self._retire, [block, code.call(self._drain, [block, chunk, last, index])])
        code.go("fresh")
        code.enter("doze")
        code.call(self._doze, [block])
        code.go("fresh")
        code.enter("out")
        self._waiting.futex(code, code.half(block, Word.LIMIT), WAIT, limit)
        code.go("fresh")
        code.enter("leave")
        code.atomic_rmw("add", code.word(block, Word.LEFT), one, "release")
        code.ret(ir.Constant(WORDS, None))

    def _emit_admit(self) -> Any:
        """admit(block, threads): from now on that many take part, the caller among them."""
        code = PoolCode(self.module, "admit", VOID, WORDS, I64)
        block, threads = code.arguments
        code.put(threads, block, Word.LIMIT, "release")
        self._waiting.futex(code, code.half(block, Word.LIMIT), WAKE, i64(EVERYBODY))
        code.ret_void()
        return code.made

    def _emit_publish(self) -> Any:
        """publish(block, kernel, arguments, extent, chunks): open a step, chunk 0 taken."""
        code = PoolCode(self.module, "publish", VOID, WORDS, *[I64] * 4)
        block, *job = code.arguments
        words = (Word.KERNEL, Word.ARGUMENTS, Word.EXTENT, Word.CHUNKS)
        for word, value in zip(words, job, strict=True):
            code.put(value, block, word)
        code.put(i64(0), block, Word.DONE, "monotonic")
        ticket = code.get(block, Word.TICKET, "monotonic")
        generation = code.add(code.lshr(ticket, i64(32)), i64(1))
        bounds = code.or_(code.shl(job[-1], i64(16)), i64(1))
        code.put(code.or_(code.shl(generation, i64(32)), bounds), block, Word.TICKET, "seq_cst")
        asleep = code.get(block, Word.ASLEEP, "seq_cst")
        with code.if_then(code.icmp_unsigned("!=", asleep, i64(0))):
            helpers = code.sub(job[-1], i64(1))
            self._waiting.futex(code, code.half(block, Word.TICKET, high=True), WAKE, helpers)
        code.ret_void()
        return code.made

    def _emit_join(self) -> Any:
        """join(block, count, chunks): the caller's chunks are done; wait for the others'."""
        code = PoolCode(self.module, "join", VOID, WORDS, I64, I64)
        block, count, wide = code.arguments
        chunks, done = code.trunc(wide, I32), code.half(block, Word.DONE)
        all_done = code.icmp_unsigned("==", self._finish(code, block, count), chunks)
        code.go_if(all_done, "end")
        looks = code.local(i64(0))
        code.enter("spin")
        now = code.load_atomic(done, "acquire", 4)
        code.go_if(code.icmp_unsigned("==", now, chunks), "end")
        looked = code.bump(looks)
        self._waiting.pause(code, looked)
        code.go_if(code.icmp_unsigned("<", looked, i64(PAUSES + YIELDS)), "spin")
        code.atomic_rmw("or", done, i32(_SLEEPS), "acq_rel")
        code.enter("sleep")
        now = code.load_atomic(done, "acquire", 4)
        finished = code.icmp_unsigned("==", now, code.or_(chunks, i32(_SLEEPS)))
        code.go_if(finished, "end")
        self._waiting.futex(code, done, WAIT, code.zext(now, I64))
        code.go("sleep")
        code.enter("end")
        code.ret_void()
        return code.made

    def _emit_parallel(self) -> Any:
        """parallel(block, kernel, arguments, extent, chunks, threads): one step, to its end."""
        code = PoolCode(self.module, "parallel", VOID, WORDS, *[I64] * 5)
        block, kernel, arguments, extent, chunks, threads = code.arguments
        job = [kernel, arguments, extent, chunks]
        code.go_if(code.icmp_signed("<=", threads, i64(1)), "alone")
        busy = code.word(block, Word.BUSY)
        exchange = code.cmpxchg(busy, i64(0), i64(1), "acquire", "monotonic")
        code.go_if(code.not_(code.extract_value(exchange, 1)), "alone")
        limit = code.get(block, Word.LIMIT, "monotonic")
        with code.if_then(code.icmp_unsigned("!=", limit, threads), likely=False):
            code.call(self._admit, [block, threads])
        code.call(self._publish, [block, *job])
        count = code.call(self._drain, [block, i64(0), ir.Constant(I1, False), i64(0)])
        code.call(self._join, [block, count, chunks])
        code.put(i64(0), block, Word.BUSY, "release")
        code.ret_void()
        code.enter("alone")
        code.call(self._chunks.alone, job)
        code.ret_void()
        return code.made

    def _emit_run(self) -> Any:
        """run(block, order) -> the step that failed, or -1."""
        recorded = self._emit_steps(PoolCode(self.module, "record", I64, WORDS, WORDS, WORDS))
        code = PoolCode(self.module, "run", I64, WORDS, WORDS, public=True)
        buffer = code.get(code.arguments[0], Word.RECORDING, "monotonic")
        with code.if_then(code.icmp_unsigned("!=", buffer, i64(0)), likely=False):
            given = [*code.arguments, code.inttoptr(buffer, WORDS)]
            code.ret(code.call(recorded, given))
        return self._emit_steps(code)

    def _emit_steps(self, code: PoolCode) -> Any:
        """The body of a function (block, order), and perhaps the buffer of a recording."""
        block, order, *recording = code.arguments
        table, first, last, status, threads = (code.get(order, place) for place in range(5))
        stamps = [
            (buffer, *self._stamps.write_run(code, buffer, (table, first, last, threads)))
            for buffer in recording
        ]
        table, status = (code.inttoptr(word, WORDS) for word in (table, status))
        code.put(i64(0), status, 1, "monotonic")
        step, stamped = code.local(first), code.local(i64(0))
        code.enter("step")
        row = code.gep(table, [code.mul(code.load(step), i64(4))])
        code.go_if(code.icmp_signed(">=", code.load(step), last), "end")
        kernel, arguments, extent, wanted = (code.get(row, column) for column in range(4))
        code.go_if(code.icmp_signed("<=", extent, i64(0)), "next")
        chunks = code.select(code.icmp_signed("<", wanted, extent), wanted, extent)
        code.go_if(code.icmp_signed(">", chunks, i64(1)), "parallel")
        code.call(code.inttoptr(kernel, KERNEL), [arguments, i64(0), extent])
        code.go("check")
        code.enter("parallel")
        chunks = code.select(
            code.icmp_signed("<", chunks, i64(MAX_CHUNKS)), chunks, i64(MAX_CHUNKS)
        )
        code.call(self._parallel, [block, kernel, arguments, extent, chunks, threads])
        code.enter("check")
        failed = code.icmp_signed("!=", code.get(status, 1, "monotonic"), i64(0))
        code.go_if(failed, "failed")
        code.enter("next")
        for _, ticks, apart in stamps:
            code.store(code.add(code.load(stamped), apart), stamped)
            code.store(self._stamps.ticks(code), code.gep(ticks, [code.load(stamped)]))
        code.bump(step)
        code.go("step")
        code.enter("failed")
        code.put(code.load(step), status, 0)
        for buffer, *_ in stamps:
            self._stamps.end_run(code, buffer)
        code.ret(code.load(step))
        code.enter("end")
        for buffer, *_ in stamps:
            self._stamps.end_run(code, buffer)
        code.ret(i64(-1))
        return code.made

    def _emit_stop(self) -> None:
        """stop(block): every worker leaves once it has no chunk. To be repeated until all have:
        a run in another thread may admit workers at the same time."""
        code = PoolCode(self.module, "stop", VOID, WORDS, public=True)
        (block,) = code.arguments
        code.put(i64(1), block, Word.STOP, "seq_cst")
        code.put(i64(EVERYBODY), block, Word.LIMIT, "release")
        self._waiting.futex(code, code.half(block, Word.LIMIT), WAKE, i64(EVERYBODY))
        code.atomic_rmw("add", code.word(block, Word.TICKET), i64(1 << 32), "seq_cst")
        self._waiting.futex(code, code.half(block, Word.TICKET, high=True), WAKE, i64(EVERYBODY))
        code.ret_void()
