"""``ptir.implementation``: registration of alternative implementations of composites by name.

The decorator checks the name, the signature and the predicate of a function and adds it to
`Composite.implementations`. `registered` counts registrations, so that caches of lowered programs
can tell that they are stale.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from gptrs.errors import ArgumentError, PtirError
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS
from gptrs.ir.implementation import KERNEL, PORTABLE, Implementation, names_asked
from gptrs.ir.op import Op

F = TypeVar("F", bound=Callable[..., Any])
_registrations: list[str] = []


def registered() -> int:
    """The number of registrations so far: a result made at a lower count is stale."""
    return len(_registrations)


def implementation(
    composite: str, *, name: str, when: Callable[..., bool] | None = None
) -> Callable[[F], F]:
    """Register the decorated function, over ops and with the signature of ``composite``, as a way
    to compute it, for `overrides` to choose.

    ``when(x, axis)`` says for which operands (given as `Type`, ``None`` where absent) and
    attributes it may be used; it takes those that it names. The definition of the composite always
    checks the types, and says which ones the results have. The function depends on nothing but
    its arguments: its program is remembered.

    Raises `ArgumentError` for an unknown composite, a name that is taken (in ``__main__``, as in a
    notebook, a function defined again replaces itself), and a signature that does not fit.
    """
    target = composite_named(composite, "ptir.implementation")

    def register(function: F) -> F:
        known = target.implementations.get(name)
        if name in (KERNEL, PORTABLE) or not name.isidentifier():
            raise ArgumentError(
                f"{name!r} cannot name an implementation of {composite}",
                fix=f"use an identifier other than {KERNEL} and {PORTABLE}",
            )
        if known is not None and not _is_again(known.function, function):
            raise ArgumentError(
                f"{composite} has an implementation {name!r} already",
                fix="choose another name",
            )
        _check_signature(target, function, name)
        if when is not None:
            check_predicate(target, when, name)
        revision = target.revisions[name]
        target.revisions[name] += 1
        target.implementations[name] = Implementation(name, function, when, revision)
        _registrations.append(name)
        return function

    return register


def composite_named(
    name: str, place: str, error: type[PtirError] = ArgumentError
) -> Composite[..., Any]:
    """The composite called ``name``. Raises ``error`` listing the known ones."""
    found: object = OPS.get(name)
    if isinstance(found, Composite):
        return cast("Composite[..., Any]", found)
    known = [op.name for op in OPS.values() if isinstance(op, Composite)]
    raise error(f"{place}: there is no composite {name!r}", fix=suggestion(name, known))


def suggestion(name: str, known: Iterable[str]) -> str:
    """The known names that resemble ``name``, the likeliest first."""
    from difflib import get_close_matches  # for errors only: a start should not wait for it

    names = sorted(known)
    close = get_close_matches(name, names, 1)
    question = f"did you mean {close[0]}? " if close else ""
    return f"{question}use one of: {', '.join(names)}"


def _is_again(old: Callable[..., Any], new: Callable[..., Any]) -> bool:
    """Whether both are one function of a notebook or an interactive session, defined twice."""
    return (
        old.__module__ == new.__module__ == "__main__"
        and old.__qualname__ == new.__qualname__ != "<lambda>"
    )


def _check_signature(
    composite: Composite[..., Any], function: Callable[..., Any], name: str
) -> None:
    """Raise unless ``function`` takes the operands by position, under their names, and the
    attributes."""
    signature = inspect.signature(function)
    problem = ""
    try:
        bound = signature.bind(
            *composite.operand_names, **dict.fromkeys(composite.attr_defaults, None)
        )
    except TypeError as error:
        problem = str(error)
    else:
        named = inspect.Parameter.POSITIONAL_OR_KEYWORD
        moved = [
            f"{parameter} is in the place of {operand}"
            for parameter, operand in bound.arguments.items()
            if signature.parameters[parameter].kind is named
            and parameter != operand
            and parameter not in composite.attr_defaults
        ]
        problem = ", ".join(moved)
    if problem:
        raise ArgumentError(
            f"implementation {name!r} of {composite.name}: {problem}",
            fix=f"declare it as {composite.name}{composite.__signature__}",
        )


def check_predicate(op: Op[..., Any], when: Callable[..., bool], name: str) -> None:
    """Raise `ArgumentError` where ``when`` asks for what is no operand or attribute of ``op``."""
    known = (*op.operand_names, *op.attr_defaults)
    for asked in names_asked(when, known):
        if asked not in known:
            raise ArgumentError(
                f"`when` of implementation {name!r} of {op.name} names {asked!r}",
                fix=suggestion(asked, known),
            )
