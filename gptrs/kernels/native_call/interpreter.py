"""The interpreter of a native call's checks, as LLVM IR.

    match(record, state) -> 1 if all rows of the record hold, else 0

`gptrs.kernels.native_call.rows` describes them; each operation is a basic block here. Nothing is
changed but the state, words on the caller's stack:

    | registers ... | addresses of arrays | their objects | numbers, two words each |

No row runs Python code: dictionaries are read at strings, and only built-in values are compared.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.driver.control_block import i64
from gptrs.kernels.native_call.emit import CallCode
from gptrs.kernels.native_call.fields import Field
from gptrs.kernels.native_call.layout import (
    CONTENT,
    DATA,
    DESCR,
    EXTENTS,
    FLAGS,
    ITEMS,
    RANK,
    SIZE,
    TYPE,
    VERSION,
)
from gptrs.kernels.native_call.rows import ROW, Op

F64 = ir.DoubleType()
_EQUAL = 2  # Py_EQ
_MONOTONIC = 6 if sys.platform == "linux" else 1  # CLOCK_MONOTONIC, Linux's of the last tick


class _Row(NamedTuple):
    """The words of a row, loaded where they are used."""

    code: CallCode
    words: Any
    state: Any

    @property
    def source(self) -> Any:
        return self.code.at_index(self.state, self.first)

    @property
    def first(self) -> Any:
        """The number of the first source."""
        return self._word(1)

    @property
    def target(self) -> Any:
        """The number of the first target."""
        return self._word(2)

    @property
    def a(self) -> Any:
        return self._word(3)

    @property
    def b(self) -> Any:
        return self._word(4)

    @property
    def c(self) -> Any:
        return self._word(5)

    def _word(self, place: int) -> Any:
        return self.code.at(self.words, 8 * place)

    def put(self, value: Any, index: Any = None) -> None:
        """Set the target, or the one ``index`` behind it."""
        target = self.target if index is None else self.code.add(self.target, index)
        self.code.set_index(value, self.state, target)


class Interpreter:
    """Emits `match` into a module."""

    def __init__(self, module: Any) -> None:
        code = self._code = CallCode(module, "match", 2)
        record, self._state = code.arguments
        self._arrays = self._part(record, Field.ARRAYS)
        self._objects = self._part(record, Field.OBJECTS)
        self._numbers = self._part(record, Field.NUMBERS)
        self._key, self._value, self._at = (code.local(i64(0)) for _ in range(3))
        with code.goto_entry_block():
            self._times = code.alloca(code.arguments[0].type, 2)
        row = self._row = code.local(code.at(record, 8 * Field.ROWS))
        code.enter("row")
        words = code.load(row)
        code.store(code.add(words, i64(8 * ROW)), row)
        start: Any = code.block
        blocks = {op: code.append_basic_block(op.name.lower()) for op in Op}
        code.position_at_end(start)
        switch = code.switch(code.at(words), code.place("missed"))
        for op, block in blocks.items():
            switch.add_case(i64(op), block)
            code.position_at_end(block)
            if op is Op.END:
                code.ret(i64(1))
            else:
                getattr(self, f"_{op.name.lower()}")(code, _Row(code, words, self._state))
                code.go("row")
        code.enter("missed")
        code.ret(i64(0))
        self.function = code.made

    def _part(self, record: Any, field: Field) -> Any:
        """The address of a part of the state."""
        code = self._code
        return code.add(self._state, code.at(record, 8 * field))

    def _need(self, condition: Any) -> None:
        self._code.go_if(self._code.not_(condition), "missed")

    def _need_same(self, a: Any, b: Any) -> None:
        self._code.go_if(self._code.differ(a, b), "missed")

    def _need_no_error(self) -> None:
        """An error of the last function, if there is one, is cleared."""
        code = self._code
        with code.if_then(code.differ(code.api("PyErr_Occurred"), i64(0)), likely=False):
            code.api("PyErr_Clear")
            code.go("missed")

    def _const(self, code: CallCode, row: _Row) -> None:
        row.put(row.a)

    def _same(self, code: CallCode, row: _Row) -> None:
        self._need_same(row.source, row.a)

    def _load(self, code: CallCode, row: _Row) -> None:
        value = code.at(code.add(row.source, row.a))
        code.go_if(code.is_zero(value), "missed")
        row.put(value)

    def _word(self, code: CallCode, row: _Row) -> None:
        self._need_same(code.at(code.add(row.source, row.a)), row.b)

    def _equal(self, code: CallCode, row: _Row) -> None:
        self._need_equal(row.source, row.a)

    def _need_equal(self, value: Any, wanted: Any) -> None:
        """Two values that are identical, or of one built-in type and equal."""
        code = self._code
        with code.if_then(code.differ(value, wanted), likely=False):
            code.go_if(code.is_zero(value), "missed")
            self._need_same(code.at(value, TYPE), code.at(wanted, TYPE))
            equal = code.api("PyObject_RichCompareBool", value, wanted, i64(_EQUAL))
            code.go_if(code.icmp_signed("<=", equal, equal.type(0)), "missed")

    def _items_of(self, code: CallCode, row: _Row) -> Any:
        """The address of the items of a tuple, or of a list, that are as many as expected."""
        self._need_same(code.at(row.source, SIZE), row.a)
        inline = code.add(row.source, i64(ITEMS))
        return code.select(code.is_zero(row.c), inline, code.at(row.source, ITEMS))

    def _unpack(self, code: CallCode, row: _Row) -> None:
        items = self._items_of(code, row)
        with code.each(row.a) as index:
            row.put(code.at_index(items, index), index)

    def _items(self, code: CallCode, row: _Row) -> None:
        items, wanted = self._items_of(code, row), row.b
        with code.each(row.a) as index:
            self._need_same(code.at_index(items, index), code.at_index(wanted, index))

    def _next(self, mapping: Any) -> tuple[Any, Any]:
        """The next key and value of a dictionary."""
        code = self._code
        places = (code.address(slot) for slot in (self._at, self._key, self._value))
        more = code.api("PyDict_Next", mapping, *places)
        code.go_if(code.is_zero(more), "missed")
        return code.load(self._key), code.load(self._value)

    def _need_count(self, mapping: Any, count: Any) -> None:
        code = self._code
        self._need_same(code.at(mapping, SIZE), count)
        code.store(i64(0), self._at)

    def _dict(self, code: CallCode, row: _Row) -> None:
        mapping, keys = row.source, row.b
        self._need_same(code.at(mapping, TYPE), row.c)
        self._need_count(mapping, row.a)
        with code.each(row.a) as index:
            key, value = self._next(mapping)
            self._need_equal(key, code.at_index(keys, index))
            row.put(value, index)

    def _entries(self, code: CallCode, row: _Row) -> None:
        mapping, pairs = row.source, row.b
        self._need_count(mapping, row.a)
        with code.each(row.a) as index:
            key, value = self._next(mapping)
            place = code.shl(index, i64(1))
            self._need_same(key, code.at_index(pairs, place))
            wanted = code.at_index(pairs, code.add(place, i64(1)))
            differs = code.and_(code.differ(wanted, i64(0)), code.differ(value, wanted))
            code.go_if(differs, "missed")

    def _item(self, code: CallCode, row: _Row) -> None:
        value = code.api("PyDict_GetItemWithError", row.source, row.a)
        with code.if_then(code.is_zero(value), likely=False):
            self._need_no_error()
            code.go_if(code.is_zero(row.b), "missed")
        row.put(value)

    def _unchanged(self, code: CallCode, row: _Row) -> None:
        with code.if_then(code.icmp_signed("==", code.at(row.source, VERSION), code.at(row.a))):
            rest = code.mul(row.b, i64(8 * ROW))
            code.store(code.add(code.load(self._row), rest), self._row)

    def _remember(self, code: CallCode, row: _Row) -> None:
        code.set_at(code.at(row.source, VERSION), row.a)

    def _attributes(self, code: CallCode, row: _Row) -> None:
        found = code.api("PyObject_GenericGetDict", row.source, i64(0))
        with code.if_then(code.is_zero(found), likely=False):
            code.api("PyErr_Clear")
            code.go("missed")
        code.api("Py_DecRef", found)  # the object has another reference
        row.put(found)

    def _context(self, code: CallCode, row: _Row) -> None:
        failed = code.api("PyContextVar_Get", row.a, i64(0), code.address(self._value))
        with code.if_then(code.differ(failed, failed.type(0)), likely=False):
            code.api("PyErr_Clear")
            code.go("missed")
        value = code.load(self._value)
        code.go_if(code.is_zero(value), "missed")
        code.api("Py_DecRef", value)  # the context or the variable has another reference
        row.put(value)

    def _call(self, code: CallCode, row: _Row) -> None:
        row.put(code.call_at(row.a, row.source))

    def _array(self, code: CallCode, row: _Row) -> None:
        count, first, target = row.a, row.first, row.target
        kind, dtype, rank = (code.at(row.b, 8 * word) for word in range(3))
        wanted = code.add(row.b, i64(24))
        with code.each(count) as index:
            array = code.at_index(self._state, code.add(first, index))
            self._need_same(code.at(array, TYPE), kind)
            self._need_same(code.at(array, DESCR), dtype)
            self._need_same(code.int_at(array, RANK), rank)
            extents = code.at(array, EXTENTS)
            with code.each(rank) as axis:
                self._need_same(code.at_index(extents, axis), code.at_index(wanted, axis))
            number = code.add(target, index)
            code.set_index(code.at(array, DATA), self._arrays, number)
            code.set_index(array, self._objects, number)

    def _flags(self, code: CallCode, row: _Row) -> None:
        self._need_same(code.and_(code.int_at(row.source, FLAGS), row.a), row.a)

    def _elements(self, code: CallCode, row: _Row) -> None:
        self._need(code.is_zero(code.api("memcmp", code.at(row.source, DATA), row.b, row.a)))

    def _number(self, code: CallCode, row: _Row, *words: Any) -> None:
        place = code.add(self._numbers, code.shl(row.target, i64(4)))
        for number, word in enumerate(words):
            code.set_at(word, place, 8 * number)
        code.set_index(place, self._arrays, row.target)
        code.set_index(i64(0), self._objects, row.target)

    def _float(self, code: CallCode, row: _Row) -> None:
        self._number(code, row, code.at(row.source, CONTENT))

    def _int(self, code: CallCode, row: _Row) -> None:
        value = code.api("PyLong_AsLongLong", row.source)
        with code.if_then(code.icmp_signed("==", value, i64(-1)), likely=False):
            self._need_no_error()
        self._number(code, row, value)

    def _complex(self, code: CallCode, row: _Row) -> None:
        self._number(code, row, code.at(row.source, CONTENT), code.at(row.source, CONTENT + 8))

    def _at_most(self, code: CallCode, row: _Row) -> None:
        self._need(code.icmp_signed("<=", row.a, code.at(row.b)))

    def _before(self, code: CallCode, row: _Row) -> None:
        code.api("clock_gettime", i64(_MONOTONIC), code.address(self._times))
        times = code.address(self._times)
        seconds, rest = (code.sitofp(code.at(times, 8 * part), F64) for part in range(2))
        now = code.fadd(seconds, code.fmul(rest, F64(1e-9)))
        until = code.load(code.inttoptr(row.a, F64.as_pointer()))
        self._need(code.fcmp_ordered("<", now, until))
