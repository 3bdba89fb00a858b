"""Python functions as tools: the schemas that transformers makes."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Literal, Optional, Union

import pytest

from gptrs.errors import ArgumentError
from gptrs.text.chat import chat_request
from gptrs.text.function_schema import function_schema
from tests.support.chat_templates import USER
from tests.support.lazy_torch import transformers

# ruff: noqa: UP007, UP045 (docstrings and types as people write them)


class Unit(enum.Enum):
    CELSIUS = "c"
    KELVIN = "k"


def weather(city: str, days: int = 1, unit: Literal["c", "f", 3] = "c") -> str:
    """Tell the weather
    of a city.

    Args:
        city (str): Where, which
            takes two lines.

        days: How many: 1 to 9.
        unit: Of the
            temperature.

    Returns:
        What it is like.

    Raises:
        ValueError: Never.
    """
    return f"{city}{days}{unit}"


def nothing() -> None:
    """Do nothing."""


def types(
    a: list[int],
    b: dict[str, float],
    c: tuple[int, str],
    d: Optional[int],
    e: Union[int, str, None],
    f: int | list[str],
    g: Unit,
    h: Any,
    i: list,  # pyright: ignore
    j: bool = True,
) -> ArgumentError:
    """All of them.

    Args:
        a: A
        b: B
        c: C
        d: D
        e: E
        f: F
        g: G
        h: H
        i: I
        j: J
    """
    return ArgumentError("")


class Tools:
    def add(self, x: float) -> float:
        """Add.

        Args:
            x: A number.
        """
        return x


FUNCTIONS: list[Any] = [weather, nothing, types, Tools().add]  # pyright: ignore


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS, ids=["weather", "nothing", "types", "method"])
def test_schemas_are_those_of_transformers(function: Callable[..., Any]) -> None:
    made: Any = transformers.utils
    assert function_schema(function) == made.get_json_schema(function)


def test_functions_among_tools() -> None:
    plain = {"type": "function", "function": {"name": "time"}}
    request = chat_request([USER], tools=[weather, plain])
    assert request.tools == [function_schema(weather), plain]


def untold(city: str) -> None:
    """Tell."""


def untyped(city) -> None:  # pyright: ignore
    """Tell.

    Args:
        city: Where.
    """


def odd(city: complex) -> None:
    """Tell.

    Args:
        city: Where.
    """


def many(city: tuple[int, ...]) -> None:
    """Tell.

    Args:
        city: Where.
    """


def unknown(city: Nowhere) -> None:  # pyright: ignore  # noqa: F821
    """Tell.

    Args:
        city: Where.
    """


def literal(city: Literal[b"a"]) -> None:
    """Tell.

    Args:
        city: Where.
    """


UNKNOWN: list[tuple[Any, str]] = [
    (lambda: 3, "'<lambda>' in tools has no docstring"),
    (untold, "'untold' in tools: parameter 'city' has no description"),
    (untyped, "parameter 'city' has no type"),
    (odd, "parameter 'city' is of the type <class 'complex'>, expected one of str"),
    (many, "parameter 'city' is of the type tuple"),
    (unknown, "has types that cannot be read"),
    (literal, "is one of .*, expected values that JSON has"),
]


@pytest.mark.parametrize(("function", "said"), UNKNOWN)
def test_what_the_model_could_not_know(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        function_schema(function)


def test_other_things_are_no_tools() -> None:
    with pytest.raises(ArgumentError, match=r"tools.0. is a int, expected a mapping or a function"):
        chat_request([USER], tools=[3])
