"""The function of native calls, as LLVM IR: check, take, allocate, relocate, run, release, wrap.

    call(records, positional, by name):
        for record in records:
            match: run the rows of checks                       else: next record
            take:  the program was not evicted; its binding, an arena and the packed weights
                   are free and as they were                    else: next record
            hold the arrays of the arguments that are read; make those of the results
            store their addresses in the argument blocks
            without the GIL, but for a brief run: run the step table; copy results that are
            arguments
            release what was taken
            wrap the arrays as Tensors, join them
        NotImplemented: the Python path takes the call

The GIL is held but for the run: what was checked still holds when the binding is taken. No Python
code runs before the release, except for that of user's objects when MemoryError is raised. A failed
step gives NotImplemented, too: the Python path runs the call again and raises the error.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from llvmlite import ir

from gptrs.kernels.driver.control_block import I8, I32, I64, VOID, i64
from gptrs.kernels.driver.step_table import CODE, EXCEPTION, INTERRUPTED, POLL
from gptrs.kernels.native_call.emit import CallCode
from gptrs.kernels.native_call.fields import SINGLE, TUPLE, Field
from gptrs.kernels.native_call.interpreter import Interpreter
from gptrs.kernels.native_call.layout import DATA, ITEMS, SIZE

ERROR, MISSED, FAILED = 0, 1, 2
"""Results of an attempt that are no objects: an exception is set, another record may match, a
step failed."""
_SEARCHED = 8  # of the free bindings, from the last one


def build_call_ir() -> str:
    """The module with ``call``, a function of C with the signature of METH_FASTCALL."""
    module: Any = ir.Module("gptrs_native_call")
    _Call(module, Interpreter(module).function)
    return str(module)


class _Call:
    """The module's functions, each generated after its callees."""

    def __init__(self, module: Any, match: Any) -> None:
        self._module, self._match = module, match
        self._pop = self._emit_pop()
        self._take = self._emit_take()
        self._make = self._emit_make()
        self._relocate = self._emit_relocate()
        self._run = self._emit_run()
        self._release = self._emit_release()
        self._wrap = self._emit_wrap()
        self._emit_call(self._emit_attempt())

    def _function(self, name: str, arguments: int, result: Any = I64) -> CallCode:
        return CallCode(self._module, name, arguments, result=result)

    @staticmethod
    def _field(code: CallCode, record: Any, field: Field) -> Any:
        return code.at(record, 8 * field)

    def _fields(self, code: CallCode, record: Any, *fields: Field) -> list[Any]:
        return [self._field(code, record, field) for field in fields]

    def _part(self, code: CallCode, record: Any, state: Any, field: Field) -> Any:
        """The address of a part of the state."""
        return code.add(state, self._field(code, record, field))

    def _emit_pop(self) -> Any:
        """pop(list, value) -> whether ``value`` was among the last of the list and is taken out."""
        code = self._function("pop", 2)
        values, value = code.arguments
        index = code.local(code.at(values, SIZE))
        least = code.sub(code.at(values, SIZE), i64(_SEARCHED))
        code.enter("look")
        now = code.sub(code.load(index), i64(1))
        code.store(now, index)
        code.go_if(code.icmp_signed("<", now, i64(0)), "none")
        code.go_if(code.icmp_signed("<", now, least), "none")
        code.go_if(code.differ(code.at_index(code.at(values, ITEMS), now), value), "look")
        code.api("PyList_SetSlice", values, now, code.add(now, i64(1)), i64(0))
        code.ret(i64(1))
        code.enter("none")
        code.ret(i64(0))
        return code.made

    def _emit_take(self) -> Any:
        """take(record) -> `MISSED`, or the arena, ours until the release; 0 if there is none."""
        code = self._function("take", 1)
        (record,) = code.arguments
        slot, dropped, kept = self._fields(code, record, Field.SLOT, Field.SLOT_DROPPED, Field.KEPT)
        code.go_if(code.differ(code.at(code.add(slot, dropped)), kept), "missed")
        lease = self._field(code, record, Field.LEASE)
        with code.if_then(code.differ(lease, i64(0))):
            place, given = self._fields(code, record, Field.LEASE_GIVEN, Field.GIVEN)
            code.go_if(code.differ(code.at(code.add(lease, place)), given), "missed")
        arenas = self._field(code, record, Field.ARENAS)
        arena = code.local(i64(0))
        with code.if_then(code.differ(arenas, i64(0))):
            last = code.sub(code.at(arenas, SIZE), i64(1))
            code.go_if(code.icmp_signed("<", last, i64(0)), "missed")
            code.store(code.at_index(code.at(arenas, ITEMS), last), arena)
            room = code.at(self._words_of(code, record, code.load(arena)), 8)
            wanted = self._field(code, record, Field.ARENA_BYTES)
            code.go_if(code.icmp_signed("<", room, wanted), "missed")
        bound = self._fields(code, record, Field.FREE, Field.BOUND)
        code.go_if(code.is_zero(code.call(self._pop, bound)), "missed")
        with code.if_then(code.differ(arenas, i64(0))):
            code.api("Py_IncRef", code.load(arena))
            code.call(self._pop, [arenas, code.load(arena)])
        with code.if_then(code.differ(lease, i64(0))):
            self._lease(code, record, lease, Field.RUNNING)
            used = code.api("PyIter_Next", self._field(code, record, Field.TIMES))
            code.swap(used, lease, self._field(code, record, Field.LEASE_USED))
        code.ret(code.load(arena))
        code.enter("missed")
        code.ret(i64(MISSED))
        return code.made

    def _words_of(self, code: CallCode, record: Any, arena: Any) -> Any:
        """The words of an arena: its address and its size."""
        place = self._field(code, record, Field.ARENA_WORDS)
        return code.at(code.at(code.add(arena, place)), DATA)

    def _lease(self, code: CallCode, record: Any, lease: Any, state: Field) -> None:
        """Say whether a run uses the packed weights."""
        value = self._field(code, record, state)
        code.api("Py_IncRef", value)
        code.swap(value, lease, self._field(code, record, Field.LEASE_RUNNING))

    def _emit_make(self) -> Any:
        """make(record, state) -> whether the arrays of the results could be made."""
        code = self._function("make", 2)
        record, state = code.arguments
        arrays = self._part(code, record, state, Field.ARRAYS)
        objects = self._part(code, record, state, Field.OBJECTS)
        inputs, outputs, rows, new_array, kind = self._fields(
            code,
            record,
            *(Field.INPUTS, Field.OUTPUTS, Field.OUTPUT_ROWS, Field.NEW_ARRAY, Field.NDARRAY),
        )
        zero = i64(0)
        with code.each(outputs) as index:
            code.set_index(zero, objects, code.add(inputs, index))
        with code.each(outputs) as index:
            row = code.add(rows, code.mul(index, i64(24)))
            descr, rank, extents = (code.at(row, 8 * word) for word in range(3))
            code.api("Py_IncRef", descr)  # the function takes this reference
            flags = ir.Constant(I32, 0)
            rank = code.trunc(rank, I32)
            given = kind, descr, rank, extents, zero, zero, flags, zero
            made = code.call_at(new_array, *given)
            code.go_if(code.is_zero(made), "no_memory")
            place = code.add(inputs, index)
            code.set_index(made, objects, place)
            code.set_index(code.at(made, DATA), arrays, place)
        code.ret(i64(1))
        code.enter("no_memory")
        code.ret(zero)
        return code.made

    def _emit_relocate(self) -> Any:
        """relocate(record, state, arena): write the addresses of this call into the argument
        blocks."""
        code = self._function("relocate", 3, VOID)
        record, state, arena = code.arguments
        arrays = self._part(code, record, state, Field.ARRAYS)
        count, rows = self._fields(code, record, Field.RELOCATIONS, Field.RELOCATION_ROWS)
        with code.each(count) as index:
            row = code.add(rows, code.mul(index, i64(24)))
            source, place, offset = (code.at(row, 8 * word) for word in range(3))
            code.set_at(code.add(code.at_index(arrays, source), offset), place)
        code.go_if(code.is_zero(arena), "end")
        address = code.at(self._words_of(code, record, arena))
        last = code.at(self._field(code, record, Field.ARENA_ADDRESS))
        code.go_if(code.icmp_signed("==", last, address), "end")
        count, rows = self._fields(code, record, Field.ARENA_RELOCATIONS, Field.ARENA_ROWS)
        with code.each(count) as index:
            row = code.add(rows, code.mul(index, i64(16)))
            code.set_at(code.add(address, code.at(row, 8)), code.at(row))
        code.enter("end")
        code.ret_void()
        return code.made

    def _emit_run(self) -> Any:
        """run(record, state) -> the step that failed, or -1. Other threads may run Python
        meanwhile, unless it is brief."""
        code = self._function("run", 2)
        record, state = code.arguments
        poll, status = self._fields(code, record, Field.POLL, Field.STATUS)
        with code.if_then(code.differ(poll, i64(0)), likely=False):
            main = code.at(self._field(code, record, Field.MAIN))
            is_main = code.icmp_signed("==", code.api("PyThread_get_thread_ident"), main)
            code.set_at(code.select(is_main, poll, i64(0)), status, 8 * POLL)
        run, block, order = self._fields(code, record, Field.RUN, Field.BLOCK, Field.ORDER)
        block = code.at(block)
        thread = code.local(i64(0))
        with code.if_then(code.is_zero(self._field(code, record, Field.BRIEF))):
            code.store(code.api("PyEval_SaveThread"), thread)
        failed = code.call_at(run, block, order)
        code.go_if(code.icmp_signed(">=", failed, i64(0)), "end")
        arrays = self._part(code, record, state, Field.ARRAYS)
        count, rows = self._fields(code, record, Field.COPIES, Field.COPY_ROWS)
        with code.each(count) as index:
            row = code.add(rows, code.mul(index, i64(24)))
            source, target = (code.at_index(arrays, code.at(row, 8 * n)) for n in range(2))
            bytes_at = I8.as_pointer()
            read, written = (code.inttoptr(place, bytes_at) for place in (source, target))
            code.copy(read, written, code.at(row, 16))
        code.enter("end")
        with code.if_then(code.differ(code.load(thread), i64(0))):
            code.api("PyEval_RestoreThread", code.load(thread))
        code.ret(failed)
        return code.made

    def _emit_release(self) -> Any:
        """release(record, state, arena): give back the binding, the arena and the arrays of the
        arguments."""
        code = self._function("release", 3, VOID)
        record, state, arena = code.arguments
        lease = self._field(code, record, Field.LEASE)
        with code.if_then(code.differ(lease, i64(0))):
            self._lease(code, record, lease, Field.IDLE)
        with code.if_then(code.differ(arena, i64(0))):
            code.api("PyList_Append", self._field(code, record, Field.ARENAS), arena)
            code.api("Py_DecRef", arena)
        code.api("PyList_Append", *self._fields(code, record, Field.FREE, Field.BOUND))
        objects = self._part(code, record, state, Field.OBJECTS)
        for held in self._each_held(code, record, objects):
            code.api("Py_DecRef", held)
        code.ret_void()
        return code.made

    def _each_held(self, code: CallCode, record: Any, objects: Any) -> Generator[Any]:
        """A loop over the arrays of arguments that are held during a run; numbers are none."""
        count, rows = self._fields(code, record, Field.HELD, Field.HELD_ROWS)
        with code.each(count) as index:
            held = code.at_index(objects, code.at_index(rows, index))
            with code.if_then(code.differ(held, i64(0))):
                yield held

    @staticmethod
    def _drop(code: CallCode, value: Any) -> None:
        with code.if_then(code.differ(value, i64(0))):
            code.api("Py_DecRef", value)

    def _tensor(self, code: CallCode, record: Any, array: Any, row: Any) -> Any:
        """A Tensor that takes the reference to ``array``; null where there is no memory."""
        made = code.api("PyType_GenericAlloc", self._field(code, record, Field.TENSOR), i64(0))
        code.go_if(code.is_zero(made), "no_memory")
        none, empty = self._fields(code, record, Field.NONE, Field.EMPTY)
        slots = (
            (Field.TENSOR_TYPE, code.at(row, 8)),
            (Field.TENSOR_DONATED, empty),
            (Field.TENSOR_VALUE, none),
            (Field.TENSOR_RECORDER, none),
            (Field.TENSOR_WEAK, code.at(row, 16)),
        )
        for field, value in slots:
            code.api("Py_IncRef", value)
            code.set_at(value, code.add(made, self._field(code, record, field)))
        code.set_at(array, code.add(made, self._field(code, record, Field.TENSOR_ARRAY)))
        return made

    def _emit_wrap(self) -> Any:
        """wrap(record, state) -> the result of the call, or null."""
        code = self._function("wrap", 2)
        record, state = code.arguments
        objects = self._part(code, record, state, Field.OBJECTS)
        inputs, rows, join, count = self._fields(
            code, record, Field.INPUTS, Field.RESULT_ROWS, Field.JOIN, Field.RESULTS
        )

        def wrapped(row: Any) -> Any:
            place = code.add(inputs, code.at(row))
            array = code.at_index(objects, place)
            tensor = self._tensor(code, record, array, row)
            code.set_index(i64(0), objects, place)  # the Tensor has the reference
            return tensor

        result = code.local(i64(0))
        code.go_if(code.differ(join, i64(SINGLE)), "several")
        code.ret(wrapped(rows))
        code.enter("several")
        items = code.local(i64(0))
        with code.if_else(code.icmp_signed("==", join, i64(TUPLE))) as (as_tuple, as_list):
            with as_tuple:
                made = code.api("PyTuple_New", count)
                code.store(made, result)
                code.store(code.add(made, i64(ITEMS)), items)
            with as_list:
                code.store(code.api("PyList_New", count), result)
        code.go_if(code.is_zero(code.load(result)), "no_memory")
        with code.if_then(code.differ(join, i64(TUPLE))):
            code.store(code.at(code.load(result), ITEMS), items)
        with code.each(count) as index:
            tensor = wrapped(code.add(rows, code.mul(index, i64(24))))
            code.set_index(tensor, code.load(items), index)
        made = code.load(result)
        with code.if_then(code.icmp_signed("==", join, i64(TUPLE))):
            code.ret(made)
        joined = code.api("PyObject_CallOneArg", join, made)
        code.api("Py_DecRef", made)
        code.ret(joined)
        code.enter("no_memory")
        self._drop(code, code.load(result))
        code.ret(i64(ERROR))
        return code.made

    def _count_use(self, code: CallCode, record: Any) -> None:
        """Make the program and the cached call the most recently used ones."""
        ticks, slot, cached = self._fields(code, record, Field.TICKS, Field.SLOT, Field.CACHED)
        tick = code.api("PyIter_Next", ticks)
        code.api("Py_IncRef", tick)
        code.swap(tick, slot, self._field(code, record, Field.SLOT_USED))
        code.swap(tick, cached, self._field(code, record, Field.CACHED_USED))

    def _emit_attempt(self) -> Any:
        """attempt(record, positional, by name) -> the result, or one of the numbers above."""
        code = self._function("attempt", 3)
        record, positional, by_name = code.arguments
        state = code.address(code.alloca(I64, self._field(code, record, Field.STATE)))
        code.set_at(positional, state, 0)
        code.set_at(by_name, state, 8)
        code.go_if(code.is_zero(code.call(self._match, [record, state])), "missed")
        arena = code.call(self._take, [record])
        code.go_if(code.icmp_signed("==", arena, i64(MISSED)), "missed")
        objects = self._part(code, record, state, Field.OBJECTS)
        inputs, outputs = self._fields(code, record, Field.INPUTS, Field.OUTPUTS)
        for held in self._each_held(code, record, objects):
            code.api("Py_IncRef", held)
        result = code.local(i64(ERROR))
        made = code.call(self._make, [record, state])
        code.go_if(code.is_zero(made), "release")
        code.call(self._relocate, [record, state, arena])
        failed = code.call(self._run, [record, state])
        well = code.icmp_signed("<", failed, i64(0))
        code.store(code.select(well, i64(MISSED), i64(FAILED)), result)
        with code.if_then(code.not_(well), likely=False):
            self._raise_kept(code, record, result)
        code.enter("release")
        code.call(self._release, [record, state, arena])
        with code.if_then(code.icmp_signed("==", code.load(result), i64(MISSED))):
            self._count_use(code, record)
            code.store(code.call(self._wrap, [record, state]), result)
        with code.each(outputs) as index:
            self._drop(code, code.at_index(objects, code.add(inputs, index)))
        code.ret(code.load(result))
        code.enter("missed")
        code.ret(i64(MISSED))
        return code.made

    def _raise_kept(self, code: CallCode, record: Any, result: Any) -> None:
        """Set the exception of a signal handler that ended the run."""
        status = self._field(code, record, Field.STATUS)
        interrupted = code.icmp_signed("==", code.at(status, 8 * CODE), i64(INTERRUPTED))
        with code.if_then(interrupted):
            kept = [code.at(status, 8 * (EXCEPTION + part)) for part in range(3)]
            code.api("PyErr_Restore", *kept)
            code.store(i64(ERROR), result)

    def _emit_call(self, attempt: Any) -> None:
        """call(NotImplemented, arguments, count): see above."""
        code = CallCode(self._module, "call", 3, public=True)
        missed, arguments, _ = code.arguments
        records, positional, by_name = (code.at(arguments, 8 * n) for n in range(3))
        index = code.local(i64(0))
        code.enter("next")
        now = code.load(index)
        code.go_if(code.icmp_signed(">=", now, code.at(records, SIZE)), "missed")
        code.store(code.add(now, i64(1)), index)
        owner = code.at_index(code.at(records, ITEMS), now)
        code.api("Py_IncRef", owner)  # another thread may take it out during the run
        record = code.at(code.at(owner, ITEMS), DATA)
        result = code.call(attempt, [record, positional, by_name])
        code.api("Py_DecRef", owner)
        code.go_if(code.icmp_signed("==", result, i64(MISSED)), "next")
        code.go_if(code.icmp_signed("==", result, i64(FAILED)), "missed")
        code.ret(result)
        code.enter("missed")
        code.api("Py_IncRef", missed)
        code.ret(missed)
