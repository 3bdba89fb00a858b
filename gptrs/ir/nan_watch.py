"""``ptir.debug_nans``: whether a new NaN is an error, and the watch over ops in eager mode.

A mode applies to a context (`watching`), or to the process: the setting GPTRS_DEBUG_NANS, which
`watch_everywhere` sets. In eager mode each op, and each function of `gptrs.numpy_api`, is looked at
when it has run; NaN inside of one that is not in its result (a masked one) is none. Compiled calls
are looked at by `gptrs.jit.numerics.watch`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from gptrs import settings, tree
from gptrs.errors import ArgumentError, NanError, NanWarning, shown, user_location
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type

Action: TypeAlias = Literal["raise", "log", "off"]
_INFINITIES = "+inf"


class NanMode(NamedTuple):
    """What happens at a new NaN, and whether an infinity counts as one."""

    action: Action
    infinities: bool = False

    def is_bad(self, array: Array) -> Array:
        """Which elements are NaN (or infinite)."""
        if array.dtype.kind in "biu":
            return np.zeros(array.shape, bool)
        with np.errstate(all="ignore"):
            return ~np.isfinite(array) if self.infinities else np.isnan(array)

    def has_bad(self, array: Array) -> bool:
        """Whether an element is."""
        return bool(self.is_bad(array).any())

    @property
    def word(self) -> str:
        """What is looked for."""
        return "NaN or infinity" if self.infinities else "NaN"


OFF = NanMode("off")
mode_here: ContextVar[NanMode | None] = ContextVar("gptrs_debug_nans", default=None)
"""The mode of this context; None: that of the process. Part of the key of a call."""


def nan_mode() -> NanMode | None:
    """The mode that applies here; None where NaN are let be."""
    mode = mode_here.get()
    if mode is None:
        mode = _mode_named(settings.debug_nans())
    return None if mode.action == "off" else mode


def mode_of(action: str, infinities: bool) -> NanMode:
    """The mode of these arguments of ``ptir.debug_nans``. Raises `ArgumentError`."""
    if action not in ("raise", "log", "off"):
        raise ArgumentError(
            f"action is {shown(action)}, expected 'raise', 'log' or 'off'",
            fix='ptir.debug_nans("raise")',
        )
    return _mode(action, infinities)


@cache
def _mode(action: Action, infinities: bool) -> NanMode:
    """One object for each mode: native calls compare it by identity."""
    return NanMode(action, infinities)


def _mode_named(text: str) -> NanMode:
    action = cast("Action", text.removesuffix(_INFINITIES))
    return _mode(action, text.endswith(_INFINITIES))


def watch_everywhere(mode: NanMode) -> str | None:
    """Make ``mode`` that of the process; returns the text of the setting before."""
    name = settings.debug_nans.name
    before = os.environ.get(name)
    os.environ[name] = mode.action + _INFINITIES * (mode.infinities and mode.action != "off")
    return before


def restore_everywhere(before: str | None) -> None:
    """Undo `watch_everywhere`."""
    name = settings.debug_nans.name
    if before is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = before


@contextmanager
def watching(mode: NanMode) -> Generator[None]:
    """Inside the block ``mode`` applies, in this context."""
    token = mode_here.set(mode)
    try:
        yield
    finally:
        mode_here.reset(token)


@contextmanager
def quiet() -> Generator[None]:
    """Inside the block, which is the definition of one op or function, ops are not looked at."""
    if nan_mode() is None:
        yield
    else:
        with watching(OFF):
            yield


def tell(error: NanError, mode: NanMode) -> None:
    """Raise ``error``, or warn with it, as ``mode`` says."""
    if mode.action == "raise":
        raise error
    error.where = error.where or user_location()
    if error.where is None:
        warnings.warn(str(error), NanWarning, stacklevel=2)
    else:
        warnings.warn_explicit(str(error), NanWarning, error.where.file, error.where.line)


def statistics(array: Array) -> str:
    """Type, least, greatest and mean of the finite elements, and counts of the others."""
    kind = str(Type.of(array))
    if not array.size:
        return f"{kind}, empty"
    if array.dtype.kind == "c":
        with np.errstate(all="ignore"):
            array = np.abs(array)
        kind += ", magnitudes"
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
    nans, infinite = int(np.isnan(wide).sum()), int(np.isinf(wide).sum())
    finite = wide[np.isfinite(wide)]
    numbers = "no finite element"
    if finite.size:
        numbers = f"min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}"
    return f"{kind}: {numbers}, {nans} NaN, {infinite} infinite"


def nan_error(
    op: str,
    operands: Iterable[tuple[str, Array]],
    results: Iterable[Array],
    mode: NanMode,
    head: str = "",
) -> NanError:
    """The error that names ``op``, whose operands have no NaN and whose results do."""
    made = next(result for result in results if mode.has_bad(result))
    bad = mode.is_bad(made)
    place = tuple(map(int, np.argwhere(bad)[0]))
    at = f", the first at {place}" if made.ndim else ""
    lines = [
        f"{head}{op} gives {mode.word} in {int(bad.sum())} of {made.size} elements{at}",
        *(f"  {name}: {statistics(array)}" for name, array in operands),
        f"  its result: {statistics(made)}",
    ]
    return NanError(
        "\n".join(lines),
        fix="keep its operands where it has a result (ptir.where, ptir.maximum), or let NaN be:"
        ' ptir.debug_nans("off")',
    )


def look(name: str, given: Any, returned: Any, mode: NanMode) -> None:
    """Look at the results of an eager op or function, ``given`` its operands."""
    results = _arrays(returned)
    if not any(map(mode.has_bad, results)):
        return
    operands = _arrays(given)
    if any(map(mode.has_bad, operands)):
        return
    named = ((f"operand {number}", array) for number, array in enumerate(operands))
    tell(nan_error(name, named, results, mode), mode)


def watched_call(
    name: str, body: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``body(*args, **kwargs)`` in eager mode: its result is looked at, and what is inside only
    where it takes functions of the user."""
    mode = nan_mode()
    if mode is None or any(map(callable, (*args, *kwargs.values()))):
        return body(*args, **kwargs)
    with watching(OFF):
        returned = body(*args, **kwargs)
    look(name, (args, kwargs), returned, mode)
    return returned


def _arrays(value: Any) -> list[Array]:
    leaves, _ = tree.flatten(value, is_leaf=lambda leaf: isinstance(leaf, Tensor | np.ndarray))
    found = (leaf.numpy() if isinstance(leaf, Tensor) else leaf for leaf in leaves)
    return [np.asarray(x) for x in found if isinstance(x, np.ndarray | np.generic | float)]
