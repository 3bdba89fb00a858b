"""Charges of what a chat template calls: filters, tests, functions, methods of texts and lists.

Each is charged before it runs, with an upper bound on what it reads and makes
(`gptrs.text.template_budget`).
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

from gptrs.text.template_budget import ELEMENT, NODE, current

# Filters and tests that read elements of a list, and not what they hold.
_SHALLOW_FILTERS = {
    *("attr", "batch", "count", "d", "default", "dictsort", "first", "items", "last", "length"),
    *("list", "map", "random", "reject", "rejectattr", "reverse", "select", "selectattr", "slice"),
}
_DEEP_TESTS = {
    *("==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", ">=", "ge", "<", "lt"),
    *("lessthan", "<=", "le", "in", "divisibleby", "odd", "even", "lower", "upper"),
}
# What makes lines as wide as an argument says.
_WIDE = {"batch", "center", "indent", "slice", "tojson", "truncate", "wordwrap"}

# What may insert an argument at each letter.
_REPEATING = {"wordwrap", "urlize"}
# What reads all that an iterator gives.
_CONSUMERS = {"join", "sort", "unique", "groupby", "min", "max", "sum"}


def charged_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter ``name``, charged."""
    return _charged(name, function, deep=name not in _SHALLOW_FILTERS)


def charged_test(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The test ``name``, charged."""
    return _charged("", function, deep=name in _DEEP_TESTS)


def charge_call(called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Charge the call of a function or method with these arguments."""
    budget = current()
    budget.spend(2 * NODE)
    # `str.format` comes wrapped by the sandbox.
    method = getattr(called, "__wrapped__", called)
    owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
    if not isinstance(owner, str | bytes | int | list | tuple | dict):
        for value in (*args, *kwargs.values()):
            budget.spend_on_length(value)
        return
    budget.spend_on(*args, *kwargs.values())
    if isinstance(owner, list | tuple) and name in ("count", "index"):
        budget.spend_on(owner)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(owner, list | tuple | dict):
        budget.spend_on_length(owner)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(owner, int):
        for width in args:
            budget.spend_on_width(1, width)
    else:
        _charge_text_method(owner, name, args, kwargs)


def _charged(name: str, function: Callable[..., Any], *, deep: bool) -> Callable[..., Any]:
    """A filter or test that is charged before it runs, if ``deep`` for all that values hold."""
    context_first = hasattr(function, "jinja_pass_arg")

    def call(*args: Any, **kwargs: Any) -> Any:
        budget = current()
        given: list[Any] = list(args[1:] if context_first else args)
        if name in _CONSUMERS and given and hasattr(given[0], "__next__"):
            given[0] = list(given[0])  # what comes one by one is charged too
        budget.spend(NODE)
        if deep:
            budget.spend_on(*given, *kwargs.values())
        else:
            for value in given:
                budget.spend_on_length(value)
        if name in _WIDE and given:
            lines = 1 + (given[0].count("\n") if isinstance(given[0], str) else 0)
            if name == "tojson":
                lines = _count(given[0])
            for width in (*given[1:], *kwargs.values()):
                budget.spend_on_width(lines, width)
        elif name == "replace" and len(given) > 2:
            budget.spend_on_replacing(*map(str, given[:3]))
        elif name == "format" and given:
            budget.spend_on_format(str(given[0]), *given[1:], kwargs)
        elif name == "join" and given:
            separator = given[1] if len(given) > 1 else kwargs.get("d", "")
            budget.spend(_many(given[0]) * len(str(separator)))
        elif name == "sum" and given and isinstance(given[0], list):
            budget.spend(_many(given[0]) * sum(map(_many, given[0])))  # pyright: ignore[reportUnknownArgumentType]
        if name in _REPEATING and given:
            letters = len(str(args[-len(given)]))
            for inserted in (*given[1:], *kwargs.values()):
                budget.spend(letters * (_many(inserted) + 1))
        return function(*args[: len(args) - len(given)], *given, **kwargs)

    for attribute in ("jinja_pass_arg", "jinja_async_variant"):
        if hasattr(function, attribute):
            setattr(call, attribute, getattr(function, attribute))
    return call


def _count(value: object) -> int:
    """How many values there are in ``value``, each on a line of its own with an indent, times how
    deep they are."""
    total, stack = 0, [(value, 1)]
    while stack:
        inner, depth = stack.pop()
        total += depth
        if isinstance(inner, dict):
            stack += [(each, depth + 1) for each in inner.values()]  # pyright: ignore[reportUnknownVariableType]
        elif isinstance(inner, list | tuple):
            stack += [(each, depth + 1) for each in inner]  # pyright: ignore[reportUnknownVariableType]
    return total


def _many(value: object) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _charge_text_method(
    owner: str | bytes, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    budget = current()
    pieces = ELEMENT if "split" in name or name == "partition" else 1
    budget.spend(pieces * len(owner))
    if name in ("center", "ljust", "rjust", "zfill") and args:
        budget.spend_on_width(1, args[0])
    elif name == "expandtabs":
        for width in (*args, *kwargs.values()):
            budget.spend_on_width(len(owner), width)
    elif name == "replace" and len(args) > 1:
        budget.spend_on_replacing(owner, *args[:2])
    elif name == "join" and args:
        budget.spend(_many(args[0]) * len(owner))
    elif name in ("format", "format_map"):
        budget.spend_on_format(str(owner), *args, kwargs)
    elif name == "translate" and args and isinstance(args[0], dict):
        widest = max((len(v) for v in args[0].values() if isinstance(v, str)), default=1)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        budget.spend(len(owner) * widest)
