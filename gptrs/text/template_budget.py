"""Work budget of a chat template, which bounds the time and the memory that it takes.

Templates are untrusted: loops nest, ``x ~ x`` doubles a text, ``2 ** 2 ** 40`` is one expression.
Each operation is charged before it runs, in units of about one character that is read or written;
an element of a list counts 16, a node of the template that runs 32. The bound is a number of units,
not of seconds: whether a template passes does not depend on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

MOST = 2**26
"""Units of a template; known ones take some thousand for a message. At most about 8 bytes each."""
PER_CHARACTER = 64
"""More units for each character of messages and tools."""
ELEMENT, NODE = 16, 32
_WIDTHS = re.compile(r"\d+")
_NESTED = re.compile(r"\{[^{}]*\{|%[^%]*\*")  # a width that comes from an argument
_SCALARS = (type(None), bool, float)


class BudgetError(Exception):
    """The template takes more than its budget."""


class Budget:
    """What is left of the units of one rendering."""

    def __init__(self, most: int = MOST) -> None:
        self._left = most

    def spend(self, units: int) -> None:
        """Raise `BudgetError` if fewer units are left."""
        self._left -= units
        if self._left < 0:
            raise BudgetError

    def spend_on(self, *values: object) -> None:
        """`spend` the extent of ``values``: the characters and elements of all they hold."""
        stack: list[object] = list(values)
        while stack:
            value = stack.pop()
            if isinstance(value, str | bytes):
                self.spend(len(value))
            elif isinstance(value, int):
                self.spend(value.bit_length() // 3)  # digits
            elif isinstance(value, Mapping):
                items = cast("Mapping[object, object]", value)
                self.spend(2 * ELEMENT * (1 + len(items)))
                stack += [*items.keys(), *items.values()]
            elif isinstance(value, list | tuple | set | frozenset):
                self.spend(ELEMENT * (1 + len(cast("list[object]", value))))
                stack += cast("list[object]", value)
            elif not isinstance(value, _SCALARS):
                self.spend(ELEMENT)

    def spend_on_length(self, value: object) -> None:
        """`spend` the length of ``value``, without what its elements hold."""
        if isinstance(value, str | bytes | list | tuple | dict | range):
            self.spend(ELEMENT * len(cast("list[object]", value)))

    def spend_on_operator(self, operator: str, left: object, right: object) -> None:
        """`spend` the extent of what ``left`` and ``right`` give."""
        if operator == "%" and isinstance(left, str | bytes):
            text = left if isinstance(left, str) else left.decode("latin-1")
            self.spend_on_format(text, right)
        elif operator == "*" and not (_is_number(left) and _is_number(right)):
            for one, other in ((left, right), (right, left)):
                if isinstance(other, int):
                    self._spend_on_repeat(one, other)
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * abs(right)
            self.spend(bits * bits // 64)
        elif operator == "+" and isinstance(left, list | tuple):
            self.spend_on_length(cast("list[object]", left))
            self.spend_on_length(right)
        elif isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * right.bit_length()
            self.spend(NODE if operator in "+-" else NODE + bits // 64)
        else:
            self.spend_on_length(left)
            self.spend_on_length(right)

    def spend_on_format(self, text: str, *values: object) -> None:
        """`spend` the extent of ``text`` with ``values`` in it, by str.format or ``%``."""
        self.spend(len(text) + sum(int(width[:18]) for width in _WIDTHS.findall(text)))
        self.spend_on(*values)
        if _NESTED.search(text):
            self._spend_on_widths(*values)

    def spend_on_replacing(self, text: Any, old: Any, new: Any) -> None:
        """`spend` the extent of ``text.replace(old, new)``, of strings or of bytes."""
        self.spend(len(text) + (text.count(old) + 1) * len(new))

    def spend_on_width(self, lines: int, width: object) -> None:
        """`spend` the extent of ``lines`` filled to ``width``, if that is a number."""
        if isinstance(width, int):
            self.spend(lines * max(width, 0))
        elif isinstance(width, str):
            self.spend(lines * len(width))

    def _spend_on_repeat(self, value: object, count: int) -> None:
        if isinstance(value, str | bytes | list | tuple):
            of_one = 1 if isinstance(value, str | bytes) else ELEMENT
            self.spend(NODE + of_one * len(cast("list[object]", value)) * max(count, 0))

    def _spend_on_widths(self, *values: object) -> None:
        stack: list[object] = list(values)
        while stack:
            value = stack.pop()
            if isinstance(value, int):
                self.spend(abs(value))
            elif isinstance(value, Mapping):
                stack += cast("Mapping[object, object]", value).values()
            elif isinstance(value, list | tuple):
                self.spend_on_length(cast("list[object]", value))
                stack += cast("list[object]", value)


_current: ContextVar[Budget] = ContextVar("gptrs_template_budget")


def current() -> Budget:
    """The budget of the rendering that is going on."""
    return _current.get()


@contextmanager
def budget(characters: int = 0) -> Generator[Budget]:
    """In the block templates have the budget for an input of so many ``characters``."""
    made = Budget(MOST + PER_CHARACTER * characters)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
