"""Settings as environment variables: how one is declared, read and checked.

The variables themselves are a table in `gptrs.settings`. One is read at each access, so that a
notebook can change it. `raw_all` gives the texts of several variables for the fast key of a call
(`gptrs.jit.fast_path`), without parsing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import field
from typing import Any, Generic, TypeVar

from gptrs.errors import SettingError
from gptrs.lazy_dataclass import dataclass

T = TypeVar("T")

SETTINGS: dict[str, Setting[object]] = {}
"""All that were declared, by name."""


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One environment variable: default, parser, expected values, and a sentence for the README."""

    name: str
    default: T
    read: Callable[[str], T]
    expected: str
    help: str
    old: str = ""
    """Its former name, read for one more version where the new one is not set."""
    _last: list[tuple[object, Any]] = field(default_factory=list[tuple[object, Any]])

    def __post_init__(self) -> None:
        SETTINGS[self.name] = self  # pyright: ignore[reportArgumentType]
        self._last.append((None, self.default))  # text and value of the last read

    def __call__(self) -> T:
        """The value now. Raises `SettingError` when the variable's text cannot be read."""
        last = self._last[0]
        name = self.old if self.old and raw(self.name) is None else self.name
        if (text := raw(name)) == last[0]:
            return last[1]
        value = self._value(name, os.environ.get(name))
        if raw(name) == text:  # no other thread changed it meanwhile
            self._last[0] = text, value
        return value

    def put(self, text: str) -> None:
        """Set the variable, for this process and those that it starts."""
        os.environ[self.name] = text

    def _value(self, name: str, text: str | None) -> T:
        if text is None or text == "":
            return self.default
        try:
            return self.read(text)
        except (ValueError, KeyError):
            raise SettingError(
                f"{name}={text!r}: expected {self.expected}", fix=f"unset {name} or mend it"
            ) from None


class _Encoded(dict[str, object]):
    """Names of variables in the encoding of ``os.environ``, cached."""

    def __missing__(self, name: str) -> object:
        self[name] = encoded = getattr(os.environ, "encodekey", str)(name)
        return encoded


_encoded = _Encoded()


def raw(name: str) -> object:
    """The undecoded text of a variable, None if it is not set; for comparison only.

    Every call of a jitted function reads several variables, most of them not set. `os.environ.get`
    takes 2 µs for these (it raises and catches an error), this a tenth of that.
    """
    try:
        return os.environ._data.get(_encoded[name])  # type: ignore[attr-defined]
    except AttributeError:  # `os.environ` was replaced by another mapping
        return os.environ.get(name)


class _AllEncoded(dict[tuple[str, ...], tuple[object, ...]]):
    def __missing__(self, names: tuple[str, ...]) -> tuple[object, ...]:
        self[names] = encoded = tuple([_encoded[name] for name in names])
        return encoded


_all_encoded = _AllEncoded()


def raw_all(names: tuple[str, ...]) -> tuple[object, ...]:
    """`raw` of several variables, in less time than one after the other."""
    try:
        return tuple(map(os.environ._data.get, _all_encoded[names]))  # type: ignore[attr-defined]
    except AttributeError:
        return tuple(map(raw, names))


def flag(text: str) -> bool:
    return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
        text.strip().lower()
    ]


def at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if (value := int(text)) < least:
            raise ValueError(value)
        return value

    return read


def within(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not least <= (value := int(text)) <= most:
            raise ValueError(value)
        return value

    return read


def one_of(*names: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if (name := text.strip().lower()) not in names:
            raise ValueError(name)
        return name

    return read


def some_of(*names: str) -> Callable[[str], str]:
    """Names in a list with commas; 0 stands for none of them."""

    def read(text: str) -> str:
        found = {part.strip().lower() for part in text.split(",")} - {"", "0"}
        if not found <= {*names}:
            raise ValueError(text)
        return ",".join(name for name in names if name in found)

    return read
