"""`public`: the decorator of the functions of this package; and their operands as tensors.

A public function takes the keywords of NumPy, torch and our own schemas alike (``axis``, ``dim``,
``axes``), and adds its call and the user's line to errors, as an op does. In the pattern of a
rewrite rule, where nothing is known of the operands, it is the op of its name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

import numpy as np

from gptrs import settings
from gptrs.errors import ArgumentError, PtirError, shown, user_location, user_traceback
from gptrs.ir import nan_watch
from gptrs.ir.dispatch import FUNCTIONS, OPS, current
from gptrs.ir.interpreters import Recorder
from gptrs.ir.op_arguments import renamed_keywords
from gptrs.ir.operands import describe
from gptrs.ir.pattern import Quote
from gptrs.ir.promotion import NUMBERS, weak_tensor
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import as_dtype, cf64, f64

F = TypeVar("F", bound=Callable[..., Any])


@overload
def public(body: F, /) -> F: ...
@overload
def public(
    *, op: str = "", other_names: Mapping[str, str] = ..., namespace: str = ""
) -> Callable[[F], F]: ...


def public(
    body: Callable[..., Any] | None = None,
    /,
    *,
    op: str = "",
    other_names: Mapping[str, str] | None = None,
    namespace: str = "",
) -> Any:
    """Make ``body`` a function of the public namespace, under its name without a trailing "_".

    ``op`` is the op that it stands for in patterns, if that has another name; ``other_names`` are
    keywords accepted for parameters of other names. With ``namespace`` ("nn") it is a function of
    ``ptir.nn`` instead, which is not in `FUNCTIONS` and stands for no op.
    """
    if body is None:
        return lambda body: _public(body, op, other_names or {}, namespace)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownVariableType]
    return _public(body, op, {}, namespace)


def _public(
    body: Callable[..., Any], op: str, other_names: Mapping[str, str], namespace: str
) -> Any:
    name = body.__name__.rstrip("_")
    signature = inspect.signature(body)
    parameters = signature.parameters
    shown_name = f"{namespace}.{name}" if namespace else name

    @functools.wraps(body)
    def function(*args: Any, **kwargs: Any) -> Any:
        if not namespace and isinstance(current(), Quote):
            return OPS[op or name](*args, **kwargs)
        if not kwargs.keys() <= parameters.keys():
            kwargs = {other_names.get(key, key): value for key, value in kwargs.items()}
            kwargs = renamed_keywords(kwargs, parameters)
        try:
            if nan_watch.nan_mode() is not None and not isinstance(current(), Recorder):
                return nan_watch.watched_call(f"ptir.{shown_name}", body, args, kwargs)
            return body(*args, **kwargs)
        except PtirError as error:
            call = f"{shown_name}({_described(parameters, args, kwargs)})"
            if call not in error.context:  # the op of this name has said it
                error.context.append(call)
            error.where = error.where or user_location()
            raise user_traceback(error, full=settings.full_traceback()) from None
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                _check_call(signature, shown_name, args, kwargs)
            raise

    function.__name__ = function.__qualname__ = name
    function.other_names = other_names  # type: ignore[attr-defined]
    if namespace:
        return function
    function.op = OPS.get(op or name)  # type: ignore[attr-defined]
    FUNCTIONS[name] = function
    return function


def _check_call(
    signature: inspect.Signature, name: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        problem = ArgumentError(f"{name}: {error}", fix=f"call it as {name}{signature}")
        problem.where = user_location()
        raise problem from None


def _described(parameters: Iterable[str], args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    named = [*zip(parameters, args, strict=False), *kwargs.items()]
    return ", ".join(f"{name}: {describe(value)}" for name, value in named)


def tensor_of(x: Any, dtype: object) -> Tensor:
    """``x`` as a Tensor of ``dtype``. Python's floats are rounded to it, and not to f32 before."""
    wanted = as_dtype(dtype)
    if wanted.is_float or wanted.is_complex:
        if type(x) in (int, float, complex):
            return Tensor.of_array(np.asarray(x, wanted.numpy))
        if isinstance(x, list | tuple):
            return FUNCTIONS["asarray"](x, dtype=wanted)
    return as_tensor(x).astype(wanted)


def alike(*operands: Any) -> tuple[Tensor, ...]:
    """``operands`` as Tensors; beside one of f64, Python's numbers and lists of them are f64."""
    made = [as_tensor(x) for x in operands]
    if any(x.dtype in (f64, cf64) for x in made):
        made = [
            tensor_of(given, cf64 if x.dtype.is_complex else f64) if type(given) in _PYTHON else x
            for x, given in zip(made, operands, strict=True)
        ]
    return tuple(made)


_PYTHON = (int, float, complex, list, tuple)


def as_tensor(x: Any) -> Tensor:
    """``x`` as a Tensor: arrays shared, Python numbers weak, nested lists stacked."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, np.generic):
        return Tensor.of_array(np.asarray(cast("Any", x)))
    if isinstance(x, NUMBERS):
        return weak_tensor(x)
    if isinstance(x, list | tuple):
        parts = cast("Sequence[Any]", x)
        return FUNCTIONS["asarray"](parts)
    if (array := as_array(x)) is None:
        raise ArgumentError(
            f"{shown(x)} ({type(x).__name__}) is no operand: expected a Tensor, an array or a"
            " number"
        )
    return Tensor.of_array(array)
