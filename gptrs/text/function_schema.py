"""Python functions as tools: name, docstring and types → the schema that chat templates read.

    def weather(city: str, days: int = 1) -> str:
        '''Tell the weather.

        Args:
            city: Where.
            days: How many.
        '''

becomes a function of the OpenAI API, the same one as transformers makes (`get_json_schema`). What
the docstring does not describe is an error: the model knows of a tool only what stands there.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from gptrs.errors import ArgumentError

Schema = dict[str, Any]

_SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null"}
_PLAIN = _SCALARS | {list: "array", tuple: "array", dict: "object"}
_SECTION = re.compile(r"^(Args|Returns|Raises):[ \t]*$", re.MULTILINE)
_ENTRY = re.compile(r"(\w+)(?:[ \t]*\([^()]*\))?:\s*(.*)", re.DOTALL)
_KNOWN = "str, int, float, bool, None, Literal, Enum, and list, tuple, dict and unions of them"


def function_schema(function: Callable[..., Any]) -> Schema:
    """The tool that ``function`` is, in the form of the OpenAI API.

    Raises `ArgumentError` for a parameter without a type or a description, and for types that JSON
    has no form of.
    """
    name = getattr(function, "__name__", type(function).__name__)
    where = f"the function {name!r} in tools"
    parts = _sections(inspect.getdoc(function) or "")
    if not parts[""]:
        raise ArgumentError(
            f"{where} has no docstring, which says to the model what it does", fix="write one"
        )
    told = _entries(parts.get("Args", ""))
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError) as error:
        raise ArgumentError(
            f"{where} has types that cannot be read: {error}", fix="write types that are imported"
        ) from None
    parameters = inspect.signature(function).parameters
    properties: dict[str, Schema] = {}
    for each in parameters:
        place = f"{where}: parameter {each!r}"
        if each not in hints or each not in told:
            lacks = "description" if each in hints else "type"
            raise ArgumentError(
                f"{place} has no {lacks}, expected one",
                fix="write f(city: str), and below 'Args:' in its docstring 'city: Where.'",
            )
        properties[each] = {**_schema(hints[each], place), "description": told[each]}
    schema: Schema = {"type": "object", "properties": properties}
    if required := [n for n, p in parameters.items() if p.default is inspect.Parameter.empty]:
        schema["required"] = required
    made: Schema = {"name": name, "description": parts[""], "parameters": schema}
    if "return" in hints:
        returned = _returned(hints["return"], parts.get("Returns"))
        made |= {} if returned is None else {"return": returned}
    return {"type": "function", "function": made}


def _sections(doc: str) -> dict[str, str]:
    """The sections of a docstring by their heads; the text before them has the head ""."""
    head, *rest = _SECTION.split(doc)
    return {"": head.strip(), **dict(zip(rest[::2], rest[1::2], strict=True))}


def _entries(section: str) -> dict[str, str]:
    """The descriptions of an ``Args`` section, each on one line: those begin where the text is
    indented least."""
    lines = inspect.cleandoc(section).splitlines()
    entries: list[str] = []
    for line in filter(str.strip, lines):
        if line[0].isspace() and entries:
            entries[-1] += f" {line.strip()}"
        else:
            entries.append(line)
    found = [match for entry in entries if (match := _ENTRY.fullmatch(entry))]
    return {match[1]: match[2].strip() for match in found}


def _returned(hint: object, told: str | None) -> Schema | None:
    """What the function returns; None where JSON has no form of it: the model never writes it."""
    try:
        schema = _schema(hint, "return")
    except ArgumentError:
        return None
    return schema if told is None else {**schema, "description": told.strip()}


def _schema(hint: Any, where: str) -> Schema:
    """The JSON schema of a type."""
    kind, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if kind is None and hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if inspect.isclass(hint) and issubclass(hint, Enum):
        return _choice([member.value for member in hint], where)
    if kind is Literal:
        return _choice(arguments, where)
    if kind in (Union, UnionType):
        return _union(arguments, where)
    if kind is list:
        return {"type": "array", "items": _schema(arguments[0], where)}
    if kind is tuple and ... not in arguments:
        return {"type": "array", "prefixItems": [_schema(each, where) for each in arguments]}
    if kind is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], where)}
    raise ArgumentError(
        f"{where} is of the type {hint}, expected one of {_KNOWN}",
        fix="use one of these, or describe the tool by a mapping as the OpenAI API takes it",
    )


def _choice(values: Sequence[object], where: str) -> Schema:
    if not values or any(type(value) not in _SCALARS for value in values):
        raise ArgumentError(
            f"{where} is one of {list(values)!r:.80}, expected values that JSON has",
            fix="use texts, numbers, True, False or None",
        )
    types = list(dict.fromkeys(_SCALARS[cast("Any", type(value))] for value in values))
    return {"type": types[0] if len(types) == 1 else types, "enum": list(values)}


def _union(kinds: Sequence[object], where: str) -> Schema:
    """Several names of types where these say it all, else ``anyOf``."""
    schemas = [_schema(kind, where) for kind in kinds if kind is not NoneType]
    made: Schema = {"anyOf": schemas}
    if len(schemas) == 1:
        made = dict(schemas[0])
    elif all(each.keys() == {"type"} and isinstance(each["type"], str) for each in schemas):
        types = sorted({each["type"] for each in schemas})
        made = {"type": types[0] if len(types) == 1 else types}
    return made | ({"nullable": True} if NoneType in kinds else {})
