"""Remedies for retraces: the change of a call or a decorator after which a reason does not recur.

Input: the text of a reason (`gptrs.jit.cache.Reason`) and the signature of the function. Used by
`RetraceWarning`, `RetraceError` and GPTRS_EXPLAIN.
"""

from __future__ import annotations

import inspect
import re

_AXES = re.compile(r"argument (\w+)([^:]*): (axis \d+: .*)")
_AXIS = re.compile(r"axis (\d+): (\w+) → (\w+)")  # not from or to a symbol
_DTYPES = re.compile(r"argument ([^:]+): (\w+)\[.*\] → (\w+)\[.*\]")
_LENGTHS = re.compile(r"argument ([^:]+): (?:tuple|list) of \d+ → (?:tuple|list) of \d+")
_SYMBOLS = "STUVWXYZ"


def advice(reason: str, signature: inspect.Signature) -> str:
    """The remedy for the retraces that ``reason`` describes; "" where none is known."""
    parts = reason.split("; ")
    if axes := _symbolic(parts, signature):
        return f"make the {axes}"
    first = parts[0]
    kind, _, rest = first.partition(" ")
    name = rest.partition(":")[0]
    if first.startswith("static argument "):
        name = name.removeprefix("argument ")
        return f"trace {name}: take it out of the static arguments, unless Python needs its value"
    if kind in ("global", "closure", "class", "module"):
        return "pass what changes as an argument"
    if kind == "argument":
        return _of_argument(first, name)
    return "define functions once, and not before each call" if kind == "code" else ""


def _of_argument(reason: str, name: str) -> str:
    if "a Python number" in reason:
        return f"pass {name} as an array, or as a number, in every call"
    if (dtypes := _DTYPES.fullmatch(reason)) is not None:
        return f"convert {name} to {dtypes[2]} before the call" if dtypes[2] != dtypes[3] else ""
    if _LENGTHS.fullmatch(reason):
        return f"stack the elements of {name} into one array, or bring them to one number"
    return "pass changing values as arrays"


def _symbolic(parts: list[str], signature: inspect.Signature) -> str:
    """``axis symbolic: ptir.jit(dynamic=...)`` for the axes that changed, the same symbol for those
    that changed alike; "" where none did."""
    symbols: dict[tuple[str, str], str] = {}
    dynamic: dict[str, dict[int, str]] = {}
    for part in parts:
        found = _AXES.fullmatch(part)
        if found is None or found[1] not in signature.parameters:
            continue
        for axis, *sizes in _AXIS.findall(found[3]):
            symbol = _SYMBOLS[len(symbols) % len(_SYMBOLS)]
            symbol = symbols.setdefault((sizes[0], sizes[1]), symbol)
            dynamic.setdefault(found[1] + found[2], {})[int(axis)] = symbol
    count = sum(map(len, dynamic.values()))
    plural = "axes" if count > 1 else "axis"
    return f"{plural} symbolic: ptir.jit(dynamic={dynamic})" if count else ""
