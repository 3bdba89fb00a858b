"""The worker pool that walks a step table, as LLVM IR: one ticket word, bounded spins, a futex.

`build_pool_ir` gives a module with three functions (every word has 64 bits):

    run(block, table, first, last, status, threads) -> the step that failed, or -1
    work(block)     what a worker thread runs until `stop`
    stop(block)     lets the workers leave

How a parallel step goes. The caller writes the job (kernel, arguments, how the extent is cut) and
then stores the *ticket*: generation << 32 | end << 16 | begin, the chunks that are left. The caller
raises the begin by a compare-exchange, a worker lowers the end: chunks that lie side by side stay
with one thread, step after step, and what one step wrote is in that thread's cache in the next.
Whoever has made the exchange owns the chunk, and reads the job only then: a step does not end
before its last chunk, so the job cannot change under an owner, and a ticket that comes back with
the same bits after 2^32 steps is as good as the first. A missing worker costs time alone. Each
thread adds the number of its chunks to *done*; the caller leaves when done equals chunks.

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
from enum import IntEnum
from functools import cache
from typing import Any

from llvmlite import ir

# llvmlite has no types: its values are Any here and stay in this file.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUntypedBaseClass=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

MAX_CHUNKS = 0xFFFF
"""Pieces that a step's extent is cut into at most: the ticket has 16 bits for them."""

BLOCK_WORDS = 64
"""Words of the control block: zero at first, aligned to 128 bytes, never freed."""

PAUSES = 200
"""How often an idle worker looks at the ticket, and a caller at *done*, with a pause in between
(25 ns on AMD Zen, 50 on Intel Skylake): 5 to 10 µs in which nothing but a store is waited for."""

YIELDS = 150
"""How often they look afterwards, leaving the core to other threads in between, before they sleep.

A yield takes half a µs where nobody wants the core, so that sleep, from which a worker needs about
40 µs to wake, begins after some 90. Where somebody does (more threads than cores, another program,
the scheduler's habit of waking a worker on its caller's core) pausing on would keep the core from
the very thread that is waited for. Beside other busy programs 2,000 pauses made two threads 0.7 to
0.9 times as fast as one, yields 1 to 1.8 times, and 8 threads on 2 cores no slower than 2.
"""


class Word(IntEnum):
    """Offsets in the control block. 16 words are 128 bytes, the unit that CPUs share lines in."""

    TICKET = 0
    DONE = 16  # chunks finished; bit 31: the caller sleeps
    KERNEL = 32
    ARGUMENTS = 33
    CHUNKS = 34
    LENGTH = 35  # of the shorter chunks
    LONGER = 36  # how many chunks, the first ones, are longer by one
    ASLEEP = 40
    BUSY = 41
    LIMIT = 48  # workers with an index from here on stay out
    STOP = 49
    JOINED = 50
    LEFT = 51  # workers that have stopped


_FUTEX = {"x86_64": 202, "aarch64": 98}  # the system call's number: asm/unistd.h
# `isb` waits longer than `yield`, which is nothing on most Arm cores (as Rust's spin_loop).
_PAUSE = {"x86_64": ("llvm.x86.sse2.pause", []), "aarch64": ("llvm.aarch64.isb", [15])}
_WAIT, _WAKE = 128, 129  # FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG: linux/futex.h
_EVERYBODY = 0x7FFFFFFF
_SLEEPS = 1 << 31

_I1, _I32, _I64, _VOID = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.VoidType()
_WORDS = _I64.as_pointer()
_KERNEL = ir.FunctionType(_VOID, [_I64] * 3).as_pointer()


@cache
def supported() -> bool:
    """Whether the pool runs here: Linux on 64-bit x86 or Arm."""
    return sys.platform == "linux" and platform.machine() in _FUTEX and sys.maxsize > 1 << 32


def build_pool_ir(machine: str = "") -> str:
    """The module for ``machine``, ``x86_64`` or ``aarch64`` (this one if empty).

    Equal machines get equal text. Raises `KeyError` for any other machine.
    """
    return str(_Pool(machine or platform.machine()).module)


def _i64(value: int) -> Any:
    return ir.Constant(_I64, value)


def _i32(value: int) -> Any:
    return ir.Constant(_I32, value)


class _Code(ir.IRBuilder):
    """A builder in a new function; finds blocks by name and words by their offset."""

    def __init__(self, module: Any, name: str, result: Any, *arguments: Any) -> None:
        self.made: Any = ir.Function(module, ir.FunctionType(result, arguments), name)
        super().__init__(self.made.append_basic_block("entry"))
        self.arguments: tuple[Any, ...] = self.made.args
        self._places: dict[str, Any] = {}

    def word(self, pointer: Any, offset: int) -> Any:
        return self.gep(pointer, [_i64(offset)])

    def half(self, pointer: Any, offset: int, *, high: bool = False) -> Any:
        """The address of 32 bits of a word, as futexes are; both machines are little-endian."""
        halves = self.bitcast(self.word(pointer, offset), _I32.as_pointer())
        return self.gep(halves, [_i64(int(high))])

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
        slot = self.alloca(_I64)
        self.store(value, slot)
        return slot

    def bump(self, slot: Any) -> Any:
        more = self.add(self.load(slot), _i64(1))
        self.store(more, slot)
        return more

    def place(self, name: str) -> Any:
        """The block called ``name``, made when it is first asked for."""
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


class _Pool:
    """The module's functions, each made after those that it calls."""

    def __init__(self, machine: str) -> None:
        self.module: Any = ir.Module("gptrs_pool")
        self._number = _i64(_FUTEX[machine])
        name, arguments = _PAUSE[machine]
        self._pause_arguments = [_i32(value) for value in arguments]
        pause = ir.FunctionType(_VOID, [_I32] * len(arguments))
        self._pause_call: Any = ir.Function(self.module, pause, name)
        self._yield_call: Any = ir.Function(self.module, ir.FunctionType(_I32, []), "sched_yield")
        variadic = ir.FunctionType(_I64, [_I64], var_arg=True)
        self._syscall: Any = ir.Function(self.module, variadic, "syscall")
        self._piece = self._emit_piece()
        self._alone = self._emit_alone()
        self._claim = self._emit_claim()
        self._drain = self._emit_drain()
        self._retire = self._emit_retire()
        self._doze = self._emit_doze()
        self._emit_work()
        self._admit = self._emit_admit()
        self._publish = self._emit_publish()
        self._join = self._emit_join()
        self._parallel = self._emit_parallel()
        self._emit_run()
        self._emit_stop()

    def _function(self, name: str, result: Any, *arguments: Any, public: bool = False) -> _Code:
        code = _Code(self.module, name, result, *arguments)
        if not public:
            code.made.linkage = "internal"
        return code

    def _pause(self, code: _Code, looks: Any) -> None:
        """Wait a moment between two looks, the more politely the more there were."""
        patient = code.icmp_unsigned(">", looks, _i64(PAUSES))
        with code.if_else(patient, likely=False) as (politely, shortly):
            with politely:
                code.call(self._yield_call, [])
            with shortly:
                code.call(self._pause_call, self._pause_arguments)

    def _futex(self, code: _Code, address: Any, operation: int, value: Any) -> None:
        """Sleep while the 32 bits at ``address`` equal ``value``, or wake ``value`` sleepers.

        Returns early for a signal or a changed value: every caller looks again.
        """
        zero = _i64(0)
        rest = [code.ptrtoint(address, _I64), _i64(operation), value, zero, zero, zero]
        code.call(self._syscall, [self._number, *rest])

    def _emit_piece(self) -> Any:
        """piece(kernel, arguments, length, longer, chunk): run one chunk."""
        code = self._function("piece", _VOID, *[_I64] * 5)
        kernel, arguments, length, longer, chunk = code.arguments
        has_more = code.icmp_unsigned("<", chunk, longer)
        first = code.add(code.mul(chunk, length), code.select(has_more, chunk, longer))
        last = code.add(code.add(first, length), code.zext(has_more, _I64))
        code.call(code.inttoptr(kernel, _KERNEL), [arguments, first, last])
        code.ret_void()
        return code.made

    def _emit_alone(self) -> Any:
        """alone(kernel, arguments, length, longer, chunks): all of them in this thread."""
        code = self._function("alone", _VOID, *[_I64] * 5)
        *job, chunks = code.arguments
        chunk = code.local(_i64(0))
        code.enter("next")
        code.call(self._piece, [*job, code.load(chunk)])
        code.go_if(code.icmp_unsigned("<", code.bump(chunk), chunks), "next")
        code.ret_void()
        return code.made

    def _left(self, code: _Code, ticket: Any) -> tuple[Any, Any]:
        """The begin and the end of the chunks that are left."""
        begin = code.and_(ticket, _i64(MAX_CHUNKS))
        return begin, code.and_(code.lshr(ticket, _i64(16)), _i64(MAX_CHUNKS))

    def _emit_claim(self) -> Any:
        """claim(block, last) -> the first chunk that is left, or the last one, which is now this
        thread's; or -1."""
        code = self._function("claim", _I64, _WORDS, _I1)
        block, last = code.arguments
        code.enter("look")
        ticket = code.get(block, Word.TICKET, "monotonic")
        begin, end = self._left(code, ticket)
        code.go_if(code.icmp_unsigned(">=", begin, end), "none")
        address, one = code.word(block, Word.TICKET), _i64(1)
        fewer = code.add(ticket, code.select(last, _i64(-1 << 16), one))
        exchange = code.cmpxchg(address, ticket, fewer, "acquire", "monotonic")
        code.cbranch(code.extract_value(exchange, 1), code.place("mine"), code.place("look"))
        code.enter("mine")
        code.ret(code.select(last, code.sub(end, one), begin))
        code.enter("none")
        code.ret(_i64(-1))
        return code.made

    def _emit_drain(self) -> Any:
        """drain(block, chunk, last) -> how many: run a claimed chunk and all that can be."""
        code = self._function("drain", _I64, _WORDS, _I64, _I1)
        block, claimed, last = code.arguments
        words = (Word.KERNEL, Word.ARGUMENTS, Word.LENGTH, Word.LONGER)
        job = [code.get(block, word) for word in words]
        chunk, count = code.local(claimed), code.local(_i64(0))
        code.enter("next")
        code.call(self._piece, [*job, code.load(chunk)])
        code.bump(count)
        code.store(code.call(self._claim, [block, last]), chunk)
        code.go_if(code.icmp_signed(">=", code.load(chunk), _i64(0)), "next")
        code.ret(code.load(count))
        return code.made

    def _finish(self, code: _Code, block: Any, count: Any) -> Any:
        """Add ``count`` to *done* and give its new value, 32 bits."""
        count = code.trunc(count, _I32)
        address = code.half(block, Word.DONE)
        return code.add(code.atomic_rmw("add", address, count, "acq_rel"), count)

    def _emit_retire(self) -> Any:
        """retire(block, count): a worker's chunks are done; the last one wakes the caller."""
        code = self._function("retire", _VOID, _WORDS, _I64)
        block, count = code.arguments
        chunks = code.trunc(code.get(block, Word.CHUNKS), _I32)  # before the job may change
        done = self._finish(code, block, count)
        with code.if_then(code.icmp_unsigned("==", done, code.or_(chunks, _i32(_SLEEPS)))):
            self._futex(code, code.half(block, Word.DONE), _WAKE, _i64(1))
        code.ret_void()
        return code.made

    def _emit_doze(self) -> Any:
        """doze(block): sleep until the next step, unless there is work or an end right now."""
        code = self._function("doze", _VOID, _WORDS)
        (block,) = code.arguments
        asleep = code.word(block, Word.ASLEEP)
        code.atomic_rmw("add", asleep, _i64(1), "seq_cst")
        ticket = code.get(block, Word.TICKET, "seq_cst")
        code.go_if(code.icmp_unsigned("<", *self._left(code, ticket)), "up")
        stopped = code.get(block, Word.STOP, "seq_cst")
        code.go_if(code.icmp_unsigned("!=", stopped, _i64(0)), "up")
        generation = code.lshr(ticket, _i64(32))
        self._futex(code, code.half(block, Word.TICKET, high=True), _WAIT, generation)
        code.enter("up")
        code.atomic_rmw("sub", asleep, _i64(1), "monotonic")
        code.ret_void()
        return code.made

    def _emit_work(self) -> None:
        """work(block) -> null: the life of a worker."""
        code = self._function("work", _WORDS, _WORDS, public=True)
        (block,) = code.arguments
        one = _i64(1)
        index = code.add(
            code.atomic_rmw("add", code.word(block, Word.JOINED), one, "monotonic"), one
        )
        looks = code.local(_i64(0))
        code.enter("fresh")
        code.store(_i64(0), looks)
        code.enter("look")
        stopped = code.get(block, Word.STOP, "acquire")
        code.go_if(code.icmp_unsigned("!=", stopped, _i64(0)), "leave")
        limit = code.get(block, Word.LIMIT, "monotonic")
        code.go_if(code.icmp_unsigned(">=", index, limit), "out")
        last = ir.Constant(_I1, True)
        chunk = code.call(self._claim, [block, last])
        code.go_if(code.icmp_signed(">=", chunk, _i64(0)), "chunk")
        looked = code.bump(looks)
        code.go_if(code.icmp_unsigned(">", looked, _i64(PAUSES + YIELDS)), "doze")
        self._pause(code, looked)
        code.go("look")
        code.enter("chunk")
        code.call(self._retire, [block, code.call(self._drain, [block, chunk, last])])
        code.go("fresh")
        code.enter("doze")
        code.call(self._doze, [block])
        code.go("fresh")
        code.enter("out")
        self._futex(code, code.half(block, Word.LIMIT), _WAIT, limit)
        code.go("fresh")
        code.enter("leave")
        code.atomic_rmw("add", code.word(block, Word.LEFT), one, "release")
        code.ret(ir.Constant(_WORDS, None))

    def _emit_admit(self) -> Any:
        """admit(block, threads): from now on that many take part, the caller among them."""
        code = self._function("admit", _VOID, _WORDS, _I64)
        block, threads = code.arguments
        code.put(threads, block, Word.LIMIT, "release")
        self._futex(code, code.half(block, Word.LIMIT), _WAKE, _i64(_EVERYBODY))
        code.ret_void()
        return code.made

    def _emit_publish(self) -> Any:
        """publish(block, kernel, arguments, length, longer, chunks): open a step, chunk 0 taken."""
        code = self._function("publish", _VOID, _WORDS, *[_I64] * 5)
        block, *job = code.arguments
        words = (Word.KERNEL, Word.ARGUMENTS, Word.LENGTH, Word.LONGER, Word.CHUNKS)
        for word, value in zip(words, job, strict=True):
            code.put(value, block, word)
        code.put(_i64(0), block, Word.DONE, "monotonic")
        ticket = code.get(block, Word.TICKET, "monotonic")
        generation = code.add(code.lshr(ticket, _i64(32)), _i64(1))
        bounds = code.or_(code.shl(job[-1], _i64(16)), _i64(1))
        code.put(code.or_(code.shl(generation, _i64(32)), bounds), block, Word.TICKET, "seq_cst")
        asleep = code.get(block, Word.ASLEEP, "seq_cst")
        with code.if_then(code.icmp_unsigned("!=", asleep, _i64(0))):
            helpers = code.sub(job[-1], _i64(1))
            self._futex(code, code.half(block, Word.TICKET, high=True), _WAKE, helpers)
        code.ret_void()
        return code.made

    def _emit_join(self) -> Any:
        """join(block, count, chunks): the caller's chunks are done; wait for the others'."""
        code = self._function("join", _VOID, _WORDS, _I64, _I64)
        block, count, wide = code.arguments
        chunks, done = code.trunc(wide, _I32), code.half(block, Word.DONE)
        all_done = code.icmp_unsigned("==", self._finish(code, block, count), chunks)
        code.go_if(all_done, "end")
        looks = code.local(_i64(0))
        code.enter("spin")
        now = code.load_atomic(done, "acquire", 4)
        code.go_if(code.icmp_unsigned("==", now, chunks), "end")
        looked = code.bump(looks)
        self._pause(code, looked)
        code.go_if(code.icmp_unsigned("<", looked, _i64(PAUSES + YIELDS)), "spin")
        code.atomic_rmw("or", done, _i32(_SLEEPS), "acq_rel")
        code.enter("sleep")
        now = code.load_atomic(done, "acquire", 4)
        finished = code.icmp_unsigned("==", now, code.or_(chunks, _i32(_SLEEPS)))
        code.go_if(finished, "end")
        self._futex(code, done, _WAIT, code.zext(now, _I64))
        code.go("sleep")
        code.enter("end")
        code.ret_void()
        return code.made

    def _emit_parallel(self) -> Any:
        """parallel(block, kernel, arguments, extent, chunks, threads): one step, to its end."""
        code = self._function("parallel", _VOID, _WORDS, *[_I64] * 5)
        block, kernel, arguments, extent, chunks, threads = code.arguments
        length = code.udiv(extent, chunks)
        longer = code.sub(extent, code.mul(length, chunks))
        job = [kernel, arguments, length, longer, chunks]
        code.go_if(code.icmp_signed("<=", threads, _i64(1)), "alone")
        busy = code.word(block, Word.BUSY)
        exchange = code.cmpxchg(busy, _i64(0), _i64(1), "acquire", "monotonic")
        code.go_if(code.not_(code.extract_value(exchange, 1)), "alone")
        limit = code.get(block, Word.LIMIT, "monotonic")
        with code.if_then(code.icmp_unsigned("!=", limit, threads), likely=False):
            code.call(self._admit, [block, threads])
        code.call(self._publish, [block, *job])
        count = code.call(self._drain, [block, _i64(0), ir.Constant(_I1, False)])
        code.call(self._join, [block, count, chunks])
        code.put(_i64(0), block, Word.BUSY, "release")
        code.ret_void()
        code.enter("alone")
        code.call(self._alone, job)
        code.ret_void()
        return code.made

    def _emit_run(self) -> None:
        """run(block, table, first, last, status, threads) -> the step that failed, or -1."""
        parameters = [_WORDS, _WORDS, _I64, _I64, _WORDS, _I64]
        code = self._function("run", _I64, *parameters, public=True)
        block, table, first, last, status, threads = code.arguments
        code.put(_i64(0), status, 1, "monotonic")
        step = code.local(first)
        code.enter("step")
        row = code.gep(table, [code.mul(code.load(step), _i64(4))])
        code.go_if(code.icmp_signed(">=", code.load(step), last), "end")
        kernel, arguments, extent, wanted = (code.get(row, column) for column in range(4))
        code.go_if(code.icmp_signed("<=", extent, _i64(0)), "next")
        chunks = code.select(code.icmp_signed("<", wanted, extent), wanted, extent)
        code.go_if(code.icmp_signed(">", chunks, _i64(1)), "parallel")
        code.call(code.inttoptr(kernel, _KERNEL), [arguments, _i64(0), extent])
        code.go("check")
        code.enter("parallel")
        chunks = code.select(
            code.icmp_signed("<", chunks, _i64(MAX_CHUNKS)), chunks, _i64(MAX_CHUNKS)
        )
        code.call(self._parallel, [block, kernel, arguments, extent, chunks, threads])
        code.enter("check")
        failed = code.icmp_signed("!=", code.get(status, 1, "monotonic"), _i64(0))
        code.go_if(failed, "failed")
        code.enter("next")
        code.bump(step)
        code.go("step")
        code.enter("failed")
        code.put(code.load(step), status, 0)
        code.ret(code.load(step))
        code.enter("end")
        code.ret(_i64(-1))

    def _emit_stop(self) -> None:
        """stop(block): every worker leaves once it has no chunk. To be repeated until all have:
        a run in another thread may admit workers at the same time."""
        code = self._function("stop", _VOID, _WORDS, public=True)
        (block,) = code.arguments
        code.put(_i64(1), block, Word.STOP, "seq_cst")
        code.put(_i64(_EVERYBODY), block, Word.LIMIT, "release")
        self._futex(code, code.half(block, Word.LIMIT), _WAKE, _i64(_EVERYBODY))
        code.atomic_rmw("add", code.word(block, Word.TICKET), _i64(1 << 32), "seq_cst")
        self._futex(code, code.half(block, Word.TICKET, high=True), _WAKE, _i64(_EVERYBODY))
        code.ret_void()
