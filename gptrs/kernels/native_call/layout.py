"""Offsets of CPython's and NumPy's objects that native calls read, checked in this interpreter.

    PyObject        refcount 0    type 8          size 16 (of tuples, lists and dictionaries)
    set             size 24
    tuple, list     items 24      (a list has a pointer to them)
    dictionary      version 24    (another one after each change; up to 3.12)
    float, complex  value 16
    cell, module    content 16 (also of static and class methods)
    method          function 16   self 24
    ndarray         data 16       rank 24, int32    extents 32    dtype 56    flags 64, int32

NumPy's layout and function table belong to its stable ABI. CPython's have been the same from 3.11
on, but for builds without a GIL or with counters in each object: `supported` compares them with
objects of this process, and everything that does not agree takes the Python path.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from functools import cache
from importlib import import_module
from types import CellType, MethodType
from typing import Any

import numpy as np

TYPE, SIZE, ITEMS, CONTENT = 8, 16, 24, 16
SET_SIZE, VERSION = 24, 24
METHOD_FUNCTION, METHOD_SELF = 16, 24
DATA, RANK, EXTENTS, DESCR, FLAGS = 16, 24, 32, 56, 64

_FIRST, _LAST = (3, 11), (3, 14)
"""The versions whose layout is known: reading at another's offsets might be no mere mismatch."""
_NEW_FROM_DESCR = 94
"""The index of ``PyArray_NewFromDescr`` in NumPy's function table, for all versions."""
_TYPE_BYTES = 512
"""What is searched of a type, which is larger in every version."""
_MEMBER = 40  # of a member descriptor: its PyMemberDef, whose offset is at 16


def word_at(address: int) -> int:
    """The 64-bit word at ``address``."""
    return ctypes.c_uint64.from_address(address).value


def data_of(array: Any) -> int:
    """The address of an array's elements."""
    return array.__array_interface__["data"][0]


def slot(kind: type, name: str) -> int:
    """The offset of the slot ``name`` in instances of ``kind``."""
    return word_at(word_at(id(vars(kind)[name]) + _MEMBER) + 16)


@cache
def type_offset(name: str) -> int:
    """The offset of ``__dict__`` or ``__mro__`` in a type; 0 where it was not found.

    Searched for, as it depends on the version and not every version has a function for it.
    """
    kind = type("kind", (), {"marked": object()})
    for offset in range(TYPE + 8, _TYPE_BYTES, 8):
        word = word_at(id(kind) + offset)
        if name == "__mro__" and word == id(kind.__mro__):
            return offset
        if name == "__dict__" and _is_dict_of(word, kind):
            return offset
    return 0


def _is_dict_of(address: int, kind: type) -> bool:
    """Whether the object at ``address`` is the dictionary that ``vars(kind)`` shows."""
    import gc

    return any(id(found) == address and type(found) is dict for found in gc.get_referents(kind))


@cache
def new_array_address() -> int:
    """The address of ``PyArray_NewFromDescr``."""
    umath: Any = import_module("numpy._core._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return word_at(get(umath._ARRAY_API, None) + 8 * _NEW_FROM_DESCR)


@cache
def supported() -> bool:
    """Whether native calls work in this interpreter: CPython with a GIL, 64 bits, and the layout
    above."""
    if sys.implementation.name != "cpython" or not _FIRST <= sys.version_info[:2] <= _LAST:
        return False
    if sys.maxsize < 1 << 32 or sys.byteorder != "little":
        return False
    if any(sysconfig.get_config_var(name) for name in ("Py_DEBUG", "Py_GIL_DISABLED")):
        return False
    try:
        return _agrees() and all(map(type_offset, ("__dict__", "__mro__")))
    except Exception:  # a name that is gone
        return False


@cache
def has_versions() -> bool:
    """Whether each change of a dictionary gives it another version."""
    if sys.version_info >= (3, 13):
        return False
    changed: dict[str, object] = {"a": object()}
    versions = [_word_of(changed, VERSION)]
    for key in "aba":
        changed[key] = object()
        versions.append(_word_of(changed, VERSION))
    del changed["b"]
    return len({*versions, _word_of(changed, VERSION)}) == len(versions) + 1


class _Slotted:
    __slots__ = ("first", "second")


def _agrees() -> bool:
    """Compare the offsets with objects made here."""
    marks = object(), object()
    several, slotted = [*marks], _Slotted()
    slotted.first, slotted.second = marks
    addresses = [*map(id, marks)]
    array = np.zeros((3, 5), np.float32)
    method: Any = _agrees
    words: list[tuple[object, int, int]] = [
        (marks, TYPE, id(tuple)),
        (marks, SIZE, 2),
        (several, SIZE, 2),
        (dict.fromkeys("abc"), SIZE, 3),
        (set("abc"), SET_SIZE, 3),
        (CellType(marks[0]), CONTENT, addresses[0]),
        (staticmethod(method), CONTENT, id(_agrees)),
        (classmethod(method), CONTENT, id(_agrees)),
        (sys, CONTENT, id(vars(sys))),
        (2.5, CONTENT, _bits(2.5)),
        (0.5 + 2.5j, CONTENT, _bits(0.5)),
        (0.5 + 2.5j, CONTENT + 8, _bits(2.5)),
        (MethodType(_agrees, marks[1]), METHOD_FUNCTION, id(_agrees)),
        (MethodType(_agrees, marks[1]), METHOD_SELF, addresses[1]),
        (slotted, slot(_Slotted, "second"), addresses[1]),
    ]
    return (
        all(_word_of(value, offset) == word for value, offset, word in words)
        and _items(id(marks) + ITEMS) == _items(word_at(id(several) + ITEMS)) == addresses
        and _array_agrees(array)
        and _array_agrees(array.T)
    )


def _word_of(value: object, offset: int) -> int:
    return word_at(id(value) + offset)


def _bits(value: float) -> int:
    return ctypes.c_uint64.from_buffer(ctypes.c_double(value)).value


def _items(address: int) -> list[int]:
    return [word_at(address), word_at(address + 8)]


def _array_agrees(array: Any) -> bool:
    at = id(array)
    return (
        word_at(at + DATA) == data_of(array)
        and ctypes.c_int32.from_address(at + RANK).value == array.ndim
        and _items(word_at(at + EXTENTS)) == [*array.shape]
        and word_at(at + DESCR) == id(array.dtype)
        and ctypes.c_int32.from_address(at + FLAGS).value == array.flags.num
    )
