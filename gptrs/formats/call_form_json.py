"""The form of a compiled function's calls as JSON: its signature, arguments and results.

Containers are tuples, lists, and dicts by strings or integers; other values are bools, numbers and
strings. Caller: `gptrs.formats.compiled_file`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from gptrs import tree
from gptrs.errors import ArgumentError
from gptrs.ir.dims import Dim
from gptrs.ir.types import DTYPES, Type
from gptrs.jit.call_form import CallForm, Wanted
from gptrs.jit.trace import Result

_KINDS: dict[str, type] = {"tuple": tuple, "list": list, "dict": dict}
_PARAMETER_KINDS = {
    kind.name: kind
    for kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    )
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_ANY = DTYPES["f32"]  # beside which a size is written


def form_out(form: CallForm) -> dict[str, Any]:
    """The form of the calls as JSON. Raises `ArgumentError` for what a file cannot hold."""
    parameters = [
        [p.name, p.kind.name, *([p.default] if _is_plain(p.default) else [])]
        for p in form.signature.parameters.values()
    ]
    return {
        "name": form.name,
        "signature": parameters,
        "static": sorted(form.static),
        "donated": sorted(form.donated),
        "arguments": _structure_out(form.structure, "the arguments"),
        "leaves": [_leaf_out(leaf) for leaf in form.leaves],
        "result": _structure_out(form.result_structure, "the result"),
        "results": [_result_out(result) for result in form.results],
        "sizes": dict(form.sizes),
    }


def form_in(about: Mapping[str, Any]) -> CallForm:
    """The form that `form_out` wrote."""
    return CallForm(
        about["name"],
        inspect.Signature([_parameter(*given) for given in about["signature"]]),
        frozenset(about["static"]),
        frozenset(about["donated"]),
        _structure_in(about["arguments"]),
        tuple(map(_leaf_in, about["leaves"])),
        _structure_in(about["result"]),
        tuple(map(_result_in, about["results"])),
        about["sizes"],
    )


def _is_plain(value: object) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def _structure_out(structure: tree.Structure, place: str) -> Any:
    kind = structure.kind
    if kind is None:
        return None
    if kind not in _NAMES or not all(type(label) in (int, str) for label in structure.labels):
        raise ArgumentError(
            f"{place} of the function have a {kind.__name__}, expected tuples, lists, and dicts by"
            " strings or integers in a file",
            fix="take and return these, or call the function without a file",
        )
    children = [_structure_out(child, place) for child in structure.children]
    return [_NAMES[kind], [*structure.labels], children]


def _structure_in(value: Any) -> tree.Structure:
    if value is None:
        return tree.LEAF
    kind, labels, children = value
    return tree.Structure(_KINDS[kind], tuple(labels), tuple(map(_structure_in, children)))


def _leaf_out(leaf: Any) -> Any:
    if isinstance(leaf, Wanted):
        return {"path": leaf.path, "type": str(leaf.type)}
    if not _is_plain(leaf):
        raise ArgumentError(
            f"an argument is a {type(leaf).__name__}, which a file cannot hold",
            fix="lower a function that has it in its closure, and takes arrays and numbers",
        )
    return [leaf]


def _leaf_in(leaf: Any) -> Any:
    if isinstance(leaf, dict):
        found = cast("dict[str, str]", leaf)
        return Wanted(found["path"], Type.parse(found["type"]))
    return leaf[0]


def _result_out(result: Any) -> Any:
    if isinstance(result, Result):
        return {"index": result.index, "weak": result.weak}
    if isinstance(result, Dim):
        return {"size": str(Type((result,), _ANY))}
    if not _is_plain(result):
        raise ArgumentError(
            f"the function returns a {type(result).__name__}, which a file cannot hold",
            fix="return arrays, numbers and strings",
        )
    return [result]


def _result_in(result: Any) -> Any:
    if isinstance(result, dict):
        found = cast("dict[str, Any]", result)
        if "size" in found:
            return Type.parse(found["size"]).shape[0]
        return Result(int(found["index"]), bool(found["weak"]))
    return result[0]


def _parameter(name: str, kind: str, *default: Any) -> inspect.Parameter:
    given = default[0] if default else inspect.Parameter.empty
    return inspect.Parameter(name, _PARAMETER_KINDS[kind], default=given)
