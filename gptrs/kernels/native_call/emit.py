"""An IR builder for functions on words: CPython's objects are 64-bit addresses.

`CallCode` adds to the builder of the worker pool loads at byte offsets, loops over a count, and
calls of C functions, by name or by address. All words are 64 bits, results of C's ``int`` are 32.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from gptrs.kernels.driver.control_block import I32, I64, VOID, WORDS, PoolCode, i64

C_API: dict[str, tuple[Any, int]] = {
    "PyContextVar_Get": (I32, 3),
    "PyDict_GetItemWithError": (I64, 2),
    "PyDict_Next": (I32, 4),
    "PyErr_Clear": (VOID, 0),
    "PyErr_Occurred": (I64, 0),
    "PyErr_Restore": (VOID, 3),
    "PyEval_RestoreThread": (VOID, 1),
    "PyEval_SaveThread": (I64, 0),
    "PyIter_Next": (I64, 1),
    "PyList_Append": (I32, 2),
    "PyList_New": (I64, 1),
    "PyList_SetSlice": (I32, 4),
    "PyLong_AsLongLong": (I64, 1),
    "PyObject_CallOneArg": (I64, 2),
    "PyObject_GenericGetDict": (I64, 2),
    "PyObject_RichCompareBool": (I32, 3),
    "PyThread_get_thread_ident": (I64, 0),
    "PyTuple_New": (I64, 1),
    "PyType_GenericAlloc": (I64, 2),
    "Py_DecRef": (VOID, 1),
    "Py_IncRef": (VOID, 1),
    "clock_gettime": (I32, 2),
    "memcmp": (I32, 3),
}
"""The result of each C function that is called, and the number of its arguments."""


class CallCode(PoolCode):
    """An IR builder in a new function of words."""

    def __init__(
        self, module: Any, name: str, arguments: int, *, result: Any = I64, public: bool = False
    ) -> None:
        super().__init__(module, name, result, *[I64] * arguments, public=public)
        self._loops = 0

    def local(self, value: Any) -> Any:
        """A variable; its place is made in the entry block, as this may be in a loop."""
        with self.goto_entry_block():
            slot: Any = self.alloca(I64)
        self.store(value, slot)
        return slot

    def pointer(self, address: Any) -> Any:
        return self.inttoptr(address, WORDS)

    def at(self, address: Any, offset: int = 0) -> Any:
        """The word at a byte offset of an address."""
        return self.load(self.pointer(self.add(address, i64(offset))))

    def at_index(self, address: Any, index: Any) -> Any:
        """The word at an index of an array of words."""
        return self.load(self.gep(self.pointer(address), [index]))

    def int_at(self, address: Any, offset: int) -> Any:
        """The 32-bit integer at a byte offset, widened."""
        where = self.inttoptr(self.add(address, i64(offset)), I32.as_pointer())
        return self.zext(self.load(where), I64)

    def set_at(self, value: Any, address: Any, offset: int = 0) -> None:
        self.store(value, self.pointer(self.add(address, i64(offset))))

    def set_index(self, value: Any, address: Any, index: Any) -> None:
        self.store(value, self.gep(self.pointer(address), [index]))

    def address(self, slot: Any) -> Any:
        return self.ptrtoint(slot, I64)

    def api(self, name: str, *arguments: Any) -> Any:
        """Call a C function of `C_API`."""
        result, count = C_API[name]
        assert len(arguments) == count
        module: Any = self.made.module
        function = module.globals.get(name)
        if function is None:
            function = ir.Function(module, ir.FunctionType(result, [I64] * count), name)
        return self.call(function, arguments)

    def call_at(self, function: Any, *arguments: Any, result: Any = I64) -> Any:
        """Call the C function at an address."""
        kind = ir.FunctionType(result, [a.type for a in arguments]).as_pointer()
        return self.call(self.inttoptr(function, kind), arguments)

    def is_zero(self, value: Any) -> Any:
        return self.icmp_signed("==", value, ir.Constant(value.type, 0))

    def differ(self, a: Any, b: Any) -> Any:
        return self.icmp_signed("!=", a, b)

    @contextmanager
    def each(self, count: Any) -> Generator[Any]:
        """A loop over the indices below ``count``, whose body is the block's."""
        self._loops += 1
        name = f"loop{self._loops}"
        index = self.local(i64(0))
        self.enter(name)
        now = self.load(index)
        self.go_if(self.icmp_signed(">=", now, count), f"{name}_end")
        yield now
        self.store(self.add(now, i64(1)), index)
        self.go(name)
        self.enter(f"{name}_end")

    def swap(self, value: Any, address: Any, offset: Any) -> None:
        """Store a reference that is ours in an object's slot, and drop the one that was there."""
        where = self.pointer(self.add(address, offset))
        old = self.load(where)
        self.store(value, where)
        with self.if_then(self.differ(old, i64(0))):
            self.api("Py_DecRef", old)
