"""Bytecode analysis: the calls of named functions in a code object, as names and attributes.

``np.random.normal(3)`` is the root ``np``, the attributes ``random`` and ``normal``, and the place
of the instruction that loads the last of them. Used by `gptrs.jit.impure_calls`, which resolves the
names and watches these places.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import cache
from types import CodeType
from typing import Literal, NamedTuple, cast

Scope = Literal["global", "cell", "local"]
_ROOTS: dict[str, Scope] = {
    "LOAD_GLOBAL": "global",
    "LOAD_NAME": "global",
    "LOAD_DEREF": "cell",
    "LOAD_CLASSDEREF": "cell",
    "LOAD_FAST": "local",
    "LOAD_FAST_CHECK": "local",
    "LOAD_FAST_BORROW": "local",
    "LOAD_FAST_LOAD_FAST": "local",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "local",
    "STORE_FAST_LOAD_FAST": "local",
}
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_CALL = ("CALL", "PRECALL")


class NamedCall(NamedTuple):
    """A call of a function by its name."""

    scope: Scope
    root: str
    attributes: tuple[str, ...]
    offset: int
    """Of the instruction that loads the function."""
    line: int
    is_empty: bool
    """Whether it has no arguments."""

    def __str__(self) -> str:
        return ".".join((self.root, *self.attributes))


@cache
def named_calls(code: CodeType) -> tuple[NamedCall, ...]:
    """The calls by name in ``code``, without those in functions inside of it."""
    return tuple(_calls_in(list(dis.get_instructions(code)), code.co_firstlineno))


def _calls_in(instructions: list[dis.Instruction], line: int) -> Iterator[NamedCall]:
    numbers = iter(range(len(instructions)))
    for number in numbers:
        first = last = instructions[number]
        line = first.positions.lineno or line if first.positions else line
        scope = _ROOTS.get(first.opname)
        if scope is None:
            continue
        called = _has_null(first) or _pushes_null(instructions, number - 1)
        loaded = cast("str | tuple[str, str]", first.argval)  # one local name, or two at once
        root = loaded if isinstance(loaded, str) else loaded[1]
        attributes: list[str] = []
        while (following := _at(instructions, number + 1)).opname in _ATTRIBUTES:
            number, last = next(numbers), following
            called |= _has_null(last)
            attributes.append(last.argval)
        if called or _pushes_null(instructions, number + 1):
            after = _at(instructions, number + 1)
            after = _at(instructions, number + 2) if after.opname == "PUSH_NULL" else after
            is_empty = after.opname in _CALL and after.arg == 0
            yield NamedCall(scope, root, tuple(attributes), last.offset, line, is_empty)


def _at(instructions: list[dis.Instruction], number: int) -> dis.Instruction:
    """The instruction of this number; the last one beyond the end, which returns."""
    return instructions[min(number, len(instructions) - 1)]


def _has_null(instruction: dis.Instruction) -> bool:
    """Whether it leaves room for ``self``, as for a call alone."""
    return instruction.opname == "LOAD_METHOD" or "NULL" in instruction.argrepr


def _pushes_null(instructions: list[dis.Instruction], number: int) -> bool:
    return number >= 0 and _at(instructions, number).opname == "PUSH_NULL"
