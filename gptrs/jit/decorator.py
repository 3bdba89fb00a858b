"""``ptir.jit``: the decorator that makes a `JitFunction`, and its options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar, overload

from gptrs.backends.selection import check_name
from gptrs.errors import ArgumentError
from gptrs.jit.function import JitFunction
from gptrs.jit.options import Axes, Options, static_places
from gptrs.jit.overrides import parse

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    function: Callable[P, R],
    /,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate: str | Iterable[str] = (),
    dynamic: Mapping[str, Axes] | None = None,
    backend: str | None = None,
    precise: bool | None = None,
    strict_dtypes: bool | None = None,
    overrides: Mapping[str, str] | None = None,
    name: str | None = None,
) -> JitFunction[P, R]: ...
@overload
def jit(
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate: str | Iterable[str] = (),
    dynamic: Mapping[str, Axes] | None = None,
    backend: str | None = None,
    precise: bool | None = None,
    strict_dtypes: bool | None = None,
    overrides: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate: str | Iterable[str] = (),
    dynamic: Mapping[str, Axes] | None = None,
    backend: str | None = None,
    precise: bool | None = None,
    strict_dtypes: bool | None = None,
    overrides: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Any:
    """Trace the decorated function into a program for each kind of arguments, and run that.

    Arrays, Tensors and numbers are traced; bools, strings and None are part of the program's key,
    as are the arguments in ``static_argnames``, and those at the places ``static_argnums``
    (negative ones count from the last positional argument), however they are passed. A static
    argument has to be hashable, and each other value of it is another program: it is for numbers
    that Python needs while tracing, such as an axis or a number of layers.

    Arguments in ``donate`` are Tensors that the call may overwrite: they cannot be used afterwards.
    ``dynamic={"tokens": {1: "S"}}`` makes an axis symbolic, so that another size of at least 1 is
    not traced again; a path such as ``"cache.keys"`` names a part of an argument. ``backend`` fixes
    the backend; ``precise=True`` gives the bits of eager mode, leaving out all that rounds
    otherwise (else ``GPTRS_PRECISE`` says); ``strict_dtypes=True`` makes operands of different
    dtypes an error instead of promoting them (else ``GPTRS_STRICT_DTYPES`` says); ``overrides`` are
    those of `ptir.overrides`; ``name`` is used in messages and dumps.
    """
    options = Options(
        static=_names(static_argnames),
        static_places=static_places(static_argnums),
        donated=_names(donate),
        dynamic=dict(dynamic or {}),
        backend=backend,
        precise=precise,
        strict_dtypes=strict_dtypes,
        overrides=parse(overrides or {}, "ptir.jit(overrides=...)", ArgumentError),
    )
    if backend is not None:
        check_name(backend)
    if function is None:
        return lambda function: JitFunction(function, options, name)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownVariableType]
    return JitFunction(function, options, name)


def _names(value: str | Iterable[str]) -> frozenset[str]:
    return frozenset((value,) if isinstance(value, str) else value)
