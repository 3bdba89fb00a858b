"""Options of ``ptir.jit``: static, donated and dynamic arguments, backend and rounding.

Made by `gptrs.jit.decorator`; `resolve` refers them to the signature of the decorated function.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from gptrs import settings
from gptrs.errors import ArgumentError, shown
from gptrs.ir.dims import Dim, dim
from gptrs.jit.overrides import Policies
from gptrs.lazy_dataclass import dataclass

Axes = Mapping[int, str | Dim]
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Options:
    """The arguments of ``ptir.jit``, by argument name."""

    static: frozenset[str] = frozenset()
    donated: frozenset[str] = frozenset()
    dynamic: Mapping[str, Axes] = field(default_factory=dict[str, Axes])
    backend: str | None = None
    precise: bool | None = None  # None: GPTRS_PRECISE decides
    strict_dtypes: bool | None = None  # None: GPTRS_STRICT_DTYPES decides
    overrides: Policies = ()
    static_places: tuple[int, ...] = ()
    """Static arguments by their places among the positional ones, until `resolve`."""

    @property
    def is_precise(self) -> bool:
        """Whether rewrites that change rounding are disabled."""
        return settings.precise() if self.precise is None else self.precise

    def resolve(self, signature: inspect.Signature, function: str) -> Options:
        """These options with names in place of numbers. Raises `ArgumentError` for arguments that
        ``function`` does not take and for options that contradict each other."""
        for axes in self.dynamic.values():
            for symbol in axes.values():
                dim(str(symbol))  # raises unless it is one name: sizes come from the arguments
        named = (_name_at(place, signature, function) for place in self.static_places)
        static = self.static.union(named)
        roots = {path.partition(".")[0].partition("[")[0] for path in self.dynamic}
        for what, names in (
            ("static_argnames", static),
            ("donate", self.donated),
            ("dynamic", roots),
        ):
            if unknown := sorted(set(names) - set(signature.parameters)):
                raise ArgumentError(
                    f"{what} names {unknown[0]!r}, which {function} does not take",
                    fix=f"its arguments are: {', '.join(signature.parameters)}",
                )
        for what, names in (("donated", self.donated), ("dynamic", roots)):
            if both := sorted(static & names):
                raise ArgumentError(
                    f"argument {both[0]} of {function} is static and {what}",
                    fix=f"only arrays can be {what}, and they cannot be static: name it once",
                )
        return replace(self, static=static, static_places=())


def static_places(value: int | Iterable[int]) -> tuple[int, ...]:
    """The argument ``static_argnums``, one number or several, as a tuple."""
    try:
        return (operator.index(value),)  # pyright: ignore[reportArgumentType]
    except TypeError:
        pass
    try:
        return tuple(operator.index(place) for place in value)  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType, reportUnknownArgumentType]
    except TypeError:
        raise ArgumentError(
            f"static_argnums is {shown(value)}, expected an integer or a tuple of integers",
            fix="names of arguments go to static_argnames",
        ) from None


def _name_at(place: int, signature: inspect.Signature, function: str) -> str:
    """The name of the positional argument at ``place``, counted from the back where negative."""
    names = [name for name, p in signature.parameters.items() if p.kind in _BY_PLACE]
    if -len(names) <= place < len(names):
        return names[place]
    kinds = {p.kind: name for name, p in signature.parameters.items()}
    rest = kinds.get(inspect.Parameter.VAR_POSITIONAL)
    fix = f"its positional arguments are: {', '.join(names) or 'none'}"
    if rest is not None:
        fix += f"; static_argnames={rest!r} makes all of *{rest} static"
    raise ArgumentError(
        f"static_argnums names the argument {place} of {function},"
        f" which takes {len(names)} by position",
        fix=fix,
    )
