"""NumPy's functions on tensors: ``np.sum(x, axis=0)``, ``np.linalg.norm(x)``.

A call is the one of ``ptir``, ``ptir.linalg`` or ``ptir.fft`` by that name; `_DIFFERING` has
the functions that are called otherwise, `gptrs.numpy_api.ufuncs` the ufuncs. What ``ptir`` lacks
runs on the elements of tensors that have any, and gives arrays; of a traced value it is an error
that names the nearest function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from gptrs import tree
from gptrs.errors import ArgumentError, TraceError
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.names import nearest
from gptrs.ir.op_arguments import renamed_keywords
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import described, located
from gptrs.locks import late_import
from gptrs.numpy_api.function import as_tensor

_NAMESPACES = {"numpy.linalg": "linalg", "numpy.fft": "fft"}
_HINTS = frozenset({"casting", "kind", "subok"})
"""Parameters that do not change what ours gives."""
_ANSWERS = frozenset({"allclose", "array_equal", "array_equiv"})
"""Functions that give a bool of Python, where the elements are known."""
_ADVICE = {
    "array2string": "ptir.print(x)",
    "array_repr": "ptir.print(x)",
    "array_str": "ptir.print(x)",
    "putmask": "x[mask] = values",
    "save": "return the value, and save the result",
    "savetxt": "return the value, and save the result",
    "savez": "return the values, and save the results",
    "savez_compressed": "return the values, and save the results",
}


class Call(NamedTuple):
    """A call of a function of ``ptir``, and what receives the result."""

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    out: Any = None
    where: Any = True

    def __call__(self) -> Any:
        result = self.function(*self.args, **self.kwargs)
        if self.out is None:
            return result
        self.out[...] = result if self.where is True else _chosen(self.where, result, self.out)
        return self.out


def call_function(function: Any, args: Any, kwargs: Any) -> Any:
    """What a function of NumPy gives for tensors (``__array_function__``)."""
    found = _function_call(function, args, kwargs)
    result = run(found, function, function.__name__, args, kwargs)
    known = isinstance(result, Tensor) and not result.is_traced
    return bool(result) if known and function.__name__ in _ANSWERS else result


def run(found: Call | str, function: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A call of ours; else NumPy's ``function`` on the elements of tensors. ``found`` is then what
    to write where one is traced."""
    if isinstance(found, Call):
        return found()
    leaves, structure = tree.flatten((args, kwargs), is_leaf=lambda x: isinstance(x, Tensor))
    for leaf in leaves:
        if isinstance(leaf, Tensor) and leaf.is_traced:
            problem = f"NumPy's {name} cannot take a traced value ({described(leaf)})"
            raise located(TraceError(problem, fix=found))
    plain = [leaf.numpy() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    args, kwargs = cast("tuple[Any, Any]", tree.unflatten(structure, plain))
    return function(*args, **kwargs)


def named(name: str, namespace: str = "") -> Any:
    """The function of ``ptir`` called ``name``, None where there is none."""
    if namespace:
        return getattr(late_import(f"gptrs.numpy_api.{namespace}"), name, None)
    try:
        return FUNCTIONS[name]
    except KeyError:
        return None


def lacking(name: str, namespace: str = "") -> str:
    """What to write instead of a function that ``ptir`` lacks."""
    if name in _ADVICE:
        return _ADVICE[name]
    if namespace:
        known = dir(late_import(f"gptrs.numpy_api.{namespace}"))
    else:
        known = {*late_import("gptrs.numpy_api").NAMES, *OPS}
    near = [".".join(filter(None, ("ptir", namespace, each))) for each in nearest(name, known)]
    run = "ptir.callback runs NumPy in every call"
    return f"{' or '.join(near)} is near; {run}" if near else f"use the functions of ptir; {run}"


def _function_call(function: Any, args: Any, kwargs: Any) -> Call | str:
    name = function.__name__
    namespace = _NAMESPACES.get(function.__module__, "")
    ours = _DIFFERING.get(name) if not namespace else None
    ours = ours or named(name, namespace)
    if ours is None:
        return lacking(name, namespace)
    args, kwargs = _in_our_words(function, ours, args, kwargs)
    out = kwargs.pop("out", None)
    if out is not None and not isinstance(out, Tensor):
        return no_array(name)
    if unknown := _unknown_to(ours, kwargs):
        return f"ptir.{name} has no {', '.join(unknown)}="
    return Call(ours, args, kwargs, out)


def _unknown_to(ours: Any, kwargs: Mapping[str, Any]) -> list[str]:
    """The keywords that ``ours`` does not take."""
    own = _parameters(ours)
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in own.values()):
        return []
    given = [name for name in kwargs if name not in getattr(ours, "other_names", {})]
    known = renamed_keywords(dict.fromkeys(given), own)
    return [name for name, ours in zip(given, known, strict=True) if ours not in own]


def no_array(name: str) -> str:
    return f"an array cannot be its out=: y = np.{name}(...)"


@cache
def _signature(function: Any) -> inspect.Signature | None:
    """The signature of a function; None where it is not known."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    signature = _signature(function)
    return {} if signature is None else signature.parameters


def _in_our_words(
    function: Any, ours: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of NumPy's ``function`` as those of ``ours``.

    Parameters at the same place, and those of the same name, are the same. What says what NumPy
    does anyway (``out=None``, ``order="K"``) is left out.
    """
    signature, own = _signature(function), _parameters(ours)
    if signature is None:
        return list(args), dict(kwargs)
    theirs = signature.parameters
    bound = signature.bind(*args, **kwargs)
    places = list(theirs)
    names = [name for name, each in own.items() if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    given: list[Any] = []
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        parameter, place = theirs[name], places.index(name)
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            given += value
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            named |= value
        elif name not in own and (value is parameter.default or name in _HINTS):
            continue
        elif len(given) == place < len(names) and (name not in own or names[place] == name):
            given.append(value)
        else:
            named[name] = value
    return given, named


def _chosen(condition: Any, x: Any, y: Any) -> Tensor:
    return FUNCTIONS["where"](condition, x, y)


def _where_or_nonzero(condition: Any, x: Any = None, y: Any = None) -> Any:
    return FUNCTIONS["nonzero"](condition) if x is None else _chosen(condition, x, y)


def _copyto(dst: Any, src: Any, where: Any = True) -> None:
    if not isinstance(dst, Tensor):
        raise ArgumentError("copyto: an array cannot take a tensor", fix="x = ptir.array(x)")
    dst[...] = src if where is True else _chosen(where, src, dst)


def _writing(name: str) -> Callable[..., None]:
    """A function that returns the new array here, as NumPy's, which writes it."""

    def write(x: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(x, Tensor):
            raise ArgumentError(f"{name}: an array cannot take a tensor", fix="x = ptir.array(x)")
        x[...] = FUNCTIONS[name](x, *args, **kwargs)

    return write


def _copy(a: Any) -> Tensor:
    return as_tensor(a).copy()


def _take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    return as_tensor(a).take(indices, axis, mode)


_DIFFERING: dict[str, Callable[..., Any]] = {
    "copy": _copy,
    "copyto": _copyto,
    "fill_diagonal": _writing("fill_diagonal"),
    "place": _writing("place"),
    "put": _writing("put"),
    "put_along_axis": _writing("put_along_axis"),
    "take": _take,
    "where": _where_or_nonzero,
}
"""NumPy's functions for which ``ptir`` has an attribute, a method or another function."""
